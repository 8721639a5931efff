"""Other libraries' environments: what is refused, what is restored, what is replayed."""

import gymnasium
import numpy as np
import pytest

from tdpo_baselines.common.sampling.gym_environment import GymEnvironment
from tdpo_baselines.contracts import Environment
from tdpo_baselines.options import registry

IS_RESTORED = {
    "InvertedPendulum-v5": True,
    "Hopper-v5": True,
    "Ant-v5": True,
    "Humanoid-v5": True,
    "Pendulum-v1": False,
}


def make(name, **options):
    if name in registry.TWINS:
        options["compiled"] = "false"
    return registry.make_environment(name, registry.resolve_options(name, options))


@pytest.mark.parametrize("name", IS_RESTORED)
def test_loaded_state_continues_as_it_did_after_another_episode(name):
    environment = make(name, max_episode_steps="40")
    assert isinstance(environment, Environment) and environment.is_restored == IS_RESTORED[name]
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (4, environment.action_size))
    environment.reset(1)
    environment.step(actions[0].copy())
    environment.step(actions[1].copy())
    saved = environment.save()
    assert saved.shape == (environment.state_size,)
    expected = [environment.step(action.copy()) for action in actions[2:]]
    environment.reset(2)
    assert environment.load(saved) == (0 if environment.is_restored else 2)
    for action, (observation, *rest) in zip(actions[2:], expected):
        again, *others = environment.step(action.copy())
        assert np.array_equal(again, observation) and others == rest


def test_state_loaded_after_another_is_that_state():
    environment = make("HalfCheetah-v5")
    environment.reset(1)
    other = environment.save()
    environment.reset(2)
    saved = environment.save()
    environment.load(other)
    environment.load(saved)
    assert np.array_equal(environment.save(), saved)


def test_number_of_replayed_steps_is_the_same_if_the_state_is_the_present_one():
    environment = make("Pendulum-v1")
    environment.reset(0)
    environment.step(np.zeros(1))
    saved = environment.save()
    assert environment.load(saved) == 1
    environment.reset(5)
    assert environment.load(saved) == 1


def test_restored_time_limit_still_ends_the_episode():
    environment = make("InvertedPendulum-v5", max_episode_steps="3")
    environment.reset(0)
    environment.step(np.zeros(1))
    saved = environment.save()
    for _ in range(2):
        environment.load(saved)
        endings = [environment.step(np.zeros(1))[3] for _ in range(2)]
        assert endings == [False, True]


class Unseeded(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        return np.random.random(1), {}  # not from self.np_random

    def step(self, action):
        return np.random.random(1), 0.0, False, False, {}


def test_environment_that_is_not_reproducible_is_refused():
    gymnasium.register("test/Unseeded-v0", entry_point=Unseeded, max_episode_steps=5)
    with pytest.raises(ValueError, match="must draw all its randomness"):
        make("test/Unseeded-v0")


def make_careless(**options):
    return GymEnvironment(gymnasium.make("careless:Careless-v0", disable_env_checker=True, **options))


def test_action_is_recorded_as_it_was_taken_though_the_environment_writes_into_it():
    environment, action = make_careless(fault="writes", first=1), np.array([2.0, -0.25])
    environment.reset(1)
    environment.step(action)
    assert action.tolist() == [1.0, -0.25]
    state = environment.save()
    assert state[1 + 3 + 1 :][:2].tolist() == [1.0, -0.25]  # after step count, observation and seed


@pytest.mark.parametrize("fault", ["nan at the end", "random reward"])
def test_episode_with_a_number_that_is_not_finite_ends_without_a_reward(capfd, fault):
    environment = make_careless(fault=fault, first=70)
    environment.reset(1)
    if fault == "random reward":  # of an action, not of the environment
        results = environment.step(np.array([np.nan, 0.0]))
        what = "action 0 is nan after 0 step(s)"
    else:
        results = [environment.step(np.zeros(2)) for _ in range(70)][-1]
        what = "observation 0 is nan after 70 step(s)"
    assert np.isnan(results[1]) and results[2:] == (True, False)
    assert capfd.readouterr().err == f"[rank 0] Careless-v0: {what} of an episode\n"


def test_replay_that_leads_elsewhere_is_an_error():
    environment = make_careless(fault="random", first=70)  # later than the self-test sees
    environment.reset(1)
    for _ in range(75):
        environment.step(np.zeros(2))
    state = environment.save()
    environment.reset(2)
    with pytest.raises(ValueError, match=r"Careless-v0: 75 step\(s\) again lead elsewhere, .* `self.np_random`"):
        environment.load(state)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("CartPole-v1", {}, "actions must be a vector of continuous numbers"),
        ("Pendulum-v1", {"max_episode_steps": "none"}, "max_episode_steps"),
    ],
)
def test_unsuitable_environment_is_refused_with_a_reason(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


def test_environment_with_other_observations_is_refused():
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=5)
    env.action_space = Unseeded.action_space
    with pytest.raises(ValueError, match=r"observations must be an array of numbers .* got Discrete\(48\)"):
        GymEnvironment(env)


def test_start_values_are_refused():
    with pytest.raises(ValueError, match="unknown start value 'angle'; starts .* are drawn from its seed"):
        make("Pendulum-v1").place(np.zeros(1), {"angle": 1.0})


def test_mujoco_warns_on_standard_error_and_leaves_no_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    environment = make("HalfCheetah-v5")
    for num_steps in (1, 3):  # MuJoCo's text includes the time
        environment.reset(0)
        for _ in range(num_steps):
            environment.step(np.zeros(environment.action_size))
        environment.env.unwrapped.data.qpos[:] = np.nan
        environment.step(np.zeros(environment.action_size))
    assert capfd.readouterr().err.count("Nan, Inf or huge value") == 1
    assert list(tmp_path.iterdir()) == []


def test_replay_returns_the_positions_of_the_model_and_only_mujoco_tasks_have_poses():
    environment = make("InvertedPendulum-v5")
    environment.reset(3)
    start = environment.save()
    actions = np.full((4, 1), 0.5)
    observed = [environment.reset(3)[:2], *(environment.step(action.copy())[0][:2] for action in actions)]
    positions = environment.replay(start, actions)
    np.testing.assert_array_equal(positions, observed)
    model, shown = environment.poses(environment.params, positions)
    assert model.nq == 2 and shown is positions and environment.control_rate_hz == 25
    assert make("Pendulum-v1").poses is None
