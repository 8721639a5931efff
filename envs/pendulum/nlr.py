"""The paper's pendulum with non-local reward: all reward is paid at the last step.

State: angle, rate, step, then the angles recorded so far.
"""

from collections.abc import Mapping

import numpy as np
from numba import njit

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Criterion, Interface, Kernel, Scene
from .nlr_figure import draw_oscillation
from .nlr_reward import (
    DT,
    NUM_STEPS,
    NLRParams,
    first_bin,
    last_bin,
    reward_terms,
    spectrum_measures,
    trajectory_reward,
)
from .physics import (
    ANGLE,
    COS_SIN,
    MAX_RATE,
    START_VALUES,
    TORQUE,
    check_start_scale,
    draw_rod,
    observe_cos_sin,
    place,
    swing,
)

MAX_TORQUE = 40.0  # N m
STEP = 2  # indices in the state
ANGLES = 3
OFFSET_ERROR, BAND_SHARE, AMPLITUDE_RATIO = 0.01, 0.9, 1.1  # limits of a solved task

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


@njit
def reset(params, start, state):
    place(params.start_scale, start, state)
    state[STEP:] = 0.0


@njit
def observe(params, state, observation):
    if params.use_cos_sin:
        observe_cos_sin(state, observation)
    else:
        observation[0] = state[0]
        observation[1] = state[1]


@njit(forceinline=True)  # counting references to its arrays would cost as much as the step itself
def step(params, state, action):
    k = min(max(int(state[STEP]), 0), NUM_STEPS - 1)  # an invalid state must not write outside its memory
    state[ANGLES + k] = state[0]
    swing(DT, MAX_TORQUE, state, action)
    state[STEP] += 1.0
    reward = 0.0 if k + 1 < NUM_STEPS else trajectory_reward(params, state[ANGLES:])
    return reward, False


def measure(params: NLRParams, state: np.ndarray) -> dict[str, float]:
    """Return the finished oscillation in physical terms and the three terms of its reward."""
    offset, amplitude, band_share = spectrum_measures(params, state[ANGLES:])
    frequency_term, offset_term, amplitude_term = reward_terms(params, state[ANGLES:])
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


def is_solved(measures: Mapping[str, float]) -> bool:
    """Return True if the oscillation has the offset, the band and the amplitude asked for."""
    return (
        measures["offset_error"] <= OFFSET_ERROR
        and measures["band_share"] >= BAND_SHARE
        and measures["amplitude_ratio"] <= AMPLITUDE_RATIO
    )


def draw(params: NLRParams, states: np.ndarray):
    """Return a figure of the finished oscillation in time and frequency, with its targets."""
    return draw_oscillation(params, states[-1, ANGLES:], measure(params, states[-1]))


def scene(params: NLRParams, states: np.ndarray) -> Scene:
    """Return the rod, and the offset as its target."""
    return draw_rod(states, target=params.offset)


OPTIONS = {  # meanings, for help and documentation
    "variant": "targets: 1 (main) to 9",
    "start_scale": "range of the start: 1 is the whole circle, as in Gymnasium, and rates up to 1 rad/s",
    "observation": "angle: angle and rate, as in the paper; cos_sin: cosine, sine and rate; cannot tell pi from -pi",
    "band_low_hz": "lower end of the band; none: the variant's",
    "band_high_hz": "upper end of the band; none: the variant's",
    "offset": "offset in rad; none: the variant's",
    "amplitude": "limit of the amplitude in rad; none: the variant's",
}


def nlr_kernel(
    variant: int = 1,
    start_scale: float = 0.1,
    observation: str = "angle",
    band_low_hz: float | None = None,
    band_high_hz: float | None = None,
    offset: float | None = None,
    amplitude: float | None = None,
) -> Kernel:
    """Return the pendulum that swings in a frequency band about an offset; the last of 200 steps pays all reward."""
    if variant not in VARIANTS:
        raise ValueError(f"variant must be 1 to 9, got {variant!r}")
    if observation not in ("angle", "cos_sin"):
        raise ValueError(f'observation must be "angle" or "cos_sin", got {observation!r}')
    own = {"band_low_hz": band_low_hz, "band_high_hz": band_high_hz, "offset": offset, "amplitude": amplitude}
    targets = dict(zip(own, VARIANTS[variant])) | {name: value for name, value in own.items() if value is not None}
    use_cos_sin = observation == "cos_sin"
    limits = np.array([1.0, 1.0, MAX_RATE] if use_cos_sin else [np.inf, MAX_RATE])
    return Kernel(
        params=NLRParams(*_check_targets(targets), check_start_scale(start_scale), use_cos_sin),
        reset=compile_template(reset),
        observe=compile_template(observe),
        step=compile_template(step),
        horizon=NUM_STEPS,
        state_size=ANGLES + NUM_STEPS,
        start_size=2,
        observation_low=-limits,
        observation_high=limits,
        action_low=np.array([-MAX_TORQUE]),
        action_high=np.array([MAX_TORQUE]),
        is_horizon_terminal=True,
        start_values=START_VALUES,
        interface=Interface(COS_SIN if use_cos_sin else ANGLE, TORQUE, 1 / DT),
        measure=measure,
        criterion=Criterion("solved", is_solved),
        draw=draw,
        scene=scene,
    )


def _check_targets(targets: dict[str, float]) -> tuple[float, float, float, float]:
    """Return band_low_hz, band_high_hz, offset and amplitude, or raise ValueError."""
    for name, value in targets.items():
        least, most = TARGET_LIMITS[name]
        if isinstance(value, (bool, str)) or not least <= value <= most:
            raise ValueError(f"{name} must be a number from {least} to {most}, got {value!r}")
    low, high = targets["band_low_hz"], targets["band_high_hz"]
    if not first_bin(low) <= last_bin(high):
        raise ValueError(f"band_low_hz and band_high_hz must have a multiple of 0.1 Hz between them, got {low}, {high}")
    return float(low), float(high), float(targets["offset"]), float(targets["amplitude"])
