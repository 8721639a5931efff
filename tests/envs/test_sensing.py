import numpy as np
import pytest

from envs.control.mechanics import cart_pole_kernel
from envs.gym_env import KernelEnv
from envs.kernel import Kernel
from envs.leg.kernels import simple_kernel
from envs.sensing import add_noise, delay_observations
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


def observations_of(kernel, start, num=30) -> np.ndarray:
    env = KernelEnv(kernel)
    seen = [env.reset(options={"start": start})[0]]
    for action in np.random.default_rng(0).uniform(-1, 1, (num, kernel.action_size)):
        seen.append(env.step(action)[0])
    return np.array(seen)


@pytest.mark.parametrize("delay", [1, 4])
def test_late_observation_is_that_of_delay_steps_ago_and_the_first_before(delay):
    kernel = cart_pole_kernel()
    start = np.full(kernel.start_size, 0.3)
    plain, late = (observations_of(k, start) for k in (kernel, delay_observations(kernel, delay)))
    assert np.array_equal(late, plain[np.maximum(np.arange(31) - delay, 0)])


def test_no_delay_is_the_kernel_itself():
    kernel = cart_pole_kernel()
    assert delay_observations(kernel, 0) is kernel


def test_late_observations_begin_with_start_values_that_are_set_by_hand():
    env = KernelEnv(delay_observations(simple_kernel(observation_delay_steps=0), 3))
    assert env.reset(options={"theta_hip": -0.7})[0][0] == -0.7
    assert env.step([0.0, 0.0])[0][0] == -0.7


def test_noise_has_its_size_and_differs_between_starts_steps_and_entries():
    kernel = cart_pole_kernel()
    noisy, start = add_noise(kernel, 0.1), np.full(kernel.start_size, 0.3)
    plain = observations_of(kernel, start)
    rest = np.concatenate([observations_of(noisy, np.append(start, u)) - plain for u in np.linspace(0.01, 0.99, 50)])
    assert rest.std() == pytest.approx(0.1, rel=0.03) and abs(rest.mean()) < 0.005
    assert len(np.unique(rest)) == rest.size and np.abs(np.corrcoef(rest.T) - np.eye(rest.shape[1])).max() < 0.1


def test_noise_by_name_leaves_the_other_observations_exact():
    kernel = simple_kernel()
    names = list(kernel.interface.observations)
    noisy = add_noise(kernel, {"knee_rate": 0.2})
    rest = observations_of(noisy, [0.5]) - observations_of(kernel, [])
    assert not rest[:, :3].any() and rest[:, 3].all() and names[3] == "knee_rate"


def test_branch_from_saved_state_equals_replay_bit_for_bit():
    kernel = delay_observations(add_noise(simple_kernel(), 0.05), 3)
    roller = KernelRoller(kernel, (8,), gamma=0.99)
    theta = np.random.default_rng(0).normal(size=roller.num_parameters)
    starts = roller.start_states(np.array([[0.2], [0.9]]))
    main = roller.rollouts(theta, starts, save_steps=np.full((2, 1), 50))
    branch = roller.rollouts(theta, main.saved_states[:, 0], num_steps=np.full(2, kernel.horizon - 50))
    assert np.array_equal(branch.rewards[:, :-50], main.rewards[:, 50:])
    assert np.array_equal(branch.final_states, main.final_states)


def test_interface_tells_the_delay():
    interface = delay_observations(simple_kernel(), 4).interface
    assert interface.observation_delay_s == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("std", "message"),
    [
        ({"knee": 0.1}, "std: no observation 'knee'; there are hip_angle"),
        (-0.1, "std of hip_angle must be at least 0"),
    ],
)
def test_bad_noise_is_named(std, message):
    with pytest.raises(ValueError, match=message):
        add_noise(simple_kernel(), std)


@pytest.mark.parametrize("delay", [-1, 1.5, True])
def test_bad_delay_is_named(delay):
    with pytest.raises(ValueError, match="delay_steps must be a whole number"):
        delay_observations(simple_kernel(), delay)


def reset_slide(params, start, state):
    state[0] = 0.5


def observe_slide(params, state, observation):
    observation[0] = state[0]


def step_slide(params, state, action):
    state[0] += action[0]
    return -state[0], False


def test_functions_of_a_user_are_compiled_first():
    limits = {
        f"{of}_{end}": np.array([sign])
        for of in ("observation", "action")
        for end, sign in (("low", -1.0), ("high", 1.0))
    }
    kernel = Kernel(None, reset_slide, observe_slide, step_slide, horizon=5, state_size=1, start_size=0, **limits)
    env = KernelEnv(delay_observations(add_noise(kernel, {"0": 0.0}), 1))
    env.reset(seed=0)
    assert [env.step([0.25])[0][0] for _ in range(3)] == [0.5, 0.75, 1.0]
