"""Every environment through Gymnasium: the same numbers as the compiled rollouts, saved, restored, pickled."""

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from leg_states import standing_policy
from programs import ROOT

from envs import IDS, gym_env
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

MAKE = {
    "nlr": ("PendulumNLR-v0", {}),
    "nlr-cos-sin": ("PendulumNLR-v0", {"variant": 5, "observation": "cos_sin", "start_scale": 1}),
    "20hz": ("PendulumLong-v0", {"control_rate_hz": 20}),
    "100hz": ("PendulumLong-v0", {"control_rate_hz": 100, "delay_steps": 2}),
    "leg": ("Leg-v0", {}),
    "leg-noise": ("Leg-v0", {"sensor_noise": True}),
    "leg-stochastic": ("LegStochastic-v0", {}),
    "leg-100hz": ("LegStochastic100Hz-v0", {}),
    "double-well": ("DoubleWell-v0", {}),
    "two-mass": ("TwoMass-v0", {}),
}


@pytest.fixture(params=MAKE, ids=str)
def env(request):
    name, options = MAKE[request.param]
    return gymnasium.make(f"envs:tdpo/{name}", **options)


@pytest.fixture
def kernel(env):
    return env.unwrapped.kernel


@pytest.fixture
def roller(kernel):
    return KernelRoller(kernel, (16, 16), gamma=0.99)


@pytest.fixture
def theta(roller):
    if roller.layer_sizes[-1] == 2:
        return standing_policy(roller.layer_sizes)
    return mlp.init_parameters(roller.layer_sizes, np.random.default_rng(3), output_gain=5.0)


def test_gymnasium_accepts_the_environment(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_gymnasium_path_equals_compiled_path_bit_for_bit(env, kernel, roller, theta):
    start = np.full(roller.start_size, 0.3)
    compiled = roller.rollouts(theta, roller.start_states(start[None]))
    observation, _ = env.reset(seed=0, options={"start": start})
    forward = mlp.Forward(roller.layer_sizes)
    has_ended, t = False, 0
    while not has_ended:
        assert np.array_equal(observation, compiled.observations[0, t])
        action = forward(theta, observation)
        observation, reward, terminated, truncated, info = env.step(action)
        assert reward == compiled.rewards[0, t]
        has_ended = terminated or truncated
        t += 1
    assert t == compiled.lengths[0] == roller.horizon
    assert (terminated, truncated) == (kernel.is_horizon_terminal, not kernel.is_horizon_terminal)
    assert np.array_equal(env.unwrapped.state[:-1], compiled.final_states[0])
    if kernel.measure is not None:
        assert kernel.measure(kernel.params, compiled.final_states[0]).items() <= info.items()


def test_branch_from_saved_state_equals_replay_bit_for_bit(roller, theta):
    rng = np.random.default_rng(1)
    start, A = roller.start_states(rng.random((1, roller.start_size))), roller.layer_sizes[-1]
    for t in (0, 1, 57, roller.horizon - 1):
        offset = rng.standard_normal((1, 1, A))
        main = roller.rollouts(theta, start, save_steps=np.array([[t]]))
        num_steps = np.array([roller.horizon - t])
        branch = roller.rollouts(theta, main.saved_states[:, 0], num_steps=num_steps, offsets=offset)
        delayed = np.zeros((1, t + 1, A))
        delayed[:, t] = offset[:, 0]
        replay = roller.rollouts(theta, start, offsets=delayed)
        for name in ("observations", "actions", "rewards"):
            ours = getattr(branch, name)[0, : roller.horizon - t]
            assert np.array_equal(ours, getattr(replay, name)[0, t:])
            assert np.array_equal(getattr(main, name)[0, :t], getattr(replay, name)[0, :t])
        assert np.array_equal(branch.final_states, replay.final_states)


def test_actions_are_clipped_to_their_range_and_recorded_as_executed(kernel, roller):
    theta = np.zeros(roller.num_parameters)
    theta[-roller.layer_sizes[-1] :] = 1000.0  # output biases
    starts = roller.start_states(np.full((1, roller.start_size), 0.5))
    actions = roller.rollouts(theta, starts, num_recorded=3).actions
    assert np.all(actions == (kernel.action_high if kernel.is_action_limited else 1000.0))


def test_restored_state_continues_identically(env, kernel):
    env.reset(seed=5)
    actions = np.random.default_rng(2).uniform(-1, 1, (20, kernel.action_size))
    for action in actions:
        env.step(action)
    saved = env.unwrapped.state
    first = [env.step(action)[:2] for action in actions[:5]]
    env.unwrapped.state = saved
    second = [env.step(action)[:2] for action in actions[:5]]
    for (observation, reward), (again, reward_again) in zip(first, second):
        assert np.array_equal(observation, again) and reward == reward_again
    with pytest.raises(ValueError, match=r"state must have \d+ numbers, got shape \(2,\)"):
        env.unwrapped.state = np.zeros(2)


@pytest.mark.parametrize("env_id", IDS)
def test_task_ends_at_its_horizon_where_all_reward_is_paid_there(env_id):
    kernel = gymnasium.make(f"envs:{env_id}", delay_steps=1).unwrapped.kernel
    roller = KernelRoller(kernel, (), gamma=0.99)
    starts = roller.start_states(np.full((1, kernel.start_size), 0.3))
    rewards = roller.rollouts(np.zeros(roller.num_parameters), starts).rewards[0]
    assert rewards.any() and kernel.is_horizon_terminal == (not rewards[:-1].any())


def test_stepping_past_the_end_is_an_error(env, kernel):
    env.unwrapped.reset(seed=0)
    for _ in range(kernel.horizon):
        env.unwrapped.step(np.zeros(kernel.action_size))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.unwrapped.step(np.zeros(kernel.action_size))


def test_bad_start_kernel_and_render_mode_name_the_field():
    env = gymnasium.make("envs:tdpo/PendulumNLR-v0")
    with pytest.raises(ValueError, match="start must be 2 numbers between 0 and 1"):
        env.reset(options={"start": [2.0, 0.0]})
    with pytest.raises(ValueError, match="kernel must be one of .*envs.leg.kernels:simple_kernel, .* got 'os:system'"):
        gym_env.make("os:system")
    with pytest.raises(ValueError, match="render_mode must be None or in"):
        gym_env.make("envs.pendulum.long:long_kernel", render_mode="rgb_array")


def test_pickled_environment_continues_in_another_process(tmp_path):
    env = gymnasium.make("envs:tdpo/LegStochastic-v0", reward_units="code").unwrapped
    env.reset(seed=3)
    for _ in range(50):
        env.step(np.array([1.0, -1.0]))
    (tmp_path / "env.pickle").write_bytes(pickle.dumps(env))
    code = """
import pickle, sys
env = pickle.load(open(sys.argv[1], "rb"))
for _ in range(50):
    observation, reward, *_ = env.step([0.5, 0.5])
print(repr((observation.tolist(), reward, env.np_random.random())))
"""
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "env.pickle")], cwd=ROOT, capture_output=True, text=True
    )
    for _ in range(50):
        observation, paid, *_ = env.step([0.5, 0.5])
    assert process.stdout.strip() == repr((observation.tolist(), paid, env.np_random.random())), process.stderr


def test_environment_made_by_hand_refuses_to_be_pickled():
    env = gym_env.KernelEnv(gymnasium.make("envs:tdpo/PendulumLong-v0").unwrapped.kernel)
    with pytest.raises(TypeError, match=r"only an environment made by gymnasium.make can be pickled"):
        pickle.dumps(env)
