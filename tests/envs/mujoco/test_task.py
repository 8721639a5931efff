import math

import mujoco
import numpy as np
import pytest
from cart_task import NUM_STEPS, XML, make_cart

from envs.gym_env import KernelEnv
from envs.mujoco.task import _action_units
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

ACTIONS = np.random.default_rng(1).uniform(-30, 30, (NUM_STEPS, 1))


@pytest.fixture(scope="module")
def kernel():
    return make_cart()


def play_in_python(angle: float) -> tuple[list, list]:
    """Return observations and rewards of ACTIONS, with MuJoCo's Python interface alone."""
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    data.qpos[1] = angle
    mujoco.mj_forward(model, data)
    tip = data.site("tip").xpos
    observations, rewards, heights = [], [], []
    for k, action in enumerate(ACTIONS):
        before = tip[0]
        data.ctrl[:] = action
        mujoco.mj_step(model, data, 2)
        heights.append(tip[2])
        paid = np.array(heights).mean() if k + 1 == NUM_STEPS else 0.0
        observations.append([data.qpos[1], data.qvel[1], tip[2]])
        rewards.append(paid + tip[2] - 10.0 * (tip[0] - before) ** 2)
        if tip[2] < 0:
            break
    return observations, rewards


def test_episode_is_that_of_mujocos_python_interface(kernel):
    env = KernelEnv(kernel)
    env.reset(options={"start": [0.6]})
    expected, rewards = play_in_python(0.6 - 0.5)
    steps = [env.step(action) for action in ACTIONS[: len(rewards)]]
    assert np.array_equal([step[0] for step in steps], expected)
    np.testing.assert_allclose([step[1] for step in steps], rewards, rtol=1e-14)  # sums of the mean in another order
    assert len(rewards) == NUM_STEPS or steps[-1][2]


def test_gymnasium_and_interleaved_rollouts_agree_bit_for_bit(kernel):
    roller = KernelRoller(kernel, (), gamma=1.0)
    theta, starts = np.array([3.0, 0.5, 0.1, 1.0]), np.linspace(0.1, 0.9, 6)[:, None]
    rollouts = roller.rollouts(theta, roller.start_states(starts))
    env = KernelEnv(kernel)
    for start, actions, rewards, length in zip(starts, rollouts.actions, rollouts.rewards, rollouts.lengths):
        env.reset(options={"start": start})
        assert [env.step(action)[1] for action in actions[:length]] == rewards[:length].tolist()


def test_restored_state_continues_as_the_original(kernel):
    env = KernelEnv(kernel)
    env.reset(options={"start": [0.5]})
    for action in ACTIONS[:5]:
        env.step(action)
    saved = env.state
    first = [env.step(action)[:2] for action in ACTIONS[5:20]]
    env.reset(options={"start": [0.9]})
    env.state = saved
    again = [env.step(action)[:2] for action in ACTIONS[5:20]]
    assert all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(first, again))


def test_start_values_are_joints_and_observed_at_once(kernel):
    env = KernelEnv(kernel)
    observation, _ = env.reset(options={"hinge": 0.3, "hinge_rate": -0.2})
    np.testing.assert_allclose(observation, [0.3, -0.2, 0.6 * math.cos(0.3)], rtol=1e-12)


def test_actions_are_executed_within_the_actuators_range(kernel):
    state, action = np.zeros(kernel.state_size), np.array([1e9])
    kernel.reset(kernel.params, np.array([0.5]), state)
    kernel.step(kernel.params, state, action)
    assert action[0] == 30.0 == kernel.action_high[0]


def test_diverged_simulation_stands_still_and_pays_the_stated_reward(kernel):
    env = KernelEnv(kernel)
    env.reset(options={"hinge_rate": 1e7})
    assert env.step([0.0])[1] == -100.0
    frozen = env.state
    observation, value, is_terminal, *_ = env.step([0.0])
    assert value == -100.0 and not is_terminal and np.isfinite(observation).all()
    assert np.array_equal(frozen[: kernel.params.mujoco_size], env.state[: kernel.params.mujoco_size])


def test_interface_has_units_and_control_rate(kernel):
    assert kernel.interface.control_rate_hz == pytest.approx(50)
    assert list(kernel.interface.actions) == ["push"] and kernel.interface.observations["rate"] == "rad/s"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number from 1"),
        ({"frame_skip": 1.5}, "frame_skip must be a whole number"),
        ({"memory_size": -1}, "memory_size must be"),
        ({"model": "missing.xml"}, "model must be an MJCF file or its text, and there is no file missing.xml"),
        ({"model": "<mujoco><bad/></mujoco>"}, "model: MuJoCo cannot load the text: .*bad"),
        ({"model": "<mujoco/>"}, "model: it has no actuators"),
        ({"model": XML.replace('ctrlrange="-30 30"', "")}, "model: actuator push has no limits"),
    ],
)
def test_bad_arguments_are_named_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as raised:
        make_cart(**changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("actuator", "joint", "unit"),
    [
        ('motor name="a"', 'joint name="j" axis="0 1 0"', "N m"),
        ('motor name="a" gear="150"', 'joint name="j" axis="0 1 0"', "150 N m"),
        ('motor name="a"', 'joint name="j" type="slide" axis="1 0 0"', "N"),
        ('position name="a" kp="20"', 'joint name="j" axis="0 1 0"', "rad"),
        ('position name="a" kp="20" kv="1"', 'joint name="j" type="slide" axis="1 0 0"', "m"),
        ('velocity name="a" kv="2"', 'joint name="j" axis="0 1 0"', "rad/s"),
        ('general name="a" dyntype="integrator"', 'joint name="j" axis="0 1 0"', "1"),
    ],
)
def test_unit_of_an_action_is_what_the_model_says(actuator, joint, unit):
    xml = f"""<mujoco><worldbody><body><{joint}/><geom size=".1"/></body></worldbody>
    <actuator><{actuator} joint="j" ctrlrange="-1 1"/></actuator></mujoco>"""
    assert _action_units(mujoco.MjModel.from_xml_string(xml)) == {"a": unit}
