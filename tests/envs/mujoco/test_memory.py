import numpy as np
from numba import njit

from envs.mujoco.memory import memories, memory


@njit
def scale(addresses, sizes, base):
    first, second = memories(addresses, sizes, base)
    first[0] *= 2.0
    second[1] *= 3.0
    return first.size + second.size


def test_memories_are_arrays_at_addresses_or_behind_a_base():
    array, state = np.ones(3), np.ones(5)
    assert scale((array.ctypes.data, -16), (3, 2), state.ctypes.data) == 5
    assert array.tolist() == [2, 1, 1] and state.tolist() == [1, 1, 1, 3, 1]


def test_memory_is_the_array_at_an_address():
    array = np.arange(3.0)
    assert np.shares_memory(memory(array.ctypes.data, 3), array)
