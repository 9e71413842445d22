"""Every group as a hypothesis strategy: a new group is one line here, and all laws run on it."""

import numpy as np
from hypothesis import strategies as st

from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from tests.groups.strangers import Exchangeable, Scalar

dims = st.integers(1, 7)
flags = st.booleans()


@st.composite
def heisenbergs(draw: st.DrawFn) -> Heisenberg:
    dim = draw(dims)
    k1 = draw(st.integers(0, dim))
    return Heisenberg(dim, k1, draw(st.integers(0, dim - k1)), draw(flags))


@st.composite
def sparse(draw: st.DrawFn) -> Sparse:
    """Random preorders: edges in both directions make classes with dense blocks."""
    dim = draw(dims)
    coordinate = st.integers(0, dim - 1)
    pairs = draw(st.lists(st.tuples(coordinate, coordinate, flags), min_size=dim // 2, max_size=dim + 2))
    edges = [(i, j) for i, j, _ in pairs] + [(j, i) for i, j, both in pairs if both]
    return Sparse.from_edges(dim, edges, close=True)


def conjugates(groups: st.SearchStrategy[Group]) -> st.SearchStrategy[Conjugate]:
    return st.builds(_conjugate, groups, st.booleans(), st.integers(0, 10**6))


def _conjugate(group: Group, rotate: bool, seed: int) -> Conjugate:
    rng = np.random.default_rng(seed)
    if rotate:
        return Conjugate(group, np.linalg.qr(rng.standard_normal((group.dim, group.dim)))[0])
    return Conjugate(group, rng.permutation(group.dim))


def sized(cls: type, *sizes: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(cls, dims, *sizes)


def of_blocks(cls: type, *flags: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(
        lambda blocks, block, *rest: cls(blocks * block, block, *rest), st.integers(1, 5), st.integers(1, 3), *flags
    )


SIMPLE = {
    "diagonal": sized(Diagonal),
    "full": sized(Full),
    "triangular": sized(Triangular, flags),
    "block_triangular": dims.flatmap(lambda d: st.builds(BlockTriangular, st.just(d), st.integers(0, d), flags)),
    "heisenberg": heisenbergs(),
    "toeplitz_triangular": of_blocks(ToeplitzTriangular, flags),
    "circulant": of_blocks(Circulant),
    "sparse": sparse(),
}
STRANGERS = st.one_of(sized(Scalar), sized(Exchangeable))  # hooks under "must" only
simple = st.one_of(*SIMPLE.values(), STRANGERS)
small = simple.filter(lambda g: g.dim <= 4)
CASES = SIMPLE | {
    "kronecker": st.builds(Kronecker, small, small),
    "block_diagonal": st.builds(BlockDiagonal, st.lists(small, min_size=1, max_size=3)),
    "conjugate": conjugates(simple),
}
nested = st.one_of(CASES["kronecker"], CASES["block_diagonal"], CASES["conjugate"]).filter(lambda g: g.dim <= 6)
CASES["nested"] = st.one_of(
    st.builds(Kronecker, nested, small).filter(lambda g: g.dim <= 18),
    st.builds(BlockDiagonal, st.lists(nested, min_size=1, max_size=2)),
    conjugates(nested),
)
