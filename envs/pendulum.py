"""The pendulum: one physics, two tasks.

`long_kernel`: Gymnasium's Pendulum-v1 task at any control rate, 10 s long.
`nlr_kernel`: the paper's non-local reward. The angle over the whole episode shall oscillate about an
offset, inside a frequency band, with a bounded amplitude; all reward is paid at the last step.

Angle 0 is upright and is never wrapped. Torque is limited inside the step.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from .kernel import Kernel
from .pendulum_figure import draw_nlr

MAX_RATE = 8.0  # rad/s
EPISODE_SECONDS = 10.0
START_VALUES = {"angle": 0, "rate": 1}  # rad, rad/s, and where they are in the state


@njit(cache=True)
def swing(dt, max_torque, state, action):
    """One step of Gymnasium's pendulum on state[0:2] = (angle, rate); limits action in place."""
    torque = min(max(action[0], -max_torque), max_torque)
    action[0] = torque
    rate = state[1] + (15.0 * math.sin(state[0]) + 3.0 * torque) * dt
    rate = min(max(rate, -MAX_RATE), MAX_RATE)
    state[0] += rate * dt
    state[1] = rate


@njit(cache=True)
def place(start_scale, start, state):
    """Angle over start_scale of the circle, rate over start_scale of [-1, 1], from the unit square."""
    state[0] = start_scale * (-math.pi + 2.0 * math.pi * start[0])
    state[1] = start_scale * (-1.0 + 2.0 * start[1])


@njit(cache=True)
def observe_cos_sin(state, observation):
    observation[0] = math.cos(state[0])
    observation[1] = math.sin(state[0])
    observation[2] = state[1]


# Gymnasium's task at any rate. State: angle, rate.


class LongParams(NamedTuple):
    dt: float
    max_torque: float
    start_scale: float


@njit(cache=True)
def long_reset(params, start, state):
    place(params.start_scale, start, state)


@njit(cache=True)
def long_observe(params, state, observation):
    observe_cos_sin(state, observation)


@njit(cache=True)
def long_step(params, state, action):
    angle = (state[0] + math.pi) % (2.0 * math.pi) - math.pi
    rate = state[1]
    swing(params.dt, params.max_torque, state, action)
    return -(angle**2 + 0.1 * rate**2 + 0.001 * action[0] ** 2), False


def long_kernel(control_rate_hz: float = 20, start_scale: float = 1.0) -> Kernel:
    """Pendulum-v1 controlled at `control_rate_hz`; `start_scale` shrinks the range of starts."""
    if not 1 <= control_rate_hz <= 1e5:
        raise ValueError(f"control_rate_hz must be between 1 and 100000, got {control_rate_hz}")
    return Kernel(
        params=LongParams(1.0 / control_rate_hz, 2.0, _checked_start_scale(start_scale)),
        reset=long_reset,
        observe=long_observe,
        step=long_step,
        horizon=round(EPISODE_SECONDS * control_rate_hz),
        state_size=2,
        start_size=2,
        observation_low=np.array([-1.0, -1.0, -MAX_RATE]),
        observation_high=np.array([1.0, 1.0, MAX_RATE]),
        action_low=np.array([-2.0]),
        action_high=np.array([2.0]),
        start_values=START_VALUES,
    )


# The non-local reward. State: angle, rate, step, then the angles of the steps so far.

NUM_STEPS = 200
DT = 0.05  # s
MAX_TORQUE = 40.0  # N m
REWARD_SCALE = 1.3e4  # C_R of the paper
ANGLES = 3  # where the recorded angles begin in the state

# The paper's table of swinging pendulum variants: band (Hz), offset (rad), amplitude (rad).
VARIANTS = {
    1: (1.7, 2.0, 0.524, 0.28),
    2: (0.5, 0.7, 1.571, 1.11),
    3: (2.5, 3.0, 0.524, 0.28),
    4: (2.0, 2.4, 0.785, 0.28),
    5: (2.0, 2.4, 1.571, 0.74),
    6: (2.0, 2.4, 0.524, 0.28),
    7: (2.0, 2.4, 1.047, 0.28),
    8: (2.0, 2.4, 0.785, 0.74),
    9: (2.0, 2.4, 1.309, 0.28),
}


TARGET_LIMITS = {"band_low_hz": (0.1, 10), "band_high_hz": (0.1, 10), "offset": (-10, 10), "amplitude": (1e-3, 10)}


class NLRParams(NamedTuple):
    band_low_hz: float
    band_high_hz: float
    offset: float
    amplitude: float
    start_scale: float
    use_cos_sin: bool


@njit(cache=True)
def nlr_reset(params, start, state):
    place(params.start_scale, start, state)
    state[2:] = 0.0


@njit(cache=True)
def nlr_observe(params, state, observation):
    if params.use_cos_sin:
        observe_cos_sin(state, observation)
    else:
        observation[0] = state[0]
        observation[1] = state[1]


@njit(cache=True, error_model="numpy", forceinline=True)  # counting references to its arrays costs as much as it does
def nlr_step(params, state, action):
    step = min(max(int(state[2]), 0), NUM_STEPS - 1)  # a wild state must not write outside its history
    state[ANGLES + step] = state[0]
    swing(DT, MAX_TORQUE, state, action)
    state[2] += 1.0
    reward = 0.0 if step + 1 < NUM_STEPS else whole_reward(params, state)
    return reward, False


@njit(cache=True, error_model="numpy")
def whole_reward(params, state):
    """For the finished oscillation."""
    frequency, offset, amplitude = reward_terms(params, state[ANGLES:])
    return REWARD_SCALE * (frequency + offset + amplitude)


@njit(cache=True, error_model="numpy")
def reward_terms(params, angles):
    """R_freq, R_offset, R_amp of the paper's appendix, for 200 angles."""
    offset, amplitude, band_share = spectrum_measures(params, angles)
    excess = amplitude / params.amplitude - 1.0
    amplitude_term = -excess if excess >= 0.0 else 1e-4 * excess
    return 0.1 * (band_share - 1.0), -abs(offset - params.offset), amplitude_term


@njit(cache=True, error_model="numpy")
def spectrum_measures(params, angles):
    """Mean angle, ||Theta+|| / 200 and the in-band share of ||Theta+||^2.

    Theta+ are the magnitudes of Fourier bins 1..100, 0.1 Hz apart. Only the band's own bins are
    transformed; the sum over all of them follows from Parseval's theorem, where bins 1..99 count
    twice and the Nyquist bin once.
    """
    num = angles.shape[0]
    offset = angles.mean()
    energy = 0.0
    nyquist = 0.0
    for i in range(num):
        deviation = angles[i] - offset
        energy += deviation * deviation
        nyquist += deviation if i % 2 == 0 else -deviation
    norm = math.sqrt(0.5 * (num * energy + nyquist * nyquist))
    in_band = 0.0
    for k in range(_first_bin(params.band_low_hz), _last_bin(params.band_high_hz) + 1):
        in_band += bin_power(angles, offset, k)
    return offset, norm / num, in_band / (norm + 1e-6) ** 2


@njit(cache=True)
def _first_bin(frequency):
    """Of the Fourier bins from that frequency (Hz) on."""
    return math.ceil(frequency * NUM_STEPS * DT - 1e-6)


@njit(cache=True)
def _last_bin(frequency):
    return math.floor(frequency * NUM_STEPS * DT + 1e-6)


@njit(cache=True, error_model="numpy")
def bin_power(angles, offset, k):
    """|FFT(angles - offset)[k]|^2, turning a phasor instead of calling sine 200 times."""
    turn = 2.0 * math.pi * k / angles.shape[0]
    turn_cos, turn_sin = math.cos(turn), math.sin(turn)
    c, s = 1.0, 0.0
    real, imag = 0.0, 0.0
    for i in range(angles.shape[0]):
        deviation = angles[i] - offset
        real += deviation * c
        imag += deviation * s
        c, s = c * turn_cos - s * turn_sin, c * turn_sin + s * turn_cos
    return real * real + imag * imag


def nlr_measure(params: NLRParams, state: np.ndarray) -> dict[str, float]:
    """The finished oscillation in physical terms and the three terms of its reward."""
    angles = state[ANGLES:]
    offset, amplitude, band_share = spectrum_measures(params, angles)
    frequency_term, offset_term, amplitude_term = reward_terms(params, angles)
    return {
        "offset": offset,
        "offset_error": abs(offset - params.offset),
        "amplitude": amplitude,
        "amplitude_ratio": amplitude / params.amplitude,
        "band_share": band_share,
        "reward_frequency": frequency_term,
        "reward_offset": offset_term,
        "reward_amplitude": amplitude_term,
    }


def nlr_draw(params: NLRParams, states: np.ndarray):
    """Figure of the finished oscillation in time and frequency, targets marked."""
    return draw_nlr(params, states[-1, ANGLES:], DT, nlr_measure(params, states[-1]))


def nlr_kernel(
    variant: int = 1,
    start_scale: float = 0.1,
    observation: str = "angle",
    band_low_hz: float | None = None,
    band_high_hz: float | None = None,
    offset: float | None = None,
    amplitude: float | None = None,
) -> Kernel:
    """The paper's pendulum with non-local reward, `variant` 1 (main) to 9, or with targets of one's own.

    `start_scale` 1 starts anywhere on the circle as Gymnasium does. `observation` is "angle" (angle
    and rate, as in the paper) or "cos_sin", in which targets at +pi and -pi look alike.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be 1 to 9, got {variant!r}")
    if observation not in ("angle", "cos_sin"):
        raise ValueError(f'observation must be "angle" or "cos_sin", got {observation!r}')
    own = {"band_low_hz": band_low_hz, "band_high_hz": band_high_hz, "offset": offset, "amplitude": amplitude}
    targets = dict(zip(own, VARIANTS[variant])) | {name: value for name, value in own.items() if value is not None}
    low, high, middle, size = _checked_targets(targets)
    use_cos_sin = observation == "cos_sin"
    limits = np.array([1.0, 1.0, MAX_RATE] if use_cos_sin else [np.inf, MAX_RATE])
    return Kernel(
        params=NLRParams(low, high, middle, size, _checked_start_scale(start_scale), use_cos_sin),
        reset=nlr_reset,
        observe=nlr_observe,
        step=nlr_step,
        horizon=NUM_STEPS,
        state_size=ANGLES + NUM_STEPS,
        start_size=2,
        observation_low=-limits,
        observation_high=limits,
        action_low=np.array([-MAX_TORQUE]),
        action_high=np.array([MAX_TORQUE]),
        start_values=START_VALUES,
        measure=nlr_measure,
        draw=nlr_draw,
    )


def _checked_targets(targets: dict[str, float]) -> list[float]:
    for name, value in targets.items():
        least, most = TARGET_LIMITS[name]
        if isinstance(value, (bool, str)) or not least <= value <= most:
            raise ValueError(f"{name} must be a number from {least} to {most}, got {value!r}")
    low, high = targets["band_low_hz"], targets["band_high_hz"]
    if not _first_bin(low) <= _last_bin(high):
        raise ValueError(f"band_low_hz and band_high_hz must have a multiple of 0.1 Hz between them, got {low}, {high}")
    return [float(value) for value in targets.values()]


def _checked_start_scale(start_scale: float) -> float:
    if not 0 <= start_scale <= 1:
        raise ValueError(f"start_scale must be between 0 and 1, got {start_scale!r}")
    return float(start_scale)
