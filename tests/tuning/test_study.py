"""A search on disk, without training."""

import csv
import json
import math

import pytest
from tuning_problem import DEFINITION, PRIOR, finish

from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.run import parse as parse_run
from tdpo_baselines.sweeping.definition import Definition, make_runs, write
from tdpo_baselines.tuning.libraries import LIBRARIES
from tdpo_baselines.tuning.study import Evaluation, Plan, Study, importances, read_sweep, write_journal


@pytest.fixture(params=LIBRARIES)
def plan(request):
    pytest.importorskip(LIBRARIES[request.param][0])
    return Plan(DEFINITION, request.param, variant="B", batch=2)


def test_interrupted_search_proposes_what_an_undisturbed_one_does(plan, tmp_path):
    for name in ("a", "b"):
        Study(plan, tmp_path / name, PRIOR).begin_round(2)
        for evaluation in Study(plan, tmp_path / name, PRIOR).rounds()[0]:  # as a new process sees it
            for run in Study(plan, tmp_path / name, PRIOR).runs(evaluation):
                finish(run, -50.0 * run.resolved.config.options["gamma"])
        Study(plan, tmp_path / name, PRIOR).begin_round(2)
    first, second = (Study(plan, tmp_path / name, PRIOR).rounds() for name in "ab")
    assert first == second and len(first) == 2 and first[0] != first[1]
    assert all(one.seeds == (0, 1, 2) for group in first for one in group)


@pytest.mark.parametrize(
    ("variant", "num", "num_seeds", "largest"), [("A", 30, 1, 2), ("B", 10, 3, 2), ("C", 30, 1, 99)]
)
def test_variants_of_the_paper(tmp_path, variant, num, num_seeds, largest):
    plan = Plan(DEFINITION, "random", variant)
    study = Study(plan, tmp_path, [])
    study.begin_round(plan.num_per_round)
    (group,) = study.rounds()
    assert len(group) == num and {len(one.seeds) for one in group} == {num_seeds}
    seeds = [seed for one in group for seed in one.seeds]
    assert max(seeds) <= largest and len(set(seeds)) > 1


def test_winner_is_written_for_config_and_history_has_the_best_so_far(tmp_path):
    study = Study(Plan(DEFINITION, "random", batch=3), tmp_path, PRIOR[:2])
    study.begin_round(3)
    for evaluation, value in zip(study.rounds()[0], (-5000.0, -7.0)):  # the third is not finished
        for run in study.runs(evaluation):
            finish(run, value)
    study.write_history()
    rows = list(csv.DictReader((tmp_path / "history.csv").open()))
    assert [float(row["best_score"]) for row in rows] == [-3700.0, -2600.0, -2600.0, -7.0, -7.0]
    assert rows[4]["note"] == "not finished" and rows[4]["score"] == "nan"
    winner = study.winner()
    study.write_winner(winner, [-8.0, -10.0])
    assert json.loads((tmp_path / "summary.json").read_text())["fresh_mean"] == -9.0
    config = [
        "--alg",
        "trpo",
        "--env",
        "pendulum-nlr",
        "--num_iterations",
        "2",
        "--config",
        str(tmp_path / "best.json"),
    ]
    assert resolve(parse_run(config)).config.options == study.runs(winner)[0].resolved.config.options


def test_values_that_do_not_fit_together_are_noted_as_a_failure(tmp_path):
    study = Study(Plan(DEFINITION, "random"), tmp_path, [])
    evaluation = study.with_score(Evaluation(0, {"gamma": 0.9, "num_trajectories": 10**9}, (0,)))
    assert math.isnan(evaluation.score) and "num_trajectories must be" in evaluation.note
    with pytest.raises(ValueError, match="no evaluation in .* has succeeded"):
        study.winner()


def test_end_of_a_range_that_is_not_valid_is_refused(tmp_path):
    definition = Definition(fixed=DEFINITION.fixed, cartesian={"max_kl": [0.01, 100]})
    with pytest.raises(ValueError, match=r"setting 'max_kl=100\.0': max_kl must be"):
        Study(Plan(definition, "random"), tmp_path / "out", [])
    assert not (tmp_path / "out").exists()


def test_folder_of_another_study_is_refused(tmp_path):
    Study(Plan(DEFINITION, "random"), tmp_path, [])
    Study(Plan(DEFINITION, "random"), tmp_path, [])
    with pytest.raises(ValueError, match=r"holds another study \(other library, seed\); pass another --out"):
        Study(Plan(DEFINITION, "optuna", seed=1), tmp_path, [])


def test_sweep_gives_the_evaluations_that_fit(tmp_path):
    swept = Definition(fixed=DEFINITION.fixed, ovat={"gamma": [0.99, 0.95, 0.5], "max_kl": [0.01, 0.02]}, seeds=(0, 1))
    runs = make_runs(swept, tmp_path)
    write(swept, tmp_path)
    for number, run in enumerate(runs):
        finish(run, -float(number))
    definition = Definition(fixed={**DEFINITION.fixed, "max_kl": 0.01}, cartesian={"gamma": [0.9, 0.999]})
    found = read_sweep(tmp_path, definition)  # without gamma=0.5 (outside) and max_kl=0.02 (other options)
    assert [(one.values, one.seeds, one.score) for one in found] == [
        ({"gamma": 0.99}, (0, 1), -0.5),
        ({"gamma": 0.95}, (0, 1), -2.5),
    ]
    with pytest.raises(ValueError, match="has no finished setting of this search space"):
        read_sweep(tmp_path, Definition(fixed={**DEFINITION.fixed, "max_kl": 0.5}, cartesian={"gamma": [0.9, 0.999]}))


def test_parameter_that_decides_the_score_is_the_important_one(tmp_path):
    pytest.importorskip("optuna")
    study = Study(Plan(DEFINITION, "random"), tmp_path, [])
    found = importances(study.space, PRIOR)
    assert found["gamma"] > found["num_trajectories"] and sum(found.values()) == pytest.approx(1)
    assert importances(study.space, PRIOR[:1]) == {}


def test_optuna_reads_the_journal(tmp_path):
    optuna = pytest.importorskip("optuna")
    study = Study(Plan(DEFINITION, "random"), tmp_path, PRIOR)
    path = tmp_path / "optuna.journal"
    for _ in range(2):
        write_journal(path, study.space, [*PRIOR, PRIOR[0]._replace(score=math.nan, note="failed")])
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    (name,) = optuna.study.get_all_study_names(storage)
    loaded = optuna.load_study(study_name=name, storage=storage)
    assert loaded.best_params == PRIOR[6].values and len(loaded.trials) == 12
    assert optuna.importance.get_param_importances(loaded).keys() == {"gamma", "num_trajectories"}
