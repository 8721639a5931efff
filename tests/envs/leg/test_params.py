import numpy as np
from leg_states import place

from envs.leg import kernels, params


def test_state_grows_with_the_delays():
    """Count four numbers of an observation, two of a command and one of a reward."""
    size = kernels.simple_kernel().state_size
    assert kernels.simple_kernel(observation_delay_steps=6).state_size == size + 2 * 4
    assert kernels.simple_kernel(torque_delay_steps=9).state_size == size + 5 * 2
    assert kernels.simple_kernel(reward_delay_steps=0).state_size == size - 3


def test_a_step_fills_the_state_to_its_end():
    kernel = kernels.simple_kernel()
    state = place(kernel)
    state[params.QUEUES :] = np.nan
    for _ in range(8):
        kernel.step(kernel.params, state, np.array([1.0, 2.0]))
    assert np.isfinite(state).all()
