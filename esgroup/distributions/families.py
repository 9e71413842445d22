"""All univariate exponential families, and products of them, under one name.

>>> from esgroup.distributions.families import Beta, Gamma, Product
>>> product = Product((Gamma(shape=4.0, rate=2.0), Beta(a=1.0, b=3.0)))
>>> means, stds = product.moments(product.state())
>>> means.tolist()
[2.0, 0.25]
"""

from esgroup.distributions.categorical import Categorical as Categorical
from esgroup.distributions.concentrating import Beta as Beta
from esgroup.distributions.concentrating import Gamma as Gamma
from esgroup.distributions.concentrating import Normal as Normal
from esgroup.distributions.concentrating import Wald as Wald
from esgroup.distributions.discrete import Bernoulli as Bernoulli
from esgroup.distributions.discrete import Poisson as Poisson
from esgroup.distributions.discrete import PoissonPower as PoissonPower
from esgroup.distributions.product import Product as Product
from esgroup.distributions.scales import Exponential as Exponential
from esgroup.distributions.scales import Laplace as Laplace
from esgroup.distributions.scales import Pareto as Pareto
from esgroup.distributions.scales import Weibull as Weibull
