"""Natural gradients from values, gradients or products with the Hessian."""
