"""Drawn quantities against models that have them in their file, and against saving, ranks and other trajectories."""

import re

import gymnasium
import mujoco
import numpy as np
import pytest
from cart_task import NUM_STEPS, XML, make_cart
from leg_states import standing_policy

from envs.action_delay import delay_actions
from envs.gym_env import KernelEnv
from envs.leg import kernels, model
from envs.ranges import QUANTITIES, randomise
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

ACTIONS = np.random.default_rng(1).uniform(-30, 30, (NUM_STEPS, 1))
ALL = {
    "mass": (0.8, 1.2), "friction": (0.8, 1.2), "joint_friction": (0.5, 1.5), "damping": (0.5, 1.5),
    "motor": (0.9, 1.1), "gravity": (0.9, 1.1), "push": (-3.0, 3.0),
}  # fmt: skip
RICH = XML.replace('axis="0 1 0"/>', 'axis="0 1 0" damping=".05" frictionloss=".2" range="-40 40"/>').replace(
    "<worldbody>", '<worldbody><geom type="plane" size="5 5 .1" pos="0 0 -.09"/>'
)


def scaled(pattern: str, factor: float) -> str:
    """Return the model with the numbers of an attribute multiplied."""

    def multiply(match: re.Match) -> str:
        return f'{match[1]}="{" ".join(str(factor * float(number)) for number in match[2].split())}"'

    return re.sub(rf'({pattern})="([^"]*)"', multiply, RICH)


def with_density(factor: float) -> str:
    return RICH.replace("<worldbody>", f'<default><geom density="{1000 * factor}"/></default><worldbody>')


def rewards_of(kernel, start) -> list[float]:
    env = KernelEnv(kernel)
    env.reset(options={"start": start})
    rewards = []
    for action in ACTIONS:
        _, reward, is_terminal, is_truncated, _ = env.step(action)
        rewards.append(reward)
        if is_terminal or is_truncated:
            break
    return rewards


@pytest.mark.parametrize(
    ("ranges", "xml"),
    [
        ({"mass": 1.25}, with_density(1.25)),
        ({"friction": 0.5}, RICH.replace("<geom ", '<geom friction=".5 .0025 .00005" ')),
        ({"joint_friction": 1.5}, scaled("frictionloss", 1.5)),
        ({"damping": 3.0}, scaled("damping", 3.0)),
        ({"motor": 0.8}, RICH.replace('joint="slider"', 'joint="slider" gear=".8"')),
        ({"gravity": 0.5}, RICH.replace("<option ", '<option gravity="0 0 -4.905" ')),
    ],
)
def test_a_quantity_is_that_of_a_model_whose_file_has_it(ranges, xml):
    drawn = rewards_of(make_cart(RICH, randomise=ranges), [0.6])
    np.testing.assert_allclose(drawn, rewards_of(make_cart(xml), [0.6]), rtol=1e-9)
    assert not np.allclose(drawn, rewards_of(make_cart(RICH), [0.6])[: len(drawn)])


def test_push_accelerates_for_a_tenth_of_a_second_from_its_time_on():
    kernel = make_cart(randomise={"push": 3.0})
    env = KernelEnv(kernel)
    env.reset(options={"start": [0.5, 0.4]})
    rates = [0.0]
    for _ in range(30):
        env.step([0.0])
        rates.append(env.state[1 + 2])
    first = int(0.4 * NUM_STEPS)
    changed = np.flatnonzero(np.abs(np.diff(rates)) > 0.03)
    assert changed.tolist() == list(range(first, first + 5))  # 5 actions of 0.02 s
    assert sum(np.diff(rates)[changed]) == pytest.approx(3.0 * 0.1, rel=0.05)


def test_model_has_its_own_numbers_between_steps():
    loaded, _ = model.load("compliant")
    before = {name: getattr(loaded, name).copy() for name in ("body_mass", "dof_frictionloss", "pair_friction")}
    gravity = loaded.opt.gravity.copy()
    kernel = randomise(kernels.simple_kernel(), ALL)
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.linspace(0, 1, kernel.start_size), state)
    for _ in range(20):
        kernel.step(kernel.params, state, np.ones(2))
    assert all(np.array_equal(getattr(loaded, name), value) for name, value in before.items())
    assert np.array_equal(loaded.opt.gravity, gravity)


@pytest.mark.parametrize("make", [kernels.simple_kernel, kernels.stochastic_kernel, make_cart])
def test_kernel_without_ranges_is_as_before_and_ranges_of_one_take_no_coordinates(make):
    plain, fixed = make(), randomise(make(), {"mass": 1.1, "motor": 0.9})
    assert randomise(plain, {"mass": 1.0}).step is plain.step
    assert fixed.start_size == plain.start_size
    assert randomise(plain, ALL).start_size == plain.start_size + len(ALL) + 1


def test_ranges_are_drawn_evenly_and_told_in_info():
    env = gymnasium.make("envs:tdpo/Leg-v0", randomise=ALL)
    _, info = env.reset(options={"start": np.linspace(0, 1, 8)})
    names = [name for name in QUANTITIES if name in info]
    expected = {name: ALL[name][0] + u * (ALL[name][1] - ALL[name][0]) for name, u in zip(ALL, np.linspace(0, 1, 8))}
    assert len(names) == 7 and {name: info[name] for name in names} == pytest.approx(expected)


def test_interleaved_rollouts_with_other_models_do_not_disturb_each_other():
    kernel = randomise(kernels.stochastic_kernel(control_rate_hz=100), ALL)
    roller = KernelRoller(kernel, (16, 16), gamma=0.99)
    theta = standing_policy(roller.layer_sizes)
    starts = roller.start_states(np.random.default_rng(0).random((6, kernel.start_size)))
    together = roller.rollouts(theta, starts)
    for b in range(6):
        alone = roller.rollouts(theta, starts[b : b + 1])
        assert np.array_equal(alone.final_states[0], together.final_states[b])
    assert len(np.unique(together.discounted_returns)) == 6


@pytest.mark.parametrize("delay", [0, (0, 3)])
@pytest.mark.parametrize("make", [kernels.simple_kernel, make_cart])
def test_branch_from_saved_state_equals_replay_bit_for_bit(make, delay):
    kernel = delay_actions(randomise(make(), ALL), delay)
    roller = KernelRoller(kernel, (8,), gamma=0.99)
    theta = np.random.default_rng(0).normal(size=roller.num_parameters)
    starts = roller.start_states(np.random.default_rng(1).random((3, kernel.start_size)))
    t = 17
    main = roller.rollouts(theta, starts, save_steps=np.full((3, 1), t))
    branch = roller.rollouts(theta, main.saved_states[:, 0], num_steps=np.full(3, kernel.horizon - t))
    for b in range(3):
        num = main.lengths[b] - t
        assert np.array_equal(branch.rewards[b, :num], main.rewards[b, t : t + num])


def test_pickled_environment_keeps_its_ranges():
    import pickle

    env = gymnasium.make("envs:tdpo/Leg-v0", randomise={"mass": (0.8, 1.2)}, delay_steps=(0, 3)).unwrapped
    env.reset(seed=1)
    again = pickle.loads(pickle.dumps(env))
    assert again.step([1.0, 1.0])[1] == env.step([1.0, 1.0])[1] and again.kernel.start_size == 2


def test_later_ranges_replace_earlier_ones_of_the_same_name():
    kernel = make_cart(randomise={"mass": (0.8, 1.2), "gravity": (0.9, 1.1)})
    assert randomise(kernel, {"mass": 1.0}).start_size == kernel.start_size - 1
    assert randomise(kernel, {"mass": 1.0, "gravity": 1.0}).start_size == make_cart().start_size


def test_mujoco_version_has_the_arrays_that_are_multiplied():
    from envs.mujoco.randomisation import DIVIDED, MULTIPLIED

    loaded = mujoco.MjModel.from_xml_string(RICH)
    for arrays in (*MULTIPLIED.values(), *DIVIDED.values()):
        assert all(isinstance(getattr(loaded, name), np.ndarray) for name in arrays)
