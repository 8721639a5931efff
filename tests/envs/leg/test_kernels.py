import math

import gymnasium
import numpy as np
import pytest
from leg_states import standing_policy

from envs.leg import kernels
from envs.leg.params import HAS_LANDED, POSITION, RATE
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


def test_leg_stands_under_pd_control_and_rings_at_100_hz_after_the_impact():
    kernel = kernels.simple_kernel()
    roller = KernelRoller(kernel, (16, 16), gamma=0.99975)
    starts = roller.start_states(np.zeros((1, 0)))
    rollouts = roller.rollouts(standing_policy(roller.layer_sizes), starts)
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
