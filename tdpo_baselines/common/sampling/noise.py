"""Coloured exploration noise of unit variance: one or several first-order filters of white noise.

Noise continues through the ends of episodes, so it is stationary from the first step to the last; its state is part
of a checkpoint. The relative bandwidth is in (0, 1].

  gaussian   white
  ou         Ornstein-Uhlenbeck: y <- (1 - bandwidth) y + x; white at bandwidth 1
  pink       power 1/f up to about half of `bandwidth` times the Nyquist frequency, over some 12 octaves: as many
             filters with corners an octave apart and equal variance
  lowpass    the "pink" noise of the TDPO authors' code: uniform noise through one filter, never quite white
"""

from typing import NamedTuple

import numpy as np

from ..networks.code_cache import cached_jit

KINDS = ("gaussian", "ou", "pink", "lowpass")
NUM_OCTAVES = 12


class Colour(NamedTuple):
    """Filters y <- pole y + sqrt(1 - pole^2) x with x of unit variance; the noise is their scaled sum."""

    poles: np.ndarray  # [K]
    is_uniform: bool = False

    @classmethod
    def of(cls, kind: str, bandwidth: float) -> "Colour":
        """Return the filters of one of KINDS."""
        if kind == "ou":
            return cls(np.array([1 - bandwidth]))
        if kind == "pink":
            return cls(np.exp(-np.pi * bandwidth * 0.5 ** np.arange(NUM_OCTAVES)))
        if kind == "lowpass":
            return cls(np.array([1 / (1 + bandwidth / 2)]), is_uniform=True)
        return cls(np.zeros(1))

    def initial(self, rng: np.random.Generator, *shape: int) -> np.ndarray:
        """Draw states [..., K] of the filters from their stationary distribution."""
        return rng.standard_normal((*shape, len(self.poles)))

    def draw(self, rng: np.random.Generator, state: np.ndarray, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return noise [num_steps, ...] that continues from `state` [..., K], and the state after it."""
        shape = (num_steps, *state.shape)
        white = rng.uniform(-np.sqrt(3), np.sqrt(3), shape) if self.is_uniform else rng.standard_normal(shape)
        filtered = white.reshape(num_steps, -1)
        last = state.ravel().copy()
        _filter(filtered, last, np.tile(self.poles, last.size // len(self.poles)))
        filtered = filtered.reshape(shape)
        return filtered.sum(axis=-1) / np.sqrt(len(self.poles)), last.reshape(state.shape)


@cached_jit()
def _filter(signal, state, poles):
    """Filter signal [T, M] in place, a filter per column; `state` [M] is the last value."""
    gains = np.sqrt(1 - poles**2)
    for t in range(signal.shape[0]):
        for m in range(signal.shape[1]):
            state[m] = poles[m] * state[m] + gains[m] * signal[t, m]
            signal[t, m] = state[m]
