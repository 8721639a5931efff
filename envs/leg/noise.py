"""Sensor noise of the joint rates: biased and coloured, zero at rest, full size above 1 rad/s.

Either an AR(2) process per joint, whose normal numbers are a function of (seed, step), so that the state needs no
generator; or a measured template, played cyclically from a random row.
"""

import math
from pathlib import Path

import numpy as np
from numba import njit

from ..parts.random_numbers import normal_pair
from .params import NOISE, NOISE_SEED, STEP

MAX_TEMPLATE_BYTES = 2**26
NO_NOISE, NOISE_MODEL, NOISE_TEMPLATE = 0, 1, 2

# Statistics of the authors' hardware: (hip, knee).
MEAN = (-0.194, 0.347)  # rad/s
LAG_1 = (1.6856, 1.7577)
LAG_2 = (-0.7072, -0.8273)
RESIDUAL_STD = (0.0267, 0.0748)
CORRELATION = 0.26  # between hip and knee
BURN_IN = 64  # steps from zero to stationary, before step 0


def _residual_correlation() -> float:
    """Return the correlation of the residuals for which the filtered processes have CORRELATION."""
    responses = np.zeros((2, 400))
    for response, a, b in zip(responses, LAG_1, LAG_2):
        response[:2] = 1.0, a
        for i in range(2, response.size):
            response[i] = a * response[i - 1] + b * response[i - 2]
    hip, knee = responses
    return float(CORRELATION * math.sqrt((hip @ hip) * (knee @ knee)) / (hip @ knee))


RESIDUAL_CORRELATION = _residual_correlation()
_INDEPENDENT = math.sqrt(1 - RESIDUAL_CORRELATION**2)


@njit
def advance_noise(state, step):
    """Advance the autoregressive processes (without their means) by one step."""
    first, second = normal_pair(state[NOISE_SEED], step + BURN_IN)
    second = RESIDUAL_CORRELATION * first + _INDEPENDENT * second
    hip = LAG_1[0] * state[NOISE] + LAG_2[0] * state[NOISE + 2] + RESIDUAL_STD[0] * first
    knee = LAG_1[1] * state[NOISE + 1] + LAG_2[1] * state[NOISE + 3] + RESIDUAL_STD[1] * second
    state[NOISE + 2], state[NOISE + 3] = state[NOISE], state[NOISE + 1]
    state[NOISE], state[NOISE + 1] = hip, knee


@njit
def begin_noise(params, state):
    """Set the stationary noise of step 0."""
    for i in range(4):
        state[NOISE + i] = 0.0
    if params.noise_kind == NOISE_MODEL:
        for step in range(-BURN_IN, 0):
            advance_noise(state, step)


@njit
def rate_noise(params, state):
    """Return the noise of the hip's and the knee's rate above 1 rad/s."""
    if params.noise_kind == NOISE_MODEL:
        return MEAN[0] + state[NOISE], MEAN[1] + state[NOISE + 1]
    if params.noise_kind == NOISE_TEMPLATE:
        num_rows = params.noise_template.shape[0]
        row = (int(state[NOISE_SEED] * num_rows) + int(state[STEP]) - 1) % (num_rows + 1)
        row = min(row, num_rows - 1)  # the last row is played twice
        return params.noise_template[row, 0], params.noise_template[row, 1]
    return 0.0, 0.0


def read_template(path: str) -> np.ndarray:
    """Return rows of (hip, knee) in rad/s at 4 kHz from a CSV file without a header. [R, 2]"""
    file = Path(path).expanduser()
    if file.exists() and not (file.is_file() and file.stat().st_size <= MAX_TEMPLATE_BYTES):
        raise ValueError(f"noise_template must be a CSV file of at most {MAX_TEMPLATE_BYTES:,} bytes, got {path}")
    try:
        template = np.loadtxt(file, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise ValueError(f"noise_template must be a CSV file of two columns, hip and knee (rad/s): {error}") from error
    if template.shape[0] < 1 or template.shape[1] != 2 or not np.all(np.isfinite(template)):
        raise ValueError(f"noise_template must have rows of two finite numbers, got shape {template.shape} in {path}")
    return np.ascontiguousarray(template)
