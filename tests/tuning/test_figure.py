"""The picture of a search."""

import math

from tuning_problem import DEFINITION, PRIOR, finish

from tdpo_baselines.tuning.figure import draw
from tdpo_baselines.tuning.study import Plan, Study


def test_best_so_far_begins_with_the_best_of_the_sweep(tmp_path):
    study = Study(Plan(DEFINITION, "random"), tmp_path, PRIOR[:2])
    study.begin_round(3)
    for evaluation, value in zip(study.rounds()[0], (-5000.0, -7.0)):
        for run in study.runs(evaluation):
            finish(run, value)
    points, best, sweep = draw(study).axes[0].get_lines()
    assert list(points.get_ydata())[:2] == [-5000.0, -7.0] and math.isnan(points.get_ydata()[2])
    assert list(best.get_ydata()) == [-2600.0, -7.0, -7.0] and sweep.get_ydata()[0] == -2600.0
