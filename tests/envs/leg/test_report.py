import math
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from programs import ROOT

from envs.leg import kernels, report, reward
from envs.leg.params import HAS_LANDED, POSITION


def test_info_carries_the_hidden_state_and_the_reward_terms():
    env = gymnasium.make("envs:tdpo/Leg-v0")
    env.reset(seed=0)
    for _ in range(4):
        _, paid, _, _, info = env.step(np.array([1.0, -1.0]))
    assert {"height", "height_rate", "foot_x", "foot_z", "ground_force", "torque_hip", "is_violated"} <= set(info)
    first = env.unwrapped.kernel.params.weights[0] * -(math.radians(10) + math.radians(5))
    assert paid == pytest.approx(first, rel=1e-6)  # three steps late
    assert sum(info[f"reward_{name}"] for name in reward.SIMPLE_TERMS) < first


def test_foot_is_below_the_hip_when_standing():
    standing = np.array([0.2, math.radians(-45), math.radians(-90)])
    x, z = report.foot_position(standing)
    assert x == pytest.approx(0) and z == pytest.approx(0.2 - 0.14 * math.sqrt(2))


@pytest.mark.parametrize("make", [kernels.simple_kernel, kernels.stochastic_kernel])
@pytest.mark.parametrize("num_steps", [100, 2000])
def test_figure_has_a_panel_for_each_quantity_and_shows_the_impact(make, num_steps):
    kernel = make()
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.full(kernel.start_size, 0.3), state)
    states = kernel.replay(state, np.full((num_steps, 2), 0.5))
    assert states[-1, HAS_LANDED] == (num_steps == 2000)
    figure = kernel.draw(kernel.params, states)
    assert len(figure.axes) == 6
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert {"angle (deg)", "height (m)", "ground force (N)", "reward terms"} <= labels
    names = {text.get_text() for text in figure.axes[-1].get_legend().get_texts()}
    terms = {name.replace("_", " ") for name in report.term_names(kernel.params)}
    assert names == terms | ({"impact"} if num_steps == 2000 else set())
    titles = {axes.get_title() for axes in figure.axes}
    assert ("around the impact" in titles) == (num_steps == 2000)


def test_measures_describe_the_final_state():
    kernel = kernels.simple_kernel()
    state = np.zeros(kernel.state_size)
    state[POSITION : POSITION + 3] = 0.2, math.radians(-45), math.radians(-90)
    measured = kernel.measure(kernel.params, state)
    assert measured["final_hip_deg"] == pytest.approx(-45) and measured["final_knee_deg"] == pytest.approx(-90)
    assert measured["final_foot_x_cm"] == pytest.approx(0) and measured["is_broken"] == 0


def test_picture_shows_the_leg_where_opengl_is():
    """A process of its own is needed: a software OpenGL may clash with TensorFlow's libraries."""
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


def test_scene_is_the_chain_hip_knee_foot_on_the_rail():
    kernel = kernels.simple_kernel()
    states = np.zeros((2, kernel.state_size))
    states[:, POSITION : POSITION + 3] = [(0.4, -0.9, -1.7), (0.2, math.radians(-45), math.radians(-90))]
    scene = kernel.scene(kernel.params, states)
    np.testing.assert_allclose(scene.chain[:, 0], [[0, 0.4], [0, 0.2]])
    np.testing.assert_allclose(scene.chain[:, 2], np.stack(report.foot_position(states), axis=1), atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(np.diff(scene.chain, axis=1), axis=2), 0.14)
    model, positions = kernel.poses(kernel.params, states)
    assert model.nq == 3 and positions.tolist() == states[:, :3].tolist()


def test_landing_needs_posture_smooth_torques_and_payoff():
    landed = {"final_hip_deg": -44, "final_knee_deg": -92, "final_foot_x_cm": 1, "torque_roughness": 0, "payoff": -0.3}
    assert report.has_landed(landed)
    for name, value in (("final_hip_deg", -60), ("final_foot_x_cm", -4), ("torque_roughness", 0.1), ("payoff", -1)):
        assert not report.has_landed({**landed, name: value})


def test_simple_leg_is_judged_in_units_of_the_paper_and_seconds():
    assert kernels.simple_kernel().criterion.gamma == 0.99975
    assert kernels.simple_kernel(control_rate_hz=400).criterion.gamma == pytest.approx(0.99975**10)
    assert kernels.simple_kernel(reward_units="code").criterion is None
    assert kernels.stochastic_kernel().criterion is None
