"""Reward terms by hand."""

import math

import numpy as np
import pytest
from leg_states import place

from envs.leg import kernels, reward
from envs.leg.params import (
    FOOT,
    GROUND_FORCE,
    HAS_LANDED,
    KNEE_HEIGHT,
    POSITION,
    TERMS,
    TORQUE,
    TORQUE_BEFORE,
)


@pytest.fixture(scope="module")
def dense():
    return kernels.stochastic_kernel(sensor_noise=False, reward_units="code")


def test_simple_reward_before_landing():
    kernel = kernels.simple_kernel()
    state = place(kernel, 0.3, -1.0, -1.2)
    state[TORQUE], state[TORQUE + 1], state[FOOT], state[KNEE_HEIGHT], state[GROUND_FORCE] = 2.0, -3.0, 0.05, 0.25, 0.0
    terms = reward.simple_terms(kernel.params, state, -4.0, 5.0)
    posture = -(abs(-1.2 + math.pi / 2) + abs(-1.0 + math.pi / 4))
    np.testing.assert_allclose(terms, [posture, -0.72, 0, 0, 0, 0, -1e-4 * 13], rtol=1e-14)
    state[KNEE_HEIGHT] = 0.19  # the foot's offset counts only below 0.2 m
    assert reward.simple_terms(kernel.params, state, 0.0, 0.0)[2] == pytest.approx(-0.5)


def test_simple_reward_after_landing():
    kernel = kernels.simple_kernel()
    state = place(kernel, 0.2, -0.8, -1.5)
    state[HAS_LANDED], state[GROUND_FORCE], state[KNEE_HEIGHT] = 1, 3.0, 0.07
    state[FOOT], state[FOOT + 1], state[TORQUE] = -0.02, 0.0045, 9.0
    terms = reward.simple_terms(kernel.params, state, 0.0, 0.0)
    np.testing.assert_allclose(terms[2:], [-0.2, -(0.76 * 9.81 - 3.0), -0.0045, -0.45, 0.0], rtol=1e-13)
    state[GROUND_FORCE] = 20.0  # more than the weight is free
    assert reward.simple_terms(kernel.params, state, 0.0, 0.0)[3] == 0.0
    code = kernels.simple_kernel(reward_units="code").params
    state[GROUND_FORCE] = 3.0
    np.testing.assert_allclose(reward.simple_terms(code, state, 0.0, 0.0)[3:], [-2.3, -0.045, -0.45, 0.0], rtol=1e-13)


def test_dense_reward_terms_and_their_units():
    state = place(kernels.stochastic_kernel(), 0.3, -0.8, -1.5)
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
def test_violated_limit_replaces_the_dense_reward(dense, index, inside, outside):
    state = place(dense, 0.3, -0.8, -1.5)
    state[KNEE_HEIGHT] = 0.2
    state[index] = inside
    assert reward.dense_terms(dense.params, state, 100.0, -100.0)[5] == 0.0
    state[index] = outside
    assert reward.dense_terms(dense.params, state, 0.0, 0.0) == (0, 0, 0, 0, 0, -100, 0)


def test_too_fast_a_joint_violates(dense):
    state = place(dense, 0.3, -0.8, -1.5)
    state[KNEE_HEIGHT] = 0.2
    assert reward.dense_terms(dense.params, state, 100.1, 0.0)[5] == -100
    assert reward.dense_terms(dense.params, state, 0.0, -100.1)[5] == -100


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
