"""The leg against numbers of an independent simulation, against itself, and against formulas by hand."""

import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from programs import ROOT

from envs.leg import dynamics, kernels, model, motor, noise, report, reward
from envs.leg.params import (
    FOOT,
    GROUND_FORCE,
    HAS_LANDED,
    IS_BROKEN,
    KNEE_HEIGHT,
    POSITION,
    RATE,
    STEP,
    TERMS,
    TORQUE,
    TORQUE_BEFORE,
)
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

REFERENCE = json.loads(Path(__file__).with_name("leg_reference.json").read_text())
# The reference was made with one version of MuJoCo. Another may add up in another order, and errors grow after an
# impact: 3.3.5 and 3.4.0 meet the bounds below, and most of the tight ones.
IS_REFERENCE_VERSION = mujoco.__version__ == REFERENCE["mujoco"]
RTOL = 1e-8 if IS_REFERENCE_VERSION else 1e-6


@pytest.fixture(scope="module")
def silent():
    """The stochastic leg without noise, in the units of the reference."""
    return kernels.stochastic_kernel(sensor_noise=False, reward_units="code")


def placed(kernel, height=0.4, hip=-40 / 57.295, knee=-100 / 57.295):
    state = np.zeros(kernel.state_size)
    kernel.place(state, {"height": height, "theta_hip": hip, "theta_knee": knee})
    return state


def observation_of(kernel, state):
    observation = np.zeros(4)
    kernel.observe(kernel.params, state, observation)
    return observation


# The reference numbers.


def test_motor_answers_a_unit_step_as_specified():
    torque, torque_rate, response = 0.0, 0.0, []
    for _ in REFERENCE["motor_unit_step_response"]:
        response.append(torque)
        torque, torque_rate = motor.advance_motor(torque, torque_rate, 1.0)
    np.testing.assert_allclose(response, REFERENCE["motor_unit_step_response"], atol=1e-10)


def test_torque_map_equals_the_reference():
    for speed, torques in REFERENCE["torque_map_by_joint_speed"].items():
        for torque, expected in torques.items():
            for direction in (1, -1):
                rate = direction * float(speed.removeprefix("w="))
                assert motor.joint_torque(float(torque), rate) == pytest.approx(expected, rel=1e-12)


def test_torque_map_is_discontinuous_at_zero_and_zero_counts_as_positive():
    assert motor.joint_torque(0.0, 0.0) == -0.248090029
    assert motor.joint_torque(-1e-12, 0.0) - motor.joint_torque(0.0, 0.0) == pytest.approx(0.496, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "command"),
    [("rollout_zero_command", (0.0, 0.0)), ("rollout_constant_command_hip_0.5_knee_-0.3", (0.5, -0.3))],
)
def test_rollout_equals_the_reference(silent, name, command):
    state, rows = placed(silent), {row["step"]: row for row in REFERENCE[name]}
    for step in range(1, max(rows) + 1):
        delayed, _ = silent.step(silent.params, state, np.array(command))
        if step in rows:
            row = rows[step]
            for ours, theirs in (
                (state[POSITION : POSITION + 3], row["q"]),
                (state[RATE : RATE + 3], row["v"]),
                (state[TORQUE : TORQUE + 2], row["tau"]),
                (observation_of(silent, state), row["obs"]),
                (delayed, row["reward_delayed"]),
                (state[TERMS : TERMS + 6].sum(), row["reward_now"]),
            ):
                np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-13)


@pytest.mark.parametrize("name", REFERENCE["zero_command_drops"])
def test_drop_equals_the_reference(silent, name):
    """Through impact, fall and rest. The reference has 8 digits, so that is what its columns are held to."""
    expected = REFERENCE["zero_command_drops"][name]
    start = expected["init"]
    state = placed(silent, start["slider"], start["theta_hip"], start["theta_knee"])
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


def test_mass_matrix_and_kinematics_are_those_specified(silent):
    loaded, _ = model.load("compliant")
    data = mujoco.MjData(loaded)
    hip, knee, height = -0.6981, -1.2, 0.5
    data.qpos[:] = height, hip, knee
    mujoco.mj_forward(loaded, data)
    mass = np.zeros((3, 3))
    for column, unit in zip(mass, np.eye(3)):
        mujoco.mj_mulM(loaded, data, column, unit)
    m3, lever, i2, i3 = 0.034, 0.14, 1.0888e-3, 8.888e-4
    coupling = m3 * lever * math.cos(hip)
    expected = [
        [0.8205, coupling, 0],
        [coupling, i2 + i3 + m3 * lever**2 + 2.2e-6, i3],
        [0, i3, i3 + 1.157e-5],
    ]
    np.testing.assert_allclose(mass, expected, atol=1e-12)
    x, z = report.foot_position(np.array([height, hip, knee]))
    np.testing.assert_allclose(data.site("foot").xpos[[0, 2]], [x, z], atol=1e-12)


# Delays.


@pytest.mark.parametrize("delay", [0, 1, 4, 7])
def test_command_acts_after_its_delay_and_the_first_fills_the_queue(delay):
    """Action a_k moves the motor in step k + delay, so the joint feels it one step later."""
    kernel = kernels.simple_kernel(torque_delay_steps=delay)
    torques = {}
    for changed in (None, 0, 3):
        state, torques[changed] = placed(kernel), []
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
    state = placed(kernel)
    true = []
    for _ in range(20):
        true.append(np.concatenate([state[POSITION + 1 : POSITION + 3], state[RATE + 1 : RATE + 3]]))
        assert np.array_equal(observation_of(kernel, state), true[max(len(true) - 1 - delay, 0)])
        kernel.step(kernel.params, state, np.array([1.0, -1.0]))


@pytest.mark.parametrize("delay", [0, 3])
def test_reward_is_that_of_delay_steps_ago(delay):
    kernel = kernels.simple_kernel(reward_delay_steps=delay)
    state, now = placed(kernel), []
    for k in range(12):
        paid, _ = kernel.step(kernel.params, state, np.array([1.0, -1.0]))
        now.append(state[TERMS : TERMS + 7].sum())
        assert paid == pytest.approx(now[max(k - delay, 0)], rel=1e-14)


def test_held_action_pays_the_mean_of_its_physics_steps():
    slow, fast = (kernels.stochastic_kernel(control_rate_hz=rate, sensor_noise=False) for rate in (100, 4000))
    slow_state, fast_state = placed(slow), placed(fast)
    for action in np.random.default_rng(0).normal(size=(30, 2)):
        paid, _ = slow.step(slow.params, slow_state, action)
        inner = [fast.step(fast.params, fast_state, action)[0] for _ in range(40)]
        assert paid == pytest.approx(np.mean(inner), rel=1e-12)
        keep = slice(0, TERMS)
        assert np.array_equal(slow_state[keep], fast_state[keep])
    assert (slow.horizon, fast.horizon) == (200, 8000)


# Reward terms by hand.


def test_simple_reward_before_landing():
    params = kernels.simple_kernel().params
    state = placed(kernels.simple_kernel(), 0.3, -1.0, -1.2)
    state[TORQUE], state[TORQUE + 1], state[FOOT], state[KNEE_HEIGHT], state[GROUND_FORCE] = 2.0, -3.0, 0.05, 0.25, 0.0
    terms = reward.simple_terms(params, state, -4.0, 5.0)
    posture = -(abs(-1.2 + math.pi / 2) + abs(-1.0 + math.pi / 4))
    np.testing.assert_allclose(terms, [posture, -0.72, 0, 0, 0, 0, -1e-4 * 13], rtol=1e-14)
    state[KNEE_HEIGHT] = 0.19  # the foot's offset counts only below 0.2 m
    assert reward.simple_terms(params, state, 0.0, 0.0)[2] == pytest.approx(-0.5)


def test_simple_reward_after_landing():
    kernel = kernels.simple_kernel()
    state = placed(kernel, 0.2, -0.8, -1.5)
    state[HAS_LANDED], state[GROUND_FORCE], state[FOOT], state[FOOT + 1], state[KNEE_HEIGHT] = (
        1,
        3.0,
        -0.02,
        0.0045,
        0.07,
    )
    state[TORQUE] = 9.0
    terms = reward.simple_terms(kernel.params, state, 0.0, 0.0)
    np.testing.assert_allclose(terms[2:], [-0.2, -(0.76 * 9.81 - 3.0), -0.0045, -0.45, 0.0], rtol=1e-13)
    state[GROUND_FORCE] = 20.0  # more than the weight is free
    assert reward.simple_terms(kernel.params, state, 0.0, 0.0)[3] == 0.0
    code = kernels.simple_kernel(reward_units="code").params
    state[GROUND_FORCE] = 3.0
    np.testing.assert_allclose(reward.simple_terms(code, state, 0.0, 0.0)[3:], [-2.3, -0.045, -0.45, 0.0], rtol=1e-13)


def test_dense_reward_terms_and_their_units():
    state = placed(kernels.stochastic_kernel(), 0.3, -0.8, -1.5)
    state[TORQUE], state[TORQUE + 1], state[TORQUE_BEFORE], state[TORQUE_BEFORE + 1] = 1.0, 2.0, 0.5, 2.2
    state[FOOT], state[FOOT + 1], state[KNEE_HEIGHT] = 0.1, 0.05, 0.2
    expected = np.array([-2000 * 0.29, -10.0, -100 * 0.15**2, -5e-4, -0.1 * 25, 0.0])
    for units, scale in (("code", 1.0), ("paper", 1e-3)):
        params = kernels.stochastic_kernel(reward_units=units).params
        np.testing.assert_allclose(reward.dense_terms(params, state, 3.0, 4.0)[:6], scale * expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("index", "inside", "outside"),
    [
        (POSITION + 1, math.radians(-225), math.radians(-225.01)),
        (POSITION + 1, math.radians(90), math.radians(90.01)),
        (POSITION + 2, math.radians(-155), math.radians(-155.01)),
        (POSITION + 2, math.radians(-35), math.radians(-34.99)),
        (POSITION, 0.05, 0.0499),
        (KNEE_HEIGHT, 0.02, 0.0199),
    ],
)
def test_violated_limit_replaces_the_dense_reward(silent, index, inside, outside):
    state = placed(silent, 0.3, -0.8, -1.5)
    state[KNEE_HEIGHT] = 0.2
    state[index] = inside
    assert reward.dense_terms(silent.params, state, 100.0, -100.0)[5] == 0.0
    state[index] = outside
    assert reward.dense_terms(silent.params, state, 0.0, 0.0) == (0, 0, 0, 0, 0, -100, 0)


def test_too_fast_a_joint_violates(silent):
    state = placed(silent, 0.3, -0.8, -1.5)
    state[KNEE_HEIGHT] = 0.2
    assert reward.dense_terms(silent.params, state, 100.1, 0.0)[5] == -100
    assert reward.dense_terms(silent.params, state, 0.0, -100.1)[5] == -100


def test_landing_is_latched_and_the_force_is_that_of_the_step_before():
    kernel = kernels.simple_kernel()
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.zeros(0), state)
    forces, landed, terms = [], [], []
    for _ in range(3000):
        kernel.step(kernel.params, state, np.array([4.0, 4.0]))
        forces.append(state[GROUND_FORCE])
        landed.append(state[HAS_LANDED])
        terms.append(state[TERMS + 3])
    first = landed.index(1.0)
    assert all(value == 0 for value in landed[:first]) and all(value == 1 for value in landed[first:])
    assert any(force == 0 for force in forces[first:])  # it bounced, and stays landed
    weight = 0.76 * 9.81
    np.testing.assert_allclose(terms[first:], [-max(0.0, weight - f) for f in forces[first - 1 : -1]], rtol=1e-13)


# Saving, restoring, and the two ways to roll out.

MAKE = {
    "simple": ("envs:tdpo/Leg-v0", {}),
    "simple-noise": ("envs:tdpo/Leg-v0", {"sensor_noise": True}),
    "stochastic": ("envs:tdpo/LegStochastic-v0", {}),
    "100hz": ("envs:tdpo/LegStochastic100Hz-v0", {}),
}


@pytest.fixture(params=MAKE, ids=str)
def env(request):
    env_id, options = MAKE[request.param]
    return gymnasium.make(env_id, **options)


@pytest.fixture
def roller(env):
    return KernelRoller(env.unwrapped.kernel, (16, 16), gamma=0.99975)


def standing_policy(roller):
    """A network that is a PD controller as long as its tanh are nearly linear: the leg lands and stands."""
    small, num = 0.02, roller.layer_sizes[1]
    first, second, last = np.zeros((4, num)), np.eye(num), np.zeros((num, 2))
    first[:, :4] = small * np.eye(4)
    last[:4] = np.array([[-6, 0], [0, -6], [-0.3, 0], [0, -0.3]]) / small
    zeros, bias = np.zeros(num), 6 * np.array([-0.8, -1.45])
    return np.concatenate([first.ravel(), zeros, second.ravel(), zeros, last.ravel(), bias])


def test_gymnasium_accepts_the_environment(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_gymnasium_path_equals_compiled_path_bit_for_bit(env, roller):
    theta = standing_policy(roller)
    start = np.full(roller.start_size, 0.3)
    compiled = roller.rollouts(theta, roller.start_states(start[None]))
    observation, _ = env.reset(seed=0, options={"start": start})
    act = mlp.compile_act(roller.layer_sizes)
    truncated, t = False, 0
    while not truncated:
        assert np.array_equal(observation, compiled.observations[0, t])
        action = mlp.act_once(act, roller.layer_sizes, theta, observation)
        observation, paid, _, truncated, info = env.step(action)
        assert paid == compiled.rewards[0, t]
        t += 1
    assert t == roller.horizon
    assert np.array_equal(env.unwrapped.state[:-1], compiled.final_states[0])
    assert info["has_landed"] and info["final_hip_deg"] == np.degrees(env.unwrapped.state[POSITION + 1])


def test_branch_from_saved_state_equals_replay_bit_for_bit(roller):
    """In the air, around the impact, standing, and at the end."""
    theta, rng = standing_policy(roller), np.random.default_rng(1)
    starts = roller.start_states(np.full((1, roller.start_size), 0.3))
    whole = roller.rollouts(theta, starts)
    states = roller.kernel.replay(starts[0], whole.actions[0])
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


def test_replay_of_recorded_actions_ends_in_the_same_state(roller):
    starts = roller.start_states(np.full((1, roller.start_size), 0.7))
    rollouts = roller.rollouts(standing_policy(roller), starts)
    states = roller.kernel.replay(starts[0], rollouts.actions[0])
    assert np.array_equal(states[-1], rollouts.final_states[0])


def test_two_rollouts_at_once_do_not_disturb_each_other(roller):
    """They share MuJoCo's memory; all that a step depends on is written into it before each."""
    theta = standing_policy(roller)
    starts = roller.start_states(np.linspace(0.1, 0.9, 3)[:, None] * np.ones(roller.start_size))
    starts[1:, RATE + 1] = 1.0, -2.0
    together = roller.rollouts(theta, starts)
    for i in range(3):
        alone = roller.rollouts(theta, starts[i : i + 1])
        assert np.array_equal(alone.final_states[0], together.final_states[i])


# Noise.


def noise_samples(num, seed):
    kernel = kernels.stochastic_kernel()
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, seed]), state)
    samples = np.zeros((num, 2))
    for k in range(num):
        samples[k] = noise.rate_noise(kernel.params, state)
        noise.advance_noise(state, k)
    return samples


def test_noise_has_the_specified_statistics():
    samples = np.concatenate([noise_samples(20000, seed) for seed in (0.11, 0.52, 0.93)])
    np.testing.assert_allclose(samples.mean(axis=0), noise.MEAN, atol=0.02)
    assert np.corrcoef(samples.T)[0, 1] == pytest.approx(0.26, abs=0.03)
    for j in range(2):
        x = samples[:, j] - samples[:, j].mean()
        fit = np.linalg.lstsq(np.column_stack([x[1:-1], x[:-2]]), x[2:], rcond=None)
        np.testing.assert_allclose(fit[0], [noise.LAG_1[j], noise.LAG_2[j]], atol=0.01)
        assert math.sqrt(fit[1][0] / len(x)) == pytest.approx(noise.RESIDUAL_STD[j], rel=0.01)


def test_noise_is_stationary_from_the_first_step():
    first = np.array([noise_samples(1, (i + 0.5) / 4000)[0] for i in range(4000)])
    late = noise_samples(40000, 0.3)
    np.testing.assert_allclose(first.std(axis=0), late.std(axis=0), rtol=0.06)


def test_noise_differs_between_seeds_and_is_the_same_for_one():
    assert np.array_equal(noise_samples(50, 0.25), noise_samples(50, 0.25))
    assert not np.isclose(noise_samples(50, 0.25), noise_samples(50, 0.25 + 1e-12)).any()


def test_noise_grows_with_the_rate_up_to_one_and_angles_are_exact():
    kernel = kernels.stochastic_kernel(observation_delay_steps=0)
    for rate, share in ((0.0, 0.0), (0.25, 0.25), (-0.5, 0.5), (3.0, 1.0)):
        state = np.zeros(kernel.state_size)
        kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, 0.4]), state)
        state[RATE + 1] = state[RATE + 2] = rate
        dynamics.begin(kernel.params, state)
        hip, knee = noise.rate_noise(kernel.params, state)
        seen = observation_of(kernel, state)
        np.testing.assert_allclose(seen[2:], [rate + share * hip, rate + share * knee], rtol=1e-14)
        assert np.array_equal(seen[:2], state[POSITION + 1 : POSITION + 3])


def test_template_is_played_cyclically_with_its_last_row_twice(tmp_path):
    rows = np.arange(10.0).reshape(5, 2)
    path = tmp_path / "noise.csv"
    np.savetxt(path, rows, delimiter=",")
    kernel = kernels.stochastic_kernel(noise_template=str(path))
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, 0.45]), state)  # row 2 of 5 is played in step 0
    played = []
    for k in range(1, 9):
        state[STEP] = k
        played.append(noise.rate_noise(kernel.params, state)[0] / 2)
    assert played == [2, 3, 4, 4, 0, 1, 2, 3]


# The task, and what can go wrong.


def test_leg_stands_under_pd_control_and_rings_at_100_hz_after_the_impact():
    kernel = kernels.simple_kernel()
    roller = KernelRoller(kernel, (16, 16), gamma=0.99975)
    starts = roller.start_states(np.zeros((1, 0)))
    rollouts = roller.rollouts(standing_policy(roller), starts)
    measured = kernel.measure(kernel.params, rollouts.final_states[0])
    assert abs(measured["final_hip_deg"] + 45) < 10 and abs(measured["final_knee_deg"] + 90) < 10
    assert abs(measured["final_foot_x_cm"]) < 3 and measured["torque_roughness"] < 1e-3
    states = kernel.replay(starts[0], rollouts.actions[0])
    impact = int(np.flatnonzero(states[:, HAS_LANDED])[0])
    ring = states[impact : impact + 400, RATE + 2]  # of the knee, 0.1 s
    spectrum = np.abs(np.fft.rfft((ring - ring.mean()) * np.hanning(len(ring)), 1 << 16))
    frequencies = np.fft.rfftfreq(1 << 16, 1 / 4000)
    high = frequencies > 50
    assert 95 < frequencies[high][np.argmax(spectrum[high])] < 105


@pytest.mark.parametrize("action", [np.nan, np.inf, -np.inf])
def test_blow_up_freezes_and_pays_without_a_word(action, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = kernels.stochastic_kernel(reward_units="code", reward_delay_steps=0)
    state = placed(kernel)
    for _ in range(20):
        paid, _ = kernel.step(kernel.params, state, np.array([action, 0.0]))
    frozen = state[POSITION : RATE + 3].copy()
    assert paid == -100 and state[IS_BROKEN] == 1 and np.all(np.isfinite(frozen))
    kernel.step(kernel.params, state, np.zeros(2))
    assert np.array_equal(frozen, state[POSITION : RATE + 3])
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


def test_huge_action_only_saturates_the_motor():
    kernel = kernels.simple_kernel()
    state = placed(kernel)
    for _ in range(100):
        kernel.step(kernel.params, state, np.array([1e300, -1e300]))
        assert np.all(np.abs(state[TORQUE : TORQUE + 2]) < 9.5)
    assert state[IS_BROKEN] == 0


def test_wild_state_is_a_blow_up_before_mujoco_sees_it(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = kernels.simple_kernel(reward_delay_steps=0)
    for wild in (np.nan, 1e30, -1e6):
        state = placed(kernel)
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
        state = placed(kernel, rng.uniform(0.02, 0.5), rng.uniform(-3, 3), rng.uniform(-3, 3))
        state[RATE + 1 : RATE + 3] = rng.choice([-1, 1], 2) * 10 ** rng.uniform(1, 3.9, 2)
        for _ in range(300):
            before = state[POSITION : POSITION + 3].copy()
            kernel.step(kernel.params, state, np.array([-10.0, 10.0]))
            assert np.all(np.abs(state[POSITION : POSITION + 3] - before) <= dynamics.LARGEST / 4000)
        num_broken += int(state[IS_BROKEN])
    assert 20 < num_broken < 300
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


def test_start_can_be_given_by_name():
    env = gymnasium.make("envs:tdpo/LegStochastic-v0")
    observation, info = env.reset(seed=1, options={"theta_hip": -0.7, "height": 0.55})
    assert observation[0] == -0.7 and info["height"] == 0.55
    assert math.radians(-155) <= observation[1] <= math.radians(-35)
    with pytest.raises(ValueError, match="unknown start value 'hip'; this environment has height, theta_hip"):
        env.reset(options={"hip": 1.0})
    with pytest.raises(ValueError, match="height must be a finite number"):
        env.reset(options={"height": math.nan})


@pytest.mark.parametrize(("hip_start", "highest"), [("paper", -30), ("code", 30)])
def test_starts_cover_their_range(hip_start, highest):
    kernel = kernels.stochastic_kernel(hip_start=hip_start)
    corners = [np.zeros(kernel.state_size) for _ in range(2)]
    for corner, state in zip((0.0, 1.0), corners):
        kernel.reset(kernel.params, np.full(4, corner), state)
    low, high = (state[POSITION : POSITION + 3] for state in corners)
    np.testing.assert_allclose(low, [0.4, -math.pi, math.radians(-155)], rtol=1e-14)
    np.testing.assert_allclose(high, [0.8, math.radians(highest), math.radians(-35)], rtol=1e-14)


def test_starts_shrink_to_the_simple_legs():
    for scale in (0.0, 0.5):
        params, whole = (kernels.stochastic_kernel(start_scale=s).params for s in (scale, 1.0))
        for shrunk, full in ((params.start_low, whole.start_low), (params.start_high, whole.start_high)):
            between = [scale * f + (1 - scale) * s for f, s in zip(full, kernels.SIMPLE_START)]
            np.testing.assert_allclose(shrunk, between, rtol=1e-14)
    for wrong in (-0.1, 1.1, math.nan, "half"):
        with pytest.raises(ValueError, match="start_scale must be between 0 and 1"):
            kernels.stochastic_kernel(start_scale=wrong)


def test_simple_reward_can_be_paid_on_the_stochastic_leg():
    same = kernels.stochastic_kernel(reward_kind="simple", start_scale=0.0, sensor_noise=False)
    theta = np.random.default_rng(0).normal(size=KernelRoller(same, (8,), 0.99).num_parameters)
    paid = []
    for kernel in (same, kernels.simple_kernel()):
        roller = KernelRoller(kernel, (8,), 0.99)
        paid.append(roller.rollouts(theta, roller.start_states(np.zeros((1, roller.start_size)))).rewards)
    np.testing.assert_array_equal(*paid)
    with pytest.raises(ValueError, match="reward_kind must be one of dense, simple"):
        kernels.stochastic_kernel(reward_kind="sparse")


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


def test_info_carries_the_hidden_state_and_the_reward_terms():
    env = gymnasium.make("envs:tdpo/Leg-v0")
    env.reset(seed=0)
    for _ in range(4):
        _, paid, _, _, info = env.step(np.array([1.0, -1.0]))
    assert {"height", "height_rate", "foot_x", "foot_z", "ground_force", "torque_hip", "is_violated"} <= set(info)
    first = env.unwrapped.kernel.params.weights[0] * -(math.radians(10) + math.radians(5))
    assert paid == pytest.approx(first, rel=1e-6)  # three steps late
    assert sum(info[f"reward_{name}"] for name in reward.SIMPLE_TERMS) < first


@pytest.mark.parametrize(
    "options",
    [
        {"control_rate_hz": 300},
        {"control_rate_hz": 0},
        {"contact": "ice"},
        {"torque_delay_steps": -1},
        {"reward_units": "euro"},
        {"noise_template": "no/such.csv", "sensor_noise": True},
        {"noise_template": "never-played.csv"},
        {"sensor_noise": "false"},
        {"control_rate_hz": "100"},
        {"control_rate_hz": True},
        {"observation_delay_steps": 1.5},
        {"contact": ["compliant"]},
    ],
)
def test_bad_options_name_the_field(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        kernels.simple_kernel(**options)


def test_kinds_of_ground_differ():
    finals = {}
    for contact in model.CONTACTS:
        kernel = kernels.simple_kernel(contact=contact)
        state = placed(kernel)
        for _ in range(1500):
            kernel.step(kernel.params, state, np.array([0.5, 0.5]))
        finals[contact] = state[POSITION]
    assert len(set(finals.values())) == 3


def test_picture_shows_the_leg_where_opengl_is():
    """In a process of its own: a software OpenGL may not get on with TensorFlow's libraries."""
    code = """
import gymnasium
env = gymnasium.make("envs:tdpo/Leg-v0", render_mode="rgb_array")
env.reset(seed=0)
try:
    high = env.render()
except RuntimeError as error:
    raise SystemExit(f"skip: {error}")
env.reset(options={"height": 0.2})
assert high.shape == (480, 640, 3) and (high != env.render()).any() and high.std() > 1
"""
    environment = {**os.environ, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl"), "PYTHONPATH": str(ROOT)}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if "skip: " in process.stderr:
        pytest.skip(process.stderr.strip().splitlines()[-1])
    assert process.returncode == 0, process.stderr
