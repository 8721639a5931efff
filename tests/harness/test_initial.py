"""A run begins from another policy, whatever the algorithm, and needs it no more when it is resumed."""

import json

import numpy as np
import pytest
from programs import deterministic_part

from tdpo_baselines import run
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.evaluating.trained import Network, load
from tdpo_baselines.harness.initial import begin_with, fit
from tdpo_baselines.options import registry

ENVIRONMENT = "delayed-spring"
SMALL = ("--env", ENVIRONMENT, "--quiet", "--set", "hidden_sizes=4")
OPTIONS = {
    "tdpo": {},
    "trpo": {"steps_per_trajectory": 64},
    "ppo1": {"steps_per_trajectory": 64},
    "ddpg": {"batch_size": 8, "random_timesteps": 0},
    "td3": {"batch_size": 8, "random_timesteps": 0},
    "ars": {},
    "cma": {},
}


def train(folder, *arguments: str) -> int:
    return run.main([*SMALL, "--num_iterations", "2", "--log_dir", str(folder), *arguments])


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Return the folder of a run with a linear policy."""
    folder = tmp_path_factory.mktemp("linear") / "run"
    assert run.main([*SMALL[:3], "--alg", "ars", "--num_iterations", "2", "--log_dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_every_algorithm_begins_with_the_policy_of_another_run(name, tmp_path):
    options = [f"--{key}={value}" for key, value in OPTIONS[name].items()]
    assert train(tmp_path / "first", "--alg", name, *options) == 0
    source = tmp_path / "first"
    assert train(tmp_path / "second", "--alg", name, "--seed", "5", "--init", str(source), *options) == 0
    begun = load(tmp_path / "second/checkpoints/iteration-000000000")
    assert np.array_equal(begun.theta, load(source).theta) and begun.iteration == 0


@pytest.mark.parametrize("name", ["tdpo", "trpo", "ars", "cma"])
def test_statistics_of_observations_do_not_change_the_initial_policy(name):
    algorithm = registry.algorithm(name)
    environment = registry.make_environment(ENVIRONMENT, registry.resolve_options(ENVIRONMENT, {}))
    config = algorithm.Config.from_values({"hidden_sizes": [4], **OPTIONS[name]}).fit(environment)
    roller = registry.make_roller(environment, config)
    learner = algorithm.Learner(config, roller, Comm(), 0)
    theta = np.random.default_rng(1).standard_normal(roller.num_parameters)
    begin_with(learner, theta)
    assert np.array_equal(learner.theta, theta)
    stats = learner.state()["observation_stats"]
    assert stats["count"] == 1 and np.array_equal(stats["squares"], np.ones(2))
    if name == "tdpo":  # judges its first step in the second update
        learner.iterate(0, 0)
        assert np.array_equal(learner.theta, theta) and learner.state()["observation_stats"]["count"] > 1


def test_linear_policy_becomes_the_linear_part_of_a_network(linear, tmp_path):
    policy = load(linear)
    assert train(tmp_path / "run", "--init", str(linear)) == 0
    begun = load(tmp_path / "run/checkpoints/iteration-000000000")
    observations = np.random.default_rng(0).standard_normal((50, 2))
    assert begun.network.sizes == (2, 4, 1) and begun.network.style.has_linear_part
    np.testing.assert_allclose(begun.act(observations), policy.act(observations), rtol=1e-12)
    assert np.ptp(begun.act(observations)) > 0 and begun.theta[:8].any()  # the hidden layer can learn


def test_networks_that_do_not_fit_are_refused(linear):
    policy = load(linear)
    for sizes, style in (((2, 4, 1), mlp.PLAIN), ((3, 4, 1), policy.network.style._replace(has_linear_part=True))):
        with pytest.raises(
            ValueError, match="the policy has layers 2-1, tanh, output in half ranges, the run asks for"
        ):
            fit(policy, Network(sizes, style), seed=0)


def test_run_notes_name_and_hash_and_is_resumed_without_the_file(linear, tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert train(whole, "--init", str(linear)) == 0
    assert train(parted, "--init", str(linear), "--num_iterations", "1") == 0
    noted = json.loads((parted / "config.json").read_text())["init"]
    assert noted == {"from": str(linear), "sha256": load(linear).sha256}
    hidden = linear.rename(linear.parent / "hidden")
    try:
        assert run.main(["--log_dir", str(parted), "--resume", "--num_iterations", "2", "--quiet"]) == 0
        assert train(parted, "--resume", "--init", str(linear)) == 0  # the same command again
    finally:
        hidden.rename(linear)
    assert deterministic_part(parted) == deterministic_part(whole)
    assert json.loads((parted / "config.json").read_text())["init"] == noted


def test_another_initial_policy_is_another_run(linear, tmp_path, capsys):
    assert train(tmp_path / "run", "--init", str(linear)) == 0
    assert train(tmp_path / "run", "--resume", "--init", "pretrained:cart-pole") == 2
    assert f"holds another run (init: {linear} here, pretrained:cart-pole asked for)" in capsys.readouterr().err


def test_repeated_run_begins_from_the_same_policy_or_is_refused(linear, tmp_path, capsys):
    first, again = tmp_path / "first", tmp_path / "again"
    assert train(first, "--init", str(linear)) == 0
    repeat = ["--quiet", "--config", str(first / "config.json"), "--log_dir"]
    assert run.main([*repeat, str(again)]) == 0
    assert deterministic_part(again) == deterministic_part(first)
    config = json.loads((first / "config.json").read_text())
    config["init"]["sha256"] = "0" * 64
    (first / "config.json").write_text(json.dumps(config))
    assert run.main([*repeat, str(tmp_path / "third")]) == 2
    assert "has other parameters than the run that --config repeats" in capsys.readouterr().err


@pytest.mark.slow
def test_two_ranks_begin_with_the_same_bits(linear, tmp_path, program):
    for ranks in (1, 2):
        done = program("run", *SMALL, "--num_iterations", "2", "--init", str(linear),
                       "--log_dir", str(tmp_path / str(ranks)), ranks=ranks)  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert deterministic_part(tmp_path / "1") == deterministic_part(tmp_path / "2")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "nowhere is not a run folder"),
        ("pretrained:nothing", "no policy 'nothing' in the package"),
        ("pretrained:cart-pole", "the policy was trained in cart-pole"),
    ],
)
def test_initial_policy_that_cannot_be_used_is_refused_before_anything_is_written(source, message, tmp_path, capsys):
    assert train(tmp_path / "run", "--init", source) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --init ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()
