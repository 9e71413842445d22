"""Groups of structured matrices, whose elements are square roots of the covariances of search distributions.

Groups determined by sizes have a spelling, such as "heisenberg:k1=4,k2=4,upper"; see `parse` and `spell`.
"""

from esgroup.groups.base import Group as Group
from esgroup.groups.block_diagonal import BlockDiagonal as BlockDiagonal
from esgroup.groups.bordered import BlockTriangular as BlockTriangular
from esgroup.groups.bordered import Heisenberg as Heisenberg
from esgroup.groups.circulant import Circulant as Circulant
from esgroup.groups.conjugate import Conjugate as Conjugate
from esgroup.groups.diagonal import Diagonal as Diagonal
from esgroup.groups.frame import Frame as Frame
from esgroup.groups.full import Full as Full
from esgroup.groups.kronecker import Kronecker as Kronecker
from esgroup.groups.linalg import SingularElementError as SingularElementError
from esgroup.groups.sparse import Sparse as Sparse
from esgroup.groups.spelling import SPELLINGS as SPELLINGS
from esgroup.groups.spelling import as_group as as_group
from esgroup.groups.spelling import described as described
from esgroup.groups.spelling import named as named
from esgroup.groups.spelling import parse as parse
from esgroup.groups.spelling import register as register
from esgroup.groups.spelling import spell as spell
from esgroup.groups.toeplitz import ToeplitzTriangular as ToeplitzTriangular
from esgroup.groups.triangular import Triangular as Triangular
