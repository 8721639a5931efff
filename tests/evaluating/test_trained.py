"""Policies are loaded without executing anything, act as in rollouts, and are evaluated."""

import dataclasses
import pickle
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from envs.kernel import Criterion
from tdpo_baselines.evaluating.trained import Trained, evaluate, judge, load
from tdpo_baselines.export import export
from tdpo_baselines.options import callables, registry
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

ENVIRONMENT = "pendulum-20hz"


def trained(algorithm: str, state: dict, **options) -> Trained:
    """Return a policy that does nothing."""
    options = {"hidden_sizes": [4], **options}
    policy = {"theta": np.zeros(roller_of(algorithm, options).num_parameters), **state}
    state = {"policy": policy, "progress": {"iteration": np.asarray(7)}}
    return Trained(RunConfig(algorithm, ENVIRONMENT, 0, options, {}), state)


def stranger(environment: str, env_options: dict, given_env: str | None = None) -> Trained:
    """Return a run that someone else may have made."""
    return Trained(RunConfig("tdpo", environment, 0, {}, env_options), {"policy": {"theta": np.zeros(3)}}, given_env)


def roller_of(algorithm: str, options: dict):
    environment = registry.make_environment(ENVIRONMENT, registry.resolve_options(ENVIRONMENT, {}))
    return registry.make_roller(environment, registry.algorithm(algorithm).Config.from_values(options))


def test_payoff_is_the_discounted_average_of_the_rewards():
    evaluation = evaluate(trained("tdpo", {}, gamma=0.9), num_episodes=3, seed=1)
    weights = 0.9 ** np.arange(evaluation.environment.horizon)
    rewards = evaluation.rollouts.rewards
    np.testing.assert_allclose(evaluation.results["return"], rewards.sum(axis=1))
    np.testing.assert_allclose(evaluation.results["discounted_return"], rewards @ weights)
    np.testing.assert_allclose(evaluation.results["payoff"], rewards @ weights / weights.sum())


def test_tdpo_has_no_noise_because_it_explores_in_branches_alone():
    noisy = evaluate(trained("tdpo", {}), num_episodes=2, is_stochastic=True)
    assert not noisy.has_noise
    assert np.array_equal(noisy.results["return"], evaluate(trained("tdpo", {}), num_episodes=2).results["return"])


@pytest.mark.parametrize(
    ("algorithm", "state", "options", "std"),
    [("ppo1", {"log_std": np.log([1.5])}, {}, 1.5), ("td3", {}, {"noise_std": 0.75}, 0.75 * 2)],
)
def test_return_with_exploration_is_that_of_noise_of_its_deviation(algorithm, state, options, std):
    policy = trained(algorithm, state, **options)
    evaluation = evaluate(policy, num_episodes=400, seed=1)
    noisy = evaluate(policy, num_episodes=400, seed=1, is_stochastic=True)
    assert noisy.has_noise and not evaluation.has_noise
    roller, states = roller_of(algorithm, {"hidden_sizes": [4], **options}), evaluation.start_states
    noise = std * np.random.default_rng(7).standard_normal((400, roller.horizon, 1))
    theta = np.zeros(roller.num_parameters)
    expected = roller.rollouts(theta, states, offsets=noise, num_recorded=roller.horizon).rewards.sum(axis=1)
    without, found = evaluation.results["return"], noisy.results["return"]
    assert np.std(found - without) == pytest.approx(np.std(expected - without), rel=0.15)  # grows with the noise


@pytest.mark.parametrize("name", ["harmful:Some-v0", "gym:harmful:Some-v0"])
def test_module_that_a_run_names_is_imported_only_on_request(tmp_path, monkeypatch, name):
    (tmp_path / "harmful.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=f"if you trust it, pass --env {name}"):
        evaluate(stranger(name, {}), num_episodes=1)
    assert not (tmp_path / "done").exists()
    with pytest.raises(Exception):  # noqa: B017  it registers nothing
        evaluate(stranger(name, {}, given_env=name), num_episodes=1)
    assert (tmp_path / "done").exists()
    sys.modules.pop("harmful")


def test_kernel_that_a_run_names_is_one_of_ours(tmp_path):
    options = {"kernel": "os:system", "command": f"touch {tmp_path}/done"}
    with pytest.raises(ValueError, match="kernel must be one of|env.command of the run is the file"):
        evaluate(stranger("envs:tdpo/PendulumNLR-v0", options), num_episodes=1)
    assert not (tmp_path / "done").exists()


def save(folder: RunFolder, name: str, policy: Trained) -> None:
    config = policy.config.to_json()
    checkpoint.save(getattr(folder, name), policy.iteration, {**policy.state, "config": config}, keep=1)


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run with a newest and a best checkpoint."""
    folder, newest, best = RunFolder(tmp_path / "run"), trained("tdpo", {}), trained("tdpo", {})
    folder.open(newest.config, is_resumed=False)
    best.state["progress"]["iteration"] = np.asarray(3)
    save(folder, "checkpoints", newest)
    save(folder, "best", best)
    return folder


def test_newest_best_or_a_single_checkpoint_is_loaded(run):
    single = run.checkpoints / "iteration-000000007"
    assert load(run.path).iteration == load(single).iteration == 7 and load(run.path, use_best=True).iteration == 3
    with pytest.raises(ValueError, match="--best chooses among a run's checkpoints"):
        load(single, use_best=True)


def test_folders_of_checkpoints_are_loaded_too(run):
    assert load(run.best).iteration == 3 and load(run.checkpoints).iteration == 7
    with pytest.raises(ValueError, match="--best chooses among a run's checkpoints"):
        load(run.best, use_best=True)


@pytest.mark.parametrize("delay_steps", [0, 3])
def test_acting_in_the_environment_gives_the_returns_of_the_evaluation(delay_steps):
    policy = trained("tdpo", {})
    policy.config.env_options["delay_steps"] = delay_steps
    policy.theta[:] = np.random.default_rng(0).standard_normal(policy.theta.size)
    expected = policy.evaluate(num_episodes=2, seed=3)
    for start, steps in zip(expected.start_states, expected.rollouts.rewards):
        angle, rate = start[:2]
        observation, _ = policy.env.reset(options={"angle": angle, "rate": rate})
        rewards = []
        while len(rewards) < len(steps):
            observation, reward, *_ = policy.env.step(policy.act(observation))
            rewards.append(reward)
        assert np.array_equal(rewards, steps)


def test_actions_of_many_observations_are_those_of_each_and_within_limits():
    policy = trained("tdpo", {})
    policy.theta[:] = 9 * np.random.default_rng(0).standard_normal(policy.theta.size)
    observations = np.random.default_rng(1).standard_normal((2, 5, 3))
    actions = policy.act(observations)
    assert actions.shape == (2, 5, 1) and abs(actions).max() == 2.0
    assert np.array_equal(actions[1, 3], policy.act(observations[1, 3].tolist()))
    with pytest.raises(ValueError, match=r"observation must have 3 numbers, got shape \(2,\)"):
        policy.act([1.0, 2.0])


def make_pendulum(g: float = 10.0):
    return gymnasium.make("Pendulum-v1", g=g)


def test_run_of_a_callable_asks_for_it_again(tmp_path):
    config = RunConfig("tdpo", callables.name_of(make_pendulum), 0, {"hidden_sizes": [4]}, {"g": 5.0})
    state = {"policy": trained("tdpo", {}).state["policy"]}
    gymnasium.registry.pop(config.environment, None)
    with pytest.raises(ValueError, match="runs do not hold callables; pass it again"):
        Trained(config, state).evaluate(num_episodes=1)
    given = Trained(config, state, make_pendulum)
    assert given.env.unwrapped.g == 5.0
    changed = dataclasses.replace(config, environment=callables.without_hash(config.environment) + "-0123456789ab")
    assert Trained(changed, state, make_pendulum).env.unwrapped.g == 5.0
    assert given.evaluate(num_episodes=1).results["return"][0] < 0


def test_policy_can_be_pickled_after_it_was_used():
    policy = trained("tdpo", {})
    before = policy.evaluate(num_episodes=2).results["return"]
    copy = pickle.loads(pickle.dumps(policy))
    assert np.array_equal(copy.evaluate(num_episodes=2).results["return"], before)


def test_run_without_checkpoints_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a run folder"):
        load(tmp_path)
    RunFolder(tmp_path).open(trained("tdpo", {}).config, is_resumed=False)
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        load(tmp_path)
    with pytest.raises(ValueError, match="has no best parameters yet"):
        load(tmp_path, use_best=True)


def test_parameters_that_do_not_fit_the_config_are_refused():
    wrong = trained("tdpo", {"theta": np.zeros(3)})
    with pytest.raises(ValueError, match="the checkpoint has 3 parameters, its config asks for"):
        evaluate(wrong, num_episodes=1)


def test_start_values_are_used():
    evaluation = evaluate(trained("tdpo", {}), num_episodes=2, start_values={"angle": 0.5})
    assert evaluation.start_states[0, 0] == evaluation.start_states[1, 0] == 0.5


def test_starts_that_are_all_the_same_are_evaluated_once_unless_the_policy_acts_with_noise():
    place = {"start_values": {"angle": 0.1, "rate": 0.0}}
    policy = trained("ppo1", {"log_std": np.zeros(1)})
    assert len(evaluate(policy, num_episodes=5, **place).results["return"]) == 1
    noisy = evaluate(policy, num_episodes=5, is_stochastic=True, **place).results["return"]
    assert len(noisy) == 5 and len(set(noisy)) == 5


def test_verdict_is_on_the_means_and_counts_episodes_with_its_own_discount():
    criterion = Criterion("high", lambda measures: measures["payoff"] > -0.5, gamma=0.5)
    environment = SimpleNamespace(criterion=criterion, horizon=2)
    rewards = np.array([[-1.2, 0.0], [0.0, -1.2], [0.0, 0.0]])  # payoffs -0.8, -0.4, 0
    verdict = judge(environment, rewards, {"payoff": np.full(3, -9.0)})
    assert verdict == ("high", True, 2, 3) and str(verdict) == "high (2 of 3)"
    assert str(verdict._replace(is_met=False)) == "not high (2 of 3)"
    assert judge(SimpleNamespace(criterion=None), rewards, {}) is None


@pytest.fixture
def file(run, tmp_path):
    """Return an exported policy."""
    export(load(run.path), tmp_path / "npz", format="npz")
    return tmp_path / "npz/policy.npz"


def change(file, **arrays) -> None:
    with np.load(file) as found:
        contents = dict(found)
    np.savez(file, **contents | arrays)


def test_exported_policy_acts_as_the_run(run, file):
    policy, again = load(run.path), load(file)
    assert again.sha256 == policy.sha256 and again.iteration == 7 and again.config.environment == ENVIRONMENT
    assert np.array_equal(
        again.evaluate(num_episodes=2).results["return"], policy.evaluate(num_episodes=2).results["return"]
    )


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"config": "{}"}, "is not an exported policy, or is damaged"),
        ({"config": "[" * 100_000}, "is not an exported policy, or is damaged"),
        ({"hidden": "relu"}, "the file's network or action limits are not those of its config"),
        ({"high": np.array([0.5])}, "was exported with an output limit: export it without"),
    ],
)
def test_file_that_does_not_agree_with_its_config_is_refused(file, arrays, message):
    change(file, **arrays)
    with pytest.raises(ValueError, match=message):
        _ = load(file).network


def test_module_that_a_file_names_is_imported_only_on_request(file):
    config = RunConfig("tdpo", "harmful:Some-v0", 0, {"hidden_sizes": [4]}, {})
    change(file, config=config.to_json())
    with pytest.raises(ValueError, match="if you trust it, pass --env harmful:Some-v0"):
        _ = load(file).network


def test_options_of_the_environment_can_be_changed():
    policy = dataclasses.replace(trained("tdpo", {}), env_changes={"delay_steps": 2})
    assert policy.environment_options["delay_steps"] == 2 and policy.environment.state_size > 4
