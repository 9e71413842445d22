"""What is better: rankings, by values, by an augmented Lagrangian, and one that esgroup does not know."""
