"""A leg's state in physical terms: for `info`, for evaluations, as a figure, as a picture."""

from functools import cache, partial

import numpy as np

from . import model
from .params import (
    GROUND_FORCE,
    HAS_LANDED,
    IS_BROKEN,
    LAST_AIR_STEP,
    LINK,
    NUM_TERMS,
    PHYSICS_RATE_HZ,
    POSITION,
    RATE,
    ROUGHNESS,
    STEP,
    TERMS,
    TORQUE,
    LegParams,
)
from .reward import DENSE_TERMS, SIMPLE_TERMS

PICTURE_SIZE = (480, 640)  # height, width


def describe(params: LegParams, state: np.ndarray) -> dict[str, float]:
    """The true state, hidden from the policy, and the reward terms of the last step before their delay."""
    foot_x, foot_z = foot_position(state)
    names = term_names(params)
    return {
        "height": float(state[POSITION]),
        "height_rate": float(state[RATE]),
        "foot_x": float(foot_x),
        "foot_z": float(foot_z),
        "ground_force": float(state[GROUND_FORCE]),
        "torque_hip": float(state[TORQUE]),
        "torque_knee": float(state[TORQUE + 1]),
        "has_landed": bool(state[HAS_LANDED]),
        "is_violated": bool(params.is_dense and state[TERMS + DENSE_TERMS.index("violation")] < 0),
        "is_broken": bool(state[IS_BROKEN]),
        **{f"reward_{name}": float(state[TERMS + i]) for i, name in enumerate(names)},
    }


def measure(params: LegParams, state: np.ndarray) -> dict[str, float]:
    """How the leg stands at the end: degrees, cm, seconds, N m."""
    foot_x, _ = foot_position(state)
    return {
        "final_hip_deg": float(np.degrees(state[POSITION + 1])),
        "final_knee_deg": float(np.degrees(state[POSITION + 2])),
        "final_foot_x_cm": float(100 * foot_x),
        "final_rate": float(np.hypot(state[RATE + 1], state[RATE + 2])),
        "last_in_air_s": float(state[LAST_AIR_STEP] / PHYSICS_RATE_HZ),
        "torque_roughness": float(np.sqrt(state[ROUGHNESS])),
        "is_broken": float(state[IS_BROKEN]),
    }


def foot_position(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and z of the foot's centre, of a state or of many."""
    hip, shin = states[..., POSITION + 1], states[..., POSITION + 1] + states[..., POSITION + 2]
    x = LINK * (np.cos(hip) + np.cos(shin))
    return x, states[..., POSITION] + LINK * (np.sin(hip) + np.sin(shin))


def term_names(params: LegParams) -> tuple[str, ...]:
    return DENSE_TERMS if params.is_dense else SIMPLE_TERMS


def draw(params: LegParams, states: np.ndarray):
    """The paper's figure of a drop: angles, rates, torques, heights, ground force, reward terms."""
    from matplotlib.figure import Figure

    seconds = states[:, STEP] / PHYSICS_RATE_HZ
    landed = np.flatnonzero(states[:, HAS_LANDED])
    impact = seconds[landed[0]] if len(landed) else None
    figure = Figure(figsize=(11, 9), layout="constrained")
    (angles, torques), (rates, force), (heights, terms) = figure.subplots(3, 2)

    for panel, first, scale, label, targets in (
        (angles, POSITION + 1, 180 / np.pi, "angle (deg)", (-45, -90)),
        (rates, RATE + 1, 1, "rate (rad/s)", (0, 0)),
        (torques, TORQUE, 1, "torque at the joint (N m)", ()),
    ):
        for i, name in enumerate(("hip", "knee")):
            panel.plot(seconds, scale * states[:, first + i], color=f"C{i}", linewidth=1, label=name)
        for i, target in enumerate(targets):
            panel.axhline(target, color=f"C{i}", linewidth=0.8, linestyle=":")
        panel.set_ylabel(label)
        panel.legend(loc="upper right")

    knee = states[:, POSITION] + LINK * np.sin(states[:, POSITION + 1])
    for name, height in (("hip", states[:, POSITION]), ("knee", knee), ("foot", foot_position(states)[1])):
        heights.plot(seconds, height, linewidth=1, label=name)
    heights.set_ylabel("height (m)")
    heights.legend(loc="upper right")

    force.plot(seconds, states[:, GROUND_FORCE], color="C3", linewidth=1)
    force.set_ylabel("ground force (N)")
    if impact is not None:
        force.set_xlim(impact - 0.02, impact + 0.12)
        force.set_title("around the impact", fontsize="medium")
        for panel in (angles, rates, torques, heights, terms):
            panel.axvline(impact, color="0.6", linewidth=0.8)

    for i, name in enumerate(term_names(params)):
        terms.plot(seconds[1:], states[1:, TERMS + i], linewidth=1, label=name.replace("_", " "))
    terms.set_ylabel("reward terms")
    lowest = np.quantile(states[1:, TERMS : TERMS + NUM_TERMS].min(axis=1), 0.01)  # not the spikes of an impact
    terms.set_ylim(1.05 * lowest, -0.05 * lowest)
    terms.legend(loc="lower right", ncols=2, fontsize="small")
    for panel in (heights, terms, force):
        panel.set_xlabel("time (s)")
    return figure


def render(contact: str):
    """The function that pictures a leg on that ground, through MuJoCo; it needs OpenGL (EGL or OSMesa)."""
    return partial(_render, contact)


@cache
def _renderer(contact: str):
    import mujoco

    loaded, _ = model.load(contact)
    try:
        return mujoco.Renderer(loaded, *PICTURE_SIZE), mujoco.MjData(loaded)
    except Exception as error:  # whatever the OpenGL library raises
        remedy = "without a screen, set MUJOCO_GL=egl (or osmesa) before starting Python"
        raise RuntimeError(f"MuJoCo cannot render here: {error}; {remedy}") from error


def _render(contact: str, params: LegParams, state: np.ndarray) -> np.ndarray:
    import mujoco

    renderer, data = _renderer(contact)
    data.qpos[:] = state[POSITION : POSITION + 3]
    mujoco.mj_forward(model.load(contact)[0], data)
    renderer.update_scene(data, camera="side")
    return renderer.render()
