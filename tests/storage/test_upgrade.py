"""Runs of revision 027a713 are evaluated and continued. `data/` holds two of them, and how they went on there."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from tdpo_baselines import evaluate, run
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.options import registry
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunConfig
from tdpo_baselines.storage.upgrade import OLD_NAMES, is_old, upgrade

DATA = Path(__file__).parent / "data"
TD3 = "batch_size=8 buffer_size=60 steps_per_round=100 updates_per_round=2 rounds_per_iteration=2 random_timesteps=100"
TDPO = (
    "variant=basic branch_times=uniform exploration_std=1 c2=0 c1_over_c2=0 delta_max=0.2 delta_decay_steps=2.5e7 "
    "cg_tolerance=0.001 cg_damping=0.3"
)
RUNS = {
    "tdpo": f"--set num_trajectories=4 num_branches=2 {TDPO}",
    "td3": f"--alg td3 --set num_trajectories=2 noise=pink time_limit=bootstrap {TD3}",
}
RETURNS = {"tdpo": -70604.0684559197, "td3": -791729.3907374833}  # of three episodes, by revision 027a713


def test_every_algorithm_of_that_revision_has_its_table():
    assert set(OLD_NAMES) == {"tdpo", "trpo", "ppo1", "ddpg", "td3"} <= set(registry.ALGORITHMS)


def test_name_that_means_different_things_goes_where_its_algorithm_has_it():
    def component_of_log_std(algorithm):
        state = {"config": f'{{"algorithm": "{algorithm}"}}', "theta": np.zeros(1), "log_std": np.ones(1)}
        return next(name for name, arrays in upgrade(state).items() if "log_std" in arrays)

    assert component_of_log_std("tdpo") == "exploration_scale" and component_of_log_std("ppo1") == "policy"


@pytest.mark.parametrize("config", ["nonsense", "{}", '{"algorithm": "other"}'])
def test_old_checkpoint_of_no_run_is_refused(config):
    with pytest.raises(ValueError, match="the checkpoint is not one of a run"):
        upgrade({"theta": np.zeros(1), "config": config})


def test_removed_option_is_dropped_where_it_made_no_difference():
    values = {"algorithm": "tdpo", "environment": "leg", "seed": 0, "env_options": {}}
    assert RunConfig.from_values({**values, "options": {"gamma": 0.9, "max_drop_after": 0.0}}, "").options == {
        "gamma": 0.9
    }
    assert "max_drop_after" in RunConfig.from_values({**values, "options": {"max_drop_after": 1e6}}, "").options


@pytest.mark.parametrize("algorithm", RUNS)
def test_no_array_of_an_old_checkpoint_is_lost(algorithm):
    path = DATA / f"{algorithm}-027a713/checkpoints/iteration-000000003"
    variables = load_tensorflow().train.load_checkpoint(str(path / "state")).get_variable_to_shape_map()
    state = checkpoint.load(path)
    assert not is_old(state) and "progress" in state and "policy" in state
    del state["config"]
    assert len(checkpoint.flatten(state)) == len(variables) - len(["config", "_CHECKPOINTABLE_OBJECT_GRAPH"])


def test_best_parameters_of_an_old_run_are_found():
    best = evaluate.load(DATA / "tdpo-027a713", use_best=True)
    assert best.iteration == 2 and best.theta.shape == evaluate.load(DATA / "tdpo-027a713").theta.shape


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", RUNS)
def test_old_run_evaluates_to_the_same_returns(algorithm):
    trained = evaluate.load(DATA / f"{algorithm}-027a713")
    found = evaluate.evaluate(trained, num_episodes=3, seed=0, start_values={})
    assert trained.iteration == 3
    assert found.results["return"].mean() == pytest.approx(RETURNS[algorithm], rel=1e-12)


def columns_of(path: Path) -> dict[str, list[float]]:
    with open(path) as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", RUNS)
def test_old_run_is_continued_as_by_its_own_revision(tmp_path, algorithm):
    folder = tmp_path / "run"
    shutil.copytree(DATA / f"{algorithm}-027a713", folder)
    arguments = ["--env", "pendulum-nlr", "--seed", "3", *RUNS[algorithm].split(), "hidden_sizes=4"]
    assert run.main([*arguments, "--num_iterations", "6", "--log_dir", str(folder), "--resume"]) == 0
    found, expected = columns_of(folder / "progress.csv"), columns_of(DATA / f"{algorithm}-027a713-continued.csv")
    for name, column in expected.items():
        assert found[name] == pytest.approx(column, rel=1e-5), name  # single precision, and other last digits
    assert not is_old(checkpoint.load_newest(folder / "checkpoints"))
