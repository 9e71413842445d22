"""A group is restored from JSON and arrays exactly, and nothing but a group is."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup import groups
from esgroup.files import objects
from esgroup.files.objects import build, describe, register_serial
from esgroup.groups import BlockDiagonal, Conjugate, Diagonal, Full, Group, Kronecker, Sparse
from tests.groups.cases import CASES
from tests.groups.elements import element

SPARSE = Sparse.from_edges(4, [(1, 0), (2, 3), (3, 2)])
ROTATED = Conjugate(SPARSE, np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0])
DEEP = Kronecker(BlockDiagonal((Full(2), Conjugate(ROTATED, [3, 1, 0, 2]))), Conjugate(SPARSE, [1, 0, 3, 2]))


def through_json(group: Group) -> Group:
    description, arrays = describe(group)
    copies = {name: array.copy() for name, array in arrays.items()}
    return build(json.loads(json.dumps(description)), copies | {"unrelated": np.ones(3)})


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_every_group_comes_back_and_computes_the_same(case: str, data: st.DataObject) -> None:
    group = data.draw(CASES[case])
    copy = through_json(group)
    assert type(copy) is type(group) and copy == group and hash(copy) == hash(group) and repr(copy) == repr(group)
    assert (copy.dim, copy.size, copy.dof) == (group.dim, group.size, group.dof)
    rng = np.random.default_rng(3)
    a, z, weights = element(group, rng), rng.standard_normal((5, group.dim)), rng.standard_normal(5)
    assert np.array_equal(copy.dense(a), group.dense(a))
    assert np.array_equal(copy.solve(a, z), group.solve(a, z))
    assert np.array_equal(copy.product_h_samples(a, z, 0.1 * weights), group.product_h_samples(a, z, 0.1 * weights))
    assert np.array_equal(copy.project(z, weights), group.project(z, weights))


def test_every_exported_group_can_be_stored(registry: None) -> None:
    exported = {value for value in vars(groups).values() if isinstance(value, type) and issubclass(value, Group)}
    assert {known.cls for known in objects._known().values()} == exported - {Group}


def test_arrays_have_the_path_of_their_field_as_name() -> None:
    description, arrays = describe(DEEP, "structure")
    inner = "structure/first/groups/1"
    assert sorted(arrays) == [
        f"{inner}/by",
        f"{inner}/group/by",
        f"{inner}/group/group/indices",
        f"{inner}/group/group/indptr",
        "structure/second/by",
        "structure/second/group/indices",
        "structure/second/group/indptr",
    ]
    assert arrays[f"{inner}/group/by"] is ROTATED.by
    assert description["fields"]["first"]["fields"]["groups"][0] == {"class": "Full", "fields": {"dim": 2}}


def test_arrays_of_a_built_group_are_its_own_and_read_only() -> None:
    description, arrays = describe(ROTATED)
    arrays = {name: array.copy() for name, array in arrays.items()}
    copy = build(description, arrays)
    for array in arrays.values():
        array[:] = 0
    assert copy == ROTATED
    assert not any(array.flags.writeable for array in (copy.by, copy.group.indptr, copy.group.indices))


def test_a_deep_group_comes_back() -> None:
    assert through_json(DEEP) == DEEP


# ---- groups of users ----------------------------------------------------------------------------------------------


class Renamed(Full):
    """Like Full, but not registered."""


@dataclass(frozen=True)
class Scaled(Diagonal):
    scale: float = 1.0
    note: str | None = None
    sizes: tuple[int, ...] = ()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_registered", {})


@pytest.mark.parametrize("group", [Renamed(2), BlockDiagonal((Full(1), Renamed(2)))])
def test_an_unknown_class_is_not_stored(group: Group) -> None:
    with pytest.raises(TypeError, match=r"Renamed.* cannot be stored: pass its class .*Renamed.* to .*register_serial"):
        describe(group)


def test_a_class_that_took_the_name_of_a_known_one_is_not_stored() -> None:
    impostor = type("Full", (Full,), {})
    with pytest.raises(TypeError, match="cannot be stored"):
        describe(impostor(2))


def test_a_registered_class_is_stored(registry: None) -> None:
    assert register_serial(Scaled) is Scaled
    group = Kronecker(Scaled(3, np.float64(0.1), "a", (np.int64(1), 2)), Full(2))
    assert through_json(group) == group
    assert through_json(Scaled(3, 0.1 + 0.2, None)) == Scaled(3, 0.1 + 0.2, None)


def test_a_registered_class_is_built_by_its_own_function(registry: None) -> None:
    register_serial(Scaled, lambda dim, scale, note, sizes: Scaled(dim, scale, "built", sizes))
    assert through_json(Scaled(3, 2.0)) == Scaled(3, 2.0, "built")


def test_a_class_may_be_defined_again_but_a_name_is_not_taken_twice(registry: None) -> None:
    register_serial(Scaled)
    again = dataclass(frozen=True)(type("Scaled", (Diagonal,), {"__module__": __name__, "__qualname__": "Scaled"}))
    register_serial(again)
    assert type(through_json(again(2))) is again
    with pytest.raises(ValueError, match=r"the name 'Scaled' is taken by .*Scaled"):
        register_serial(type("Scaled", (Scaled,), {"__module__": "elsewhere"}))
    with pytest.raises(ValueError, match="the name 'Full' is taken"):
        register_serial(type("Full", (Full,), {}))
    assert type(through_json(Full(2))) is Full


@pytest.mark.parametrize("wrong", [int, Full(2), "Full", groups.spelling])
def test_only_classes_of_groups_are_registered(registry: None, wrong: object) -> None:
    with pytest.raises(TypeError, match="cls must be a dataclass derived from Group"):
        register_serial(wrong)


def test_a_field_of_another_kind_is_not_stored(registry: None) -> None:
    register_serial(Scaled)
    with pytest.raises(TypeError, match=r"group/note cannot be stored: .* got {1, 2}"):
        describe(Scaled(3, 1.0, {1, 2}))


# ---- descriptions that are not valid ------------------------------------------------------------------------------


def sparse_with(**changes: object) -> tuple[object, dict[str, np.ndarray]]:
    description, arrays = describe(SPARSE)
    arrays |= {f"group/{name}": array for name, array in changes.items() if name != "dim"}
    description["fields"]["dim"] = changes.get("dim", 4)
    return description, arrays


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# SPARSE has indptr 0 1 3 5 7 and indices 0, 0 1, 2 3, 2 3
FOREIGN = [
    (None, {}, "must have a class and fields, got None"),
    ([], {}, "must have a class and fields"),
    ({"class": "Full"}, {}, "must have a class and fields"),
    ({"class": "Full", "fields": {"dim": 2}, "more": 1}, {}, "must have a class and fields"),
    ({"class": "os.system", "fields": {}}, {}, "must be one of .*Full.*, got 'os.system'"),
    ({"class": "Group", "fields": {}}, {}, "must be one of .*, got 'Group'"),
    ({"class": "Bordered", "fields": {"dim": 2}}, {}, "must be one of .*, got 'Bordered'"),
    ({"class": "SingularElementError", "fields": {}}, {}, "must be one of"),
    ({"class": ["Full"], "fields": {}}, {}, "must be one of"),
    ({"class": "Full", "fields": {}}, {}, r"a stored Full must have the fields \['dim'\], got {}"),
    ({"class": "Full", "fields": {"dim": 2, "size": 3}}, {}, "a stored Full must have the fields"),
    ({"class": "Full", "fields": [2]}, {}, "a stored Full must have the fields"),
    ({"class": "Full", "fields": {"dim": 0}}, {}, "a stored Full is not valid: dim must be an integer >= 1, got 0"),
    ({"class": "Full", "fields": {"dim": "2"}}, {}, "a stored Full is not valid: dim must be an integer"),
    ({"class": "Full", "fields": {"dim": {"array": "x"}}}, {}, "the array 'x' of a stored group is missing"),
    ({"class": "Full", "fields": {"dim": {"array": ["x"]}}}, {}, r"the array \['x'\] of a stored group is missing"),
    ({"class": "Full", "fields": {"dim": {"array": "x"}}}, {"x": ints(1, 2)}, "a stored Full is not valid: dim must"),
    ({"class": "BlockDiagonal", "fields": {"groups": []}}, {}, "groups must hold at least one group"),
    ({"class": "BlockDiagonal", "fields": {"groups": [3]}}, {}, r"groups\[0\] must be a group, got 3"),
    ({"class": "BlockDiagonal", "fields": {"groups": [{"class": "Full"}]}}, {}, "must have a class and fields"),
    ({"class": "Kronecker", "fields": {"first": 1, "second": 2}}, {}, "first must be a group, got 1"),
    (*sparse_with(indices=ints(0, 0, 1, 2, 4, 2, 3)), "a stored Sparse is not valid"),
    (*sparse_with(indices=ints(0, 0, -1, 2, 3, 2, 3)), "a stored Sparse is not valid"),
    (*sparse_with(indices=ints(0, 0, 1, 2, 3, 2)), "a stored Sparse is not valid"),
    (*sparse_with(indices=ints(0, 1, 0, 2, 3, 2, 3)), "without repetitions"),
    (*sparse_with(indptr=ints(0, 1, 4, 6, 8), indices=ints(0, 0, 1, 1, 2, 3, 2, 3)), "without repetitions"),
    (*sparse_with(indptr=ints(0, 3, 1, 5, 7)), "a stored Sparse is not valid"),
    (*sparse_with(indptr=ints(0, 1, 3, 5, 9)), "a stored Sparse is not valid"),
    (*sparse_with(indptr=ints(1, 1, 3, 5, 7)), "a stored Sparse is not valid"),
    (*sparse_with(indptr=ints(0, 1, 3, 5)), "a stored Sparse is not valid"),
    (*sparse_with(indptr=ints(0, 1, 2, 4, 6), indices=ints(0, 1, 1, 2, 2, 3)), "pattern must contain the diagonal"),
    (*sparse_with(indptr=ints(0, 1, 3, 5, 7).reshape(1, 5)), "a stored Sparse is not valid"),
    (*sparse_with(indptr=np.array([0, 1, 3, 5, 7.0])), "indptr and indices must be int64 arrays"),
    (*sparse_with(dim=5), "a stored Sparse is not valid"),
    (*sparse_with(dim=10**12), "a stored Sparse is not valid"),
    (*sparse_with(dim=10**40), "a stored Sparse is not valid"),
    (*sparse_with(dim=-4), "a stored Sparse is not valid"),
    (*sparse_with(dim="4"), "a stored Sparse is not valid"),
    (*sparse_with(dim=None), "a stored Sparse is not valid"),
    (*sparse_with(dim=[4]), "a stored Sparse is not valid"),
]


@pytest.mark.parametrize(("description", "arrays", "message"), FOREIGN)
def test_a_description_of_no_group_is_refused(description: object, arrays: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(description, arrays)


def test_a_bottomless_description_is_refused() -> None:
    description: dict = {"class": "Full", "fields": {"dim": 1}}
    for _ in range(10_000):
        description = {"class": "BlockDiagonal", "fields": {"groups": [description]}}
    with pytest.raises(ValueError, match="nested too deeply"):
        build(description, {})
