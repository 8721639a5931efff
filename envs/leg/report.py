"""The leg's state in physical terms: `info`, measures of a finished drop, a figure, a picture, a drawing."""

from collections.abc import Mapping
from functools import cache, partial

import numpy as np

from ..kernel import Scene
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
ANGLE_ERROR_DEG, FOOT_X_CM, TORQUE_ROUGHNESS, PAYOFF = 10, 3, 0.01, -0.6  # limits of a landing
LANDING_GAMMA = 0.99975  # discount of that payoff, the paper's


def describe(params: LegParams, state: np.ndarray) -> dict[str, float]:
    """Return the true state, which the policy does not see, and the undelayed reward terms of the last step."""
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
    """Return how the leg stands at the end: degrees, cm, seconds, N m."""
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


def has_landed(measures: Mapping[str, float]) -> bool:
    """Return True if the leg stands as asked, with smooth torques and the payoff asked for."""
    return (
        abs(measures["final_hip_deg"] + 45) <= ANGLE_ERROR_DEG
        and abs(measures["final_knee_deg"] + 90) <= ANGLE_ERROR_DEG
        and abs(measures["final_foot_x_cm"]) <= FOOT_X_CM
        and measures["torque_roughness"] <= TORQUE_ROUGHNESS
        and measures["payoff"] > PAYOFF
    )


def foot_position(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and z of the foot's centre in states [..., S]. [...], [...]"""
    hip, shin = states[..., POSITION + 1], states[..., POSITION + 1] + states[..., POSITION + 2]
    x = LINK * (np.cos(hip) + np.cos(shin))
    return x, states[..., POSITION] + LINK * (np.sin(hip) + np.sin(shin))


def term_names(params: LegParams) -> tuple[str, ...]:
    """Return the names of the reward terms, in their order in the state."""
    return DENSE_TERMS if params.is_dense else SIMPLE_TERMS


def draw(params: LegParams, states: np.ndarray):
    """Return the paper's figure of a drop: angles, rates, torques, heights, ground force, reward terms."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 9), layout="constrained")
    panels = figure.subplots(3, 2)
    (angles, torques), (rates, force), (heights, terms) = panels
    _draw_joints(angles, states, POSITION + 1, scale=180 / np.pi, label="angle (deg)", targets=(-45, -90))
    _draw_joints(rates, states, RATE + 1, label="rate (rad/s)", targets=(0, 0))
    _draw_joints(torques, states, TORQUE, label="torque at the joint (N m)")
    _draw_heights(heights, states)
    _draw_terms(terms, params, states)
    force.plot(_seconds(states), states[:, GROUND_FORCE], color="C3", linewidth=1)
    force.set_ylabel("ground force (N)")
    landed = np.flatnonzero(states[:, HAS_LANDED])
    if len(landed):
        impact = _seconds(states)[landed[0]]
        force.set_xlim(impact - 0.02, impact + 0.12)
        force.set_title("around the impact", fontsize="medium")
        for panel in (angles, rates, torques, heights, terms):
            panel.axvline(impact, color="0.6", linewidth=0.8, label="impact")
    for panel in (heights, terms, force):
        panel.set_xlabel("time (s)")
    for panel in (angles, rates, torques, heights, terms):
        panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")  # beside the data
    return figure


def _seconds(states: np.ndarray) -> np.ndarray:
    return states[:, STEP] / PHYSICS_RATE_HZ


def _draw_joints(panel, states: np.ndarray, first: int, *, label: str, scale=1.0, targets=()) -> None:
    """Plot a quantity of hip and knee, which are at `first` and `first` + 1 in the state."""
    for i, name in enumerate(("hip", "knee")):
        panel.plot(_seconds(states), scale * states[:, first + i], color=f"C{i}", linewidth=1, label=name)
    for i, target in enumerate(targets):
        panel.axhline(target, color=f"C{i}", linewidth=0.8, linestyle=":", label="" if i else "target")
    panel.set_ylabel(label)


def _draw_heights(panel, states: np.ndarray) -> None:
    hip = states[:, POSITION]
    knee = hip + LINK * np.sin(states[:, POSITION + 1])
    for name, height in (("hip", hip), ("knee", knee), ("foot", foot_position(states)[1])):
        panel.plot(_seconds(states), height, linewidth=1, label=name)
    panel.set_ylabel("height (m)")


def _draw_terms(panel, params: LegParams, states: np.ndarray) -> None:
    for i, name in enumerate(term_names(params)):
        panel.plot(_seconds(states)[1:], states[1:, TERMS + i], linewidth=1, label=name.replace("_", " "))
    panel.set_ylabel("reward terms")
    lowest = np.quantile(states[1:, TERMS : TERMS + NUM_TERMS].min(axis=1), 0.01)  # leaves out the spikes of an impact
    panel.set_ylim(1.05 * lowest, -0.05 * lowest)


def scene(params: LegParams, states: np.ndarray) -> Scene:
    """Return the leg as the chain hip, knee, foot."""
    hip_angle, shin_angle = states[:, POSITION + 1], states[:, POSITION + 1] + states[:, POSITION + 2]
    hip = np.stack([np.zeros(len(states)), states[:, POSITION]], axis=1)  # [M, 2]
    knee = hip + LINK * np.stack([np.cos(hip_angle), np.sin(hip_angle)], axis=1)
    foot = knee + LINK * np.stack([np.cos(shin_angle), np.sin(shin_angle)], axis=1)
    chain = np.stack([hip, knee, foot], axis=1)
    top = max(0.45, chain[..., 1].max() + 0.05)
    return Scene(
        chain,
        {"ground": np.array([[-1.0, 0.0], [1.0, 0.0]]), "rail": np.array([[0.0, 0.0], [0.0, top]])},
        (-0.3, 0.3, -0.03, top),
        {
            "height (m)": states[:, POSITION],
            "hip angle (deg)": np.degrees(hip_angle),
            "knee angle (deg)": np.degrees(states[:, POSITION + 2]),
            "ground force (N)": states[:, GROUND_FORCE],
        },
    )


def make_poses(contact: str):
    """Return the kernel's `poses` for a kind of ground."""
    return lambda params, states: (model.load(contact)[0], states[:, POSITION : POSITION + 3])


def make_renderer(contact: str):
    """Return the kernel's `render` for a kind of ground. MuJoCo needs OpenGL (EGL or OSMesa) for it."""
    return partial(_render, contact)


@cache
def _renderer(contact: str):
    import mujoco

    loaded, _ = model.load(contact)
    try:
        return mujoco.Renderer(loaded, *PICTURE_SIZE), mujoco.MjData(loaded)
    except Exception as error:  # OpenGL libraries raise anything
        remedy = "without a screen, set MUJOCO_GL=egl (or osmesa) before starting Python"
        raise RuntimeError(f"MuJoCo cannot render here: {error}; {remedy}") from error


def _render(contact: str, params: LegParams, state: np.ndarray) -> np.ndarray:
    import mujoco

    renderer, data = _renderer(contact)
    data.qpos[:] = state[POSITION : POSITION + 3]
    mujoco.mj_forward(model.load(contact)[0], data)
    renderer.update_scene(data, camera="side")
    return renderer.render()
