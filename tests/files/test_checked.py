"""Values read from a checkpoint have the right type, and a stored generator continues where it was."""

import json
import pickle

import numpy as np
import pytest

from esgroup.files import checked
from esgroup.files.npz import CheckpointError


def test_entries_are_of_the_kind_that_is_asked_for() -> None:
    header = {"i": 3, "f": 0.5, "b": True, "s": "x", "l": [1], "d": {}, "none": None, "big": 10**400}
    for name, kind in {"i": int, "f": float, "b": bool, "s": str, "l": list, "d": dict}.items():
        assert checked.entry(header, name, kind) is header[name]
        assert checked.optional_entry(header, name, kind) is header[name]
    number = checked.entry(header, "i", float)
    assert number == 3.0 and type(number) is float
    assert checked.optional_entry(header, "none", int) is None
    for name, kind in [("f", int), ("b", int), ("b", float), ("i", bool), ("s", float), ("none", str), ("big", float)]:
        with pytest.raises(CheckpointError, match=f"'{name}' .*header .*{kind.__name__}"):
            checked.entry(header, name, kind)
    for take in (checked.entry, checked.optional_entry):
        with pytest.raises(CheckpointError, match=r"header .*'missing'"):
            take(header, "missing", int)


def test_arrays_are_of_the_shape_and_dtype_that_are_asked_for() -> None:
    arrays = {"x": np.zeros((2, 3)), "i": np.zeros(2, dtype=np.int64)}
    assert checked.array(arrays, "x", (2, 3)) is arrays["x"]
    assert checked.array(arrays, "x", (None, 3)) is arrays["x"]
    assert checked.array(arrays, "i", (2,), np.int64) is arrays["i"]
    for shape in [(2,), (2, 4), (None, 2), (2, 3, None), ()]:
        with pytest.raises(CheckpointError, match=r"'x' .*float64 of shape .* float64 of shape"):
            checked.array(arrays, "x", shape)
    with pytest.raises(CheckpointError, match=r"'i' .*float64 .*\(n,\).* int64 .*\(2"):
        checked.array(arrays, "i", (None,))
    with pytest.raises(CheckpointError, match=r"'y' .*missing"):
        checked.array(arrays, "y", (2,))


# ---- generators ---------------------------------------------------------------------------------------------------

BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


def copied(rng: np.random.Generator) -> np.random.Generator:
    return checked.generator_from_json(json.loads(json.dumps(checked.generator_to_json(rng))))


def draws(rng: np.random.Generator) -> list:
    """Also 32 bits at a time, which leave a half-used number behind."""
    parts = [rng.standard_normal(7), rng.integers(0, 9, 3, dtype=np.uint32), rng.random(5, dtype=np.float32)]
    parts += [rng.permutation(5), rng.standard_normal(4, dtype=np.float32), rng.exponential(size=3)]
    return [part.tolist() for part in parts]


@pytest.mark.parametrize("bits", BITS)
def test_a_generator_continues_where_it_was(bits: type) -> None:
    rng = np.random.Generator(bits(12))
    for i in range(12):
        copy = copied(rng)
        assert type(copy.bit_generator) is bits
        assert draws(copy) == draws(rng)
        rng.integers(0, 9, i, dtype=np.uint32)
        rng.standard_normal(i * 50)  # MT19937 and Philox at different places of their buffers


@pytest.mark.parametrize("bits", BITS)
def test_both_halves_of_a_number_are_kept(bits: type) -> None:
    rng = np.random.Generator(bits(5))
    rng.integers(0, 2**32, 1, dtype=np.uint32)
    copy = copied(rng)
    assert copy.integers(0, 2**32, 3, dtype=np.uint32).tolist() == rng.integers(0, 2**32, 3, dtype=np.uint32).tolist()
    assert copy.bit_generator.random_raw() == rng.bit_generator.random_raw()


@pytest.mark.parametrize("entropy", [0, 2**200, [1, 2**70], (3, np.int64(4)), np.arange(3), np.uint32([1, 2])])
def test_a_generator_spawns_what_it_would_have_spawned(entropy: object) -> None:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=(1, 2))))
    rng.spawn(3)
    copy = copied(rng)
    assert [child.random() for child in copy.spawn(2)] == [child.random() for child in rng.spawn(2)]
    assert copy.random() == rng.random()


def test_generators_without_plain_seeds_continue_and_spawn_from_new_seeds() -> None:
    seeds = np.random.SeedSequence(3, pool_size=8)
    for bits in (np.random.PCG64(seeds), np.random.RandomState(3)._bit_generator):
        rng = np.random.Generator(bits)
        one, other = copied(rng), copied(rng)
        assert one.spawn(1)[0].random() != other.spawn(1)[0].random()
        assert one.random() == rng.random() == other.random()


def test_other_bit_generators_are_refused() -> None:
    class Mine(np.random.PCG64):
        pass

    impostor = type("PCG64", (np.random.PCG64,), {})
    for bits in (Mine, impostor):
        with pytest.raises(TypeError, match=r"rng .*PCG64, PCG64DXSM, .* (Mine|PCG64)$"):
            checked.generator_to_json(np.random.Generator(bits(1)))


STATES = [
    (np.random.PCG64, "bit_generator", "Mine", "it must use one of PCG64, .*, got 'Mine'"),
    (np.random.PCG64, "bit_generator", 3, "must be of type str"),
    (np.random.PCG64, "state", 3, "must be of type dict"),
    (np.random.PCG64, "state", {"inc": 1}, "lacks 'state'"),
    (np.random.PCG64, "state", {"state": 2**128, "inc": 1}, "state must be from 0 to"),
    (np.random.PCG64, "state", {"state": -1, "inc": 1}, "state must be from 0 to"),
    (np.random.PCG64, "state", {"state": 1.5, "inc": 1}, "must be of type int"),
    (np.random.PCG64, "has_uint32", 2, "has_uint32 must be from 0 to 1, got 2"),
    (np.random.PCG64, "has_uint32", True, "must be of type int"),
    (np.random.PCG64, "uinteger", 2**32, "uinteger must be from 0 to"),
    (np.random.MT19937, "state", {"key": [0] * 624, "pos": 625}, "pos must be from 0 to 624, got 625"),
    (np.random.MT19937, "state", {"key": [0] * 624, "pos": -1}, "pos must be from 0 to 624, got -1"),
    (np.random.MT19937, "state", {"key": [0] * 623, "pos": 1}, r"'key' must be uint32 of shape \(624,\)"),
    (np.random.MT19937, "state", {"key": [2**32] * 624, "pos": 1}, "out of bounds for uint32"),
    (np.random.MT19937, "state", {"key": ["1"] * 624, "pos": 1}, "key must be a list of integers"),
    (np.random.MT19937, "state", {"key": [1.5] * 624, "pos": 1}, "key must be a list of integers"),
    (np.random.Philox, "buffer_pos", 5, "buffer_pos must be from 0 to 4, got 5"),
    (np.random.Philox, "buffer_pos", -1, "buffer_pos must be from 0 to 4, got -1"),
    (np.random.Philox, "buffer", [1, 2, 3], r"'buffer' must be uint64 of shape \(4,\)"),
    (np.random.SFC64, "state", {"state": [[1, 2], [3, 4]]}, "state must be a list of integers"),
]


@pytest.mark.parametrize(("bits", "name", "value", "message"), STATES)
def test_a_state_that_is_none_is_refused(bits: type, name: str, value: object, message: str) -> None:
    stored = checked.generator_to_json(np.random.Generator(bits(1)))
    stored["state"][name] = value
    with pytest.raises(CheckpointError, match=f"generator .*{message}"):
        checked.generator_from_json(stored)


@pytest.mark.parametrize(
    "seeds",
    [
        3,
        {},
        {"entropy": "x", "spawn_key": [], "n_children_spawned": 0},
        {"entropy": -1, "spawn_key": [], "n_children_spawned": 0},
        {"entropy": 1, "spawn_key": 3, "n_children_spawned": 0},
        {"entropy": 1, "spawn_key": [], "n_children_spawned": -1},
        {"entropy": 1, "spawn_key": [], "n_children_spawned": 2**40},
        {"entropy": 1, "spawn_key": []},
    ],
)
def test_seeds_that_are_none_are_refused(seeds: object) -> None:
    stored = checked.generator_to_json(np.random.default_rng(1)) | {"seeds": seeds}
    with pytest.raises(CheckpointError, match="generator"):
        checked.generator_from_json(stored)


@pytest.mark.parametrize("stored", [None, 3, [], "state", {}, {"state": {}}, {"state": {"bit_generator": "PCG64"}}])
def test_what_is_no_generator_is_refused(stored: object) -> None:
    with pytest.raises(CheckpointError, match="generator"):
        checked.generator_from_json(stored)


def test_global_random_numbers_are_left_alone() -> None:
    before = pickle.dumps(np.random.get_state())
    copied(np.random.default_rng(1))
    assert pickle.dumps(np.random.get_state()) == before
