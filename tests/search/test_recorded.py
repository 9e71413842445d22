"""Searches with fixed seeds do what they did before: see `recorded.py`."""

import pytest

from tests.search.recorded import SEARCHES, Recorded, rounding

ROUNDING = "a7d06abbf02d"  # of the machine on which the table was recorded
RECORDED = {
    "ellipsoid full": Recorded(980, "0", "5f9483de7579"),
    "ellipsoid triangular": Recorded(980, "0", "c08ae5d012c2"),
    "ellipsoid block_triangular:k=3": Recorded(1580, "0", "f7368de2bc5b"),
    "ellipsoid heisenberg:k1=1,k2=1": Recorded(1580, "0", "779291204ca7"),
    "ellipsoid diagonal": Recorded(580, "0.00907873", "44f0b4dd73a6"),
    "ellipsoid full, popsize 60": Recorded(3060, "0", "71f9bc8aa111"),
    "ellipsoid full without decoding": Recorded(1610, "0", "45f428ddcfc3"),
    "ellipsoid mirrored": Recorded(940, "0", "8bd4b3c17f3f"),
    "ellipsoid paper": Recorded(10020, "0", "ec0b082dd425"),
    "ellipsoid of 70": Recorded(4480, "0.00907089", "fa36d7cc0696"),
    "ellipsoid bounded": Recorded(290, "10.4212", "b460545ee8ca"),
    "ellipsoid with cov0": Recorded(950, "0", "6438a0f4ca20"),
    "ellipsoid with noise adaptation": Recorded(680, "0.000827991", "e76ab369c540"),
    "ellipsoid with tpa": Recorded(930, "0", "e21ce3d31edc"),
    "ellipsoid with fixed, integer and bounds": Recorded(1500, "3.89635", "392b9a1d2589"),
    "corner of a box": Recorded(36, "0", "8fc218c70595"),
    "rosenbrock": Recorded(1323, "0", "a729e6b0a457"),
    "integers": Recorded(216, "0.6", "4fe6311d0d3f"),
    "rastrigin with ipop": Recorded(9814, "0", "9ea695f20524"),
    "rastrigin with bipop": Recorded(10714, "0", "3062d5612db6"),
    "frame": Recorded(1056, "0", "0f711f76bec8"),
    "frame of 4 axes, bounded": Recorded(759, "0.0914371", "166b782dd5b9"),
    "frame with noise adaptation": Recorded(990, "0.0094493", "8a66acc2d046"),
    "frame paper": Recorded(9559, "0.996869", "8cf48b92b3ff"),
    "frame of 100": Recorded(3000, "0.000234818", "0975c5d4cd18"),
    "model": Recorded(454, "0", "611f07e2f9d0"),
    "model, diagonal": Recorded(120, "0.0865424", "3fc8cad44aca"),
    "model, frame": Recorded(150, "6.86968", "4b7e02f79e54"),
    "model, bounded and fixed": Recorded(120, "118.106", "c75fd937dd9a"),
    "model, rastrigin": Recorded(120, "31.7906", "afc42f050ba3"),
    "model, Space": Recorded(30, "0.000154029", "9b5365b67a23"),
    "model, late": Recorded(150, "12.4848", "153ff03fdc83"),
    "model, foreign": Recorded(150, "0.674334", "b2ebf2b55a37"),
    "model, data": Recorded(100, "3.39114", "ad48c5fd697a"),
    "constraints": Recorded(2500, "31.5396", "5536a992e202"),
    "constraints kept": Recorded(1500, "0.0990894", "73d358690c29"),
    "constraints, integers": Recorded(1000, "89.6232", "659ae0948b55"),
    "constraints, restarts": Recorded(4000, "0.997479", "6db7e287ac2b"),
    "constraints, told": Recorded(1500, "0", "f05653dd9526"),
    "Space": Recorded(408, "0", "be9e6d5fd6a5"),
    "Space with choices": Recorded(1500, "0.04", "e4fa90f51eee"),
    "Space with choices and constraints": Recorded(1500, "0.460223", "361f5e47b266"),
    "Space with choices and restarts": Recorded(4000, "0.04", "d7d5d7894896"),
    "late": Recorded(1510, "0", "00348854fb57"),
    "late, bounded": Recorded(3220, "0", "404add3442dc"),
    "late, tpa": Recorded(2300, "0", "55e6c8d6f426"),
    "foreign": Recorded(2871, "0", "4fe8d2bce588"),
    "data": Recorded(1184, "0", "45eeae3bbaca"),
    "Gaussian": Recorded(819, "0", "ee2bd8e6ff26"),
    "Normal": Recorded(114, "0", "67a485942a95"),
    "spd": Recorded(534, "0", "a8fe4f41715a"),
    "matrix": Recorded(999, "0", "b49337605344"),
    "basins": Recorded(828, "0", "4917a86415ce"),
    "basins bounded": Recorded(3000, "0.561947", "67f872b5858f"),
}
# Two models that tell equally well are told apart by their last digits
DEPEND_ON_ROUNDING = {
    "model",
    "model, diagonal",
    "model, frame",
    "model, bounded and fixed",
    "model, rastrigin",
    "model, Space",
    "model, late",
    "model, foreign",
    "model, data",
}


def test_every_search_of_the_table_is_recorded() -> None:
    assert SEARCHES.keys() == RECORDED.keys() >= DEPEND_ON_ROUNDING


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_does_what_was_recorded(name: str) -> None:
    if name in DEPEND_ON_ROUNDING and rounding() != ROUNDING:
        pytest.skip("this machine rounds differently")
    assert SEARCHES[name](1.0) == RECORDED[name]
