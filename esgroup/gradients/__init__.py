"""Natural gradients from values, gradients or products with the Hessian.

`as_function` combines a function with its known derivatives, an `Estimator` turns it into natural gradients, and
`check_derivatives` tests the derivatives. `torch_function`, `jax_function` and `with_difference_products` supply
missing derivatives.
"""

from esgroup.gradients.autodiff import jax_function as jax_function
from esgroup.gradients.autodiff import torch_function as torch_function
from esgroup.gradients.derivative_check import check_derivatives as check_derivatives
from esgroup.gradients.derivative_report import DerivativeReport as DerivativeReport
from esgroup.gradients.differences import with_difference_products as with_difference_products
from esgroup.gradients.estimators import Estimator as Estimator
from esgroup.gradients.estimators import Pathwise as Pathwise
from esgroup.gradients.estimators import Reinforce as Reinforce
from esgroup.gradients.estimators import Stein as Stein
from esgroup.gradients.estimators import SteinDense as SteinDense
from esgroup.gradients.function import Counts as Counts
from esgroup.gradients.function import Gradients as Gradients
from esgroup.gradients.function import Hessians as Hessians
from esgroup.gradients.function import Products as Products
from esgroup.gradients.function import Values as Values
from esgroup.gradients.function import as_function as as_function
