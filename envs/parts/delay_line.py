"""Delay lines inside a flat state."""

from numba import njit


@njit
def delay(values, first, num_slots, step, value):
    """Put in the value of a step, and return the one of `num_slots` - 1 steps ago; before step 0 it was the first.

    The line is values[first : first + num_slots]. Steps count from 0.
    """
    if step == 0:
        for slot in range(num_slots):
            values[first + slot] = value
    values[first + step % num_slots] = value
    return values[first + (step + 1) % num_slots]
