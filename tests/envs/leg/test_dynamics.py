"""The leg against numbers of an independent simulation, and against itself."""

from functools import partial

import numpy as np
import pytest
from leg_states import IS_REFERENCE_VERSION, REFERENCE, RTOL, observe, place, standing_policy

from envs.leg import dynamics, kernels, model
from envs.leg.params import GROUND_FORCE, HAS_LANDED, IS_BROKEN, POSITION, RATE, TERMS, TORQUE
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


@pytest.fixture(scope="module")
def silent():
    """The stochastic leg without noise, in the units of the reference."""
    return kernels.stochastic_kernel(sensor_noise=False, reward_units="code")


# The reference numbers.


@pytest.mark.parametrize(
    ("name", "command"),
    [("rollout_zero_command", (0.0, 0.0)), ("rollout_constant_command_hip_0.5_knee_-0.3", (0.5, -0.3))],
)
def test_rollout_equals_the_reference(silent, name, command):
    state, rows = place(silent), {row["step"]: row for row in REFERENCE[name]}
    for step in range(1, max(rows) + 1):
        delayed, _ = silent.step(silent.params, state, np.array(command))
        if step in rows:
            row = rows[step]
            for ours, theirs in (
                (state[POSITION : POSITION + 3], row["q"]),
                (state[RATE : RATE + 3], row["v"]),
                (state[TORQUE : TORQUE + 2], row["tau"]),
                (observe(silent, state), row["obs"]),
                (delayed, row["reward_delayed"]),
                (state[TERMS : TERMS + 6].sum(), row["reward_now"]),
            ):
                np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-13)


@pytest.mark.parametrize("name", REFERENCE["zero_command_drops"])
def test_drop_equals_the_reference(silent, name):
    """Through impact, fall and rest. The reference has 8 digits, so that is what its columns are held to."""
    expected = REFERENCE["zero_command_drops"][name]
    start = expected["init"]
    state = place(silent, start["slider"], start["theta_hip"], start["theta_knee"])
    rewards, states = np.zeros(8000), np.zeros((8000, silent.state_size))
    for t in range(8000):
        rewards[t], _ = silent.step(silent.params, state, np.zeros(2))
        states[t] = state
    loose = 1 if IS_REFERENCE_VERSION else 100
    rows = states[np.rint(np.array(expected["t"]) * 4000).astype(int) - 1]
    for column, index, atol in (
        ("theta_hip", POSITION + 1, 1e-8),
        ("theta_knee", POSITION + 2, 1e-8),
        ("slider", POSITION, 1e-8),
        ("omega_hip", RATE + 1, 1e-6),
        ("omega_knee", RATE + 2, 1e-6),
        ("tau_hip", TORQUE, 1e-8),
        ("tau_knee", TORQUE + 1, 1e-8),
        ("foot_fz", GROUND_FORCE, 1e-5),
    ):
        np.testing.assert_allclose(rows[:, index], expected[column], rtol=0, atol=loose * atol)
    assert np.flatnonzero(states[:, HAS_LANDED])[0] == expected["first_contact_step"]
    np.testing.assert_allclose(rewards[:10], expected["first_10_rewards"], rtol=RTOL)
    assert rewards.sum() == pytest.approx(expected["undiscounted_return"], rel=RTOL)
    discounts = REFERENCE["gamma"] ** np.arange(8000)
    assert discounts @ rewards == pytest.approx(expected["discounted_return"], rel=RTOL)
    sums = states[:, TERMS : TERMS + 6].sum(axis=0)
    for index, key in enumerate(("sm", "foot", "post", "tq", "vel", "cons")):
        assert sums[index] == pytest.approx(expected["undelayed_reward_sums"][key], rel=RTOL, abs=1e-4)


# Delays.


@pytest.mark.parametrize("delay", [0, 1, 4, 7])
def test_command_acts_after_its_delay_and_the_first_fills_the_queue(delay):
    """Action a_k moves the motor in step k + delay, so the joint feels it one step later."""
    kernel = kernels.simple_kernel(torque_delay_steps=delay)
    torques = {}
    for changed in (None, 0, 3):
        state, torques[changed] = place(kernel), []
        for k in range(16):
            kernel.step(kernel.params, state, np.array([2.0 if k == changed else 1.0, 1.0]))
            torques[changed].append(state[TORQUE])
    assert torques[None][0] == -0.248090029
    differs = np.not_equal(torques[3], torques[None])
    assert np.flatnonzero(differs)[0] == 3 + delay + 1
    assert np.flatnonzero(np.not_equal(torques[0], torques[None]))[0] == 1


@pytest.mark.parametrize("delay", [0, 1, 4, 7])
def test_observation_is_the_state_of_delay_steps_ago(delay):
    kernel = kernels.simple_kernel(observation_delay_steps=delay)
    state = place(kernel)
    true = []
    for _ in range(20):
        true.append(np.concatenate([state[POSITION + 1 : POSITION + 3], state[RATE + 1 : RATE + 3]]))
        assert np.array_equal(observe(kernel, state), true[max(len(true) - 1 - delay, 0)])
        kernel.step(kernel.params, state, np.array([1.0, -1.0]))


@pytest.mark.parametrize("delay", [0, 3])
def test_reward_is_that_of_delay_steps_ago(delay):
    kernel = kernels.simple_kernel(reward_delay_steps=delay)
    state, now = place(kernel), []
    for k in range(12):
        paid, _ = kernel.step(kernel.params, state, np.array([1.0, -1.0]))
        now.append(state[TERMS : TERMS + 7].sum())
        assert paid == pytest.approx(now[max(k - delay, 0)], rel=1e-14)


def test_held_action_pays_the_mean_of_its_physics_steps():
    slow, fast = (kernels.stochastic_kernel(control_rate_hz=rate, sensor_noise=False) for rate in (100, 4000))
    slow_state, fast_state = place(slow), place(fast)
    for action in np.random.default_rng(0).normal(size=(30, 2)):
        paid, _ = slow.step(slow.params, slow_state, action)
        inner = [fast.step(fast.params, fast_state, action)[0] for _ in range(40)]
        assert paid == pytest.approx(np.mean(inner), rel=1e-12)
        keep = slice(0, TERMS)
        assert np.array_equal(slow_state[keep], fast_state[keep])
    assert (slow.horizon, fast.horizon) == (200, 8000)


# Saving and restoring.

MAKE = {
    "simple": kernels.simple_kernel,
    "simple-noise": partial(kernels.simple_kernel, sensor_noise=True),
    "stochastic": kernels.stochastic_kernel,
    "100hz": partial(kernels.stochastic_kernel, control_rate_hz=100),
}


@pytest.fixture(params=MAKE, ids=str)
def kernel(request):
    return MAKE[request.param]()


@pytest.fixture
def roller(kernel):
    return KernelRoller(kernel, (16, 16), gamma=0.99975)


def test_branch_from_saved_state_equals_replay_bit_for_bit(kernel, roller):
    """Compare in the air, around the impact, standing, and at the end."""
    theta, rng = standing_policy(roller.layer_sizes), np.random.default_rng(1)
    starts = roller.start_states(np.full((1, roller.start_size), 0.3))
    whole = roller.rollouts(theta, starts)
    states = kernel.replay(starts[0], whole.actions[0])
    impact = int(np.flatnonzero(states[:, HAS_LANDED])[0])
    T = roller.horizon
    times = np.array([[0, 1, impact // 2, impact - 1, impact, impact + 1, impact + 9, 3 * T // 4, T - 1]])
    main = roller.rollouts(theta, starts, save_steps=times)
    for i, t in enumerate(times[0]):
        offsets = rng.standard_normal((1, 3, 2))
        branch = roller.rollouts(theta, main.saved_states[:, i], num_steps=np.array([T - t]), offsets=offsets)
        delayed = np.zeros((1, t + 3, 2))
        delayed[:, t : t + 3] = offsets
        replay = roller.rollouts(theta, starts, offsets=delayed)
        for name in ("observations", "actions", "rewards"):
            assert np.array_equal(getattr(branch, name)[0, : T - t], getattr(replay, name)[0, t:])
        assert np.array_equal(branch.final_states, replay.final_states)


def test_replay_of_recorded_actions_ends_in_the_same_state(kernel, roller):
    starts = roller.start_states(np.full((1, roller.start_size), 0.7))
    rollouts = roller.rollouts(standing_policy(roller.layer_sizes), starts)
    states = kernel.replay(starts[0], rollouts.actions[0])
    assert np.array_equal(states[-1], rollouts.final_states[0])


def test_two_rollouts_at_once_do_not_disturb_each_other(roller):
    """They share MuJoCo's memory; all that a step depends on is written into it before each."""
    theta = standing_policy(roller.layer_sizes)
    starts = roller.start_states(np.linspace(0.1, 0.9, 3)[:, None] * np.ones(roller.start_size))
    starts[1:, RATE + 1] = 1.0, -2.0
    together = roller.rollouts(theta, starts)
    for i in range(3):
        alone = roller.rollouts(theta, starts[i : i + 1])
        assert np.array_equal(alone.final_states[0], together.final_states[i])


# Divergence.


@pytest.mark.parametrize("action", [np.nan, np.inf, -np.inf])
def test_divergence_freezes_the_state_and_prints_nothing(action, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = kernels.stochastic_kernel(reward_units="code", reward_delay_steps=0)
    state = place(kernel)
    for _ in range(20):
        paid, _ = kernel.step(kernel.params, state, np.array([action, 0.0]))
    frozen = state[POSITION : RATE + 3].copy()
    assert paid == -100 and state[IS_BROKEN] == 1 and np.all(np.isfinite(frozen))
    kernel.step(kernel.params, state, np.zeros(2))
    assert np.array_equal(frozen, state[POSITION : RATE + 3])
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


def test_huge_action_only_saturates_the_motor():
    kernel = kernels.simple_kernel()
    state = place(kernel)
    for _ in range(100):
        kernel.step(kernel.params, state, np.array([1e300, -1e300]))
        assert np.all(np.abs(state[TORQUE : TORQUE + 2]) < 9.5)
    assert state[IS_BROKEN] == 0


def test_invalid_state_counts_as_divergence_before_mujoco_sees_it(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = kernels.simple_kernel(reward_delay_steps=0)
    for wild in (np.nan, 1e30, -1e6):
        state = place(kernel)
        state[RATE + 1] = wild
        paid, _ = kernel.step(kernel.params, state, np.zeros(2))
        assert paid == -100 and state[IS_BROKEN] == 1
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("contact", model.CONTACTS)
def test_spinning_leg_ends_broken_and_never_where_mujoco_would_reset_it(contact, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = kernels.simple_kernel(contact=contact)
    rng = np.random.default_rng(0)
    num_broken = 0
    for _ in range(300):
        state = place(kernel, rng.uniform(0.02, 0.5), rng.uniform(-3, 3), rng.uniform(-3, 3))
        state[RATE + 1 : RATE + 3] = rng.choice([-1, 1], 2) * 10 ** rng.uniform(1, 3.9, 2)
        for _ in range(300):
            before = state[POSITION : POSITION + 3].copy()
            kernel.step(kernel.params, state, np.array([-10.0, 10.0]))
            assert np.all(np.abs(state[POSITION : POSITION + 3] - before) <= dynamics.LARGEST / 4000)
        num_broken += int(state[IS_BROKEN])
    assert 20 < num_broken < 300
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())
