import shutil

import numpy as np
import pytest
from programs import ROOT


@pytest.fixture
def model(benchmark):
    return benchmark("scaling_model")


def test_published_tables_are_those_of_the_measurements(model, tmp_path):
    shutil.copy(ROOT / "docs" / "scaling.json", tmp_path)
    model.report(tmp_path / "scaling.json")
    assert (tmp_path / "scaling-tables.md").read_text() == (ROOT / "docs" / "scaling-tables.md").read_text()
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("kind", "num_bytes", "num_ranks", "expected"),
    [("gather", 100, 8, 3), ("gather", 10**6, 8, 7), ("broadcast", 10**6, 8, 3), ("sum", 8, 8, 6), ("sum", 8, 1, 0)],
)
def test_rounds_follow_the_kind_and_the_size(model, kind, num_bytes, num_ranks, expected):
    assert model.num_rounds(kind, num_bytes, num_ranks) == expected


def test_factors_are_fitted_and_never_negative(model):
    rows = [(1, 2.0), (3, 1.0), (2, 5.0)]
    np.testing.assert_allclose(model.fit_positive(rows, [a * 0.5 + b * 0.25 for a, b in rows]), [0.5, 0.25])
    assert min(model.fit_positive(rows, [a * 0.5 for a, _ in rows])) >= 0
    assert min(model.fit_positive([(1, 1), (1, 2)], [2.0, 1.0])) >= 0


def test_group_size_gives_the_measured_numbers_of_groups(model):
    works = [{"num_trajectories": 72, "num_groups": 18}, {"num_trajectories": 1152, "num_groups": 288}]
    assert model.trajectories_per_group(works) == 4
