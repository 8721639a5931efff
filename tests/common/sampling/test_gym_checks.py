"""Environments of other libraries are refused for what they declare and for what they return."""

import gymnasium
import numpy as np
import pytest
from careless import Careless

from tdpo_baselines.common.sampling import gym_checks
from tdpo_baselines.common.sampling.gym_environment import GymEnvironment

Box = gymnasium.spaces.Box


def make(**options):
    return GymEnvironment(gymnasium.make("careless:Careless-v0", disable_env_checker=True, **options))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no action", r"actions must be a vector of continuous numbers \(a Box\), got Box"),
        ("no range", "action 1 has no range: it is from -0 to 0; leave it out"),
        ("nan at reset", r"observation 0 is nan after 0 step\(s\) of an episode"),
        ("nan at the end", r"observation 0 is nan after 10 step\(s\) of an episode"),
        ("scalar observation", r"step must return an observation of 3 number\(s\), as observation_space says, got 1"),
        ("text observation", "step must return numbers as observation, got 'abc'"),
        ("no reward", "step must return a number as reward, .* got .None, False, False."),
        ("rewards", r"step must return a number as reward, .* got .array\(\[1., 1.\]\), False, False."),
        ("raises", "a test of the environment failed with KeyError: 'broken'"),
        ("exits", "a test of the environment failed with SystemExit: 3"),
        ("random", "two episodes with the same seed and actions differ"),
    ],
)
def test_fault_is_named_before_the_training(fault, message):
    with pytest.raises(ValueError, match=message):
        make(fault=fault)


def test_an_environment_without_faults_is_accepted():
    assert make().action_size == 2


@pytest.mark.parametrize("result", [np.zeros(3), (np.zeros(3),), None])
def test_reset_must_return_observation_and_info(result):
    with pytest.raises(ValueError, match=r"reset must return \(observation, info\), got"):
        gym_checks.read_reset(result, 3)


@pytest.mark.parametrize("result", [(np.zeros(3), 0.0, False, {}), None])
def test_step_must_return_five_values(result):
    with pytest.raises(ValueError, match=r"step must return \(observation, reward, terminated, truncated, info\), got"):
        gym_checks.read_step(result, 3)


def test_observations_are_copies():
    inner = np.zeros(3)
    observation, *_ = gym_checks.read_step((inner, 0, False, False, {}), 3)
    inner[:] = 1
    assert not observation.any()


def test_numbers_of_any_type_are_read():
    result = ([1, 2], np.float32(0.5), np.bool_(True), 0, {})
    observation, *rest = gym_checks.read_step(result, 2)
    assert observation.dtype == np.float64 and rest == [0.5, True, False]


def test_spaces_and_limits_are_read():
    env = Careless()
    env.observation_space = Box(-1, 1, (2, 3))
    assert gym_checks.observation_size(env) == 6
    low, high = gym_checks.action_limits(env)
    assert low.tolist() == [-1, -1] and high.tolist() == [1, 1]
    env.observation_space = Box(-1, 1, (0,))
    with pytest.raises(ValueError, match="observations must be an array of numbers"):
        gym_checks.observation_size(env)
    with pytest.raises(ValueError, match="no time limit; pass --set env.max_episode_steps=N"):
        gym_checks.horizon(env)


def test_first_number_that_is_not_finite_is_described():
    fine, bad = np.ones(2), np.array([0.0, np.inf])
    assert gym_checks.describe_fault(bad, bad, 0.0) == "action 1 is inf"
    assert gym_checks.describe_fault(fine, bad, 0.0) == "observation 1 is inf"
    assert gym_checks.describe_fault(fine, fine, np.nan) == "the reward is nan"
