"""Helpers for tests of the leg: states placed by hand, and a policy that stands."""

import json
from pathlib import Path

import mujoco
import numpy as np

REFERENCE = json.loads((Path(__file__).parent.parent / "envs" / "leg" / "reference.json").read_text())
# The reference was made with one version of MuJoCo. Another may add in another order, and errors grow after an impact.
IS_REFERENCE_VERSION = mujoco.__version__ == REFERENCE["mujoco"]
RTOL = 1e-8 if IS_REFERENCE_VERSION else 1e-6


def place(kernel, height=0.4, hip=-40 / 57.295, knee=-100 / 57.295):
    state = np.zeros(kernel.state_size)
    kernel.place(state, {"height": height, "theta_hip": hip, "theta_knee": knee})
    return state


def observe(kernel, state):
    observation = np.zeros(4)
    kernel.observe(kernel.params, state, observation)
    return observation


def standing_policy(layer_sizes):
    """Return parameters of a network whose nearly linear units make a PD controller: the leg lands and stands."""
    small, num = 0.02, layer_sizes[1]
    first, second, last = np.zeros((4, num)), np.eye(num), np.zeros((num, 2))
    first[:, :4] = small * np.eye(4)
    last[:4] = np.array([[-6, 0], [0, -6], [-0.3, 0], [0, -0.3]]) / small
    zeros, bias = np.zeros(num), 6 * np.array([-0.8, -1.45])
    return np.concatenate([first.ravel(), zeros, second.ravel(), zeros, last.ravel(), bias])
