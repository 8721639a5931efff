"""Make a compiled environment from any MuJoCo model and a few small functions.

The functions see MuJoCo's memory by name. With views={"foot": "site_xpos:foot"} they read `view.foot[2]`, the height of
the site "foot"; "previous site_xpos:foot" is where it was before the action. Every view is a flat array. `qpos`, `qvel`
and `ctrl` are always there, as are `step` (`view.step[0]` actions so far) and `memory`: numbers of the task's own, zero
at the start.

    observe(params, view, observation)   fill in the observation
    reward(params, view, action)         return the reward of the action just executed
    is_over(params, view)                return True if the task ends here
    place(params, view, start)           set qpos and qvel at a point of the unit cube
    actuate(params, view, action)        set ctrl before each physics step; by default to the action

After an action they are called in the order `reward, is_over, observe`. A reward for the whole trajectory keeps its
history in `memory` and pays when `view.step[0]` is the horizon.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Interface, Kernel
from ..ranges import randomise as apply_ranges
from . import dynamics, trial
from .memory import INTEGRATION, load_library
from .randomisation import randomisable
from .views import Layout, list_names

MAX_WHOLE = 10**6
UNITS = {  # of force, position and rate by the type of a joint
    int(mujoco.mjtJoint.mjJNT_HINGE): ("N m", "rad", "rad/s"),
    int(mujoco.mjtJoint.mjJNT_SLIDE): ("N", "m", "m/s"),
}


def mujoco_task(
    model: str | Path,
    *,
    observations: Mapping[str, str],
    observe: Callable,
    reward: Callable,
    horizon: int,
    views: Mapping[str, str] | None = None,
    is_over: Callable = dynamics.never,
    place: Callable = dynamics.start_at_rest,
    start_size: int = 0,
    actuate: Callable = dynamics.apply_action,
    frame_skip: int = 1,
    memory_size: int = 0,
    params: Any = (),
    reward_if_diverged: float | None = -100.0,
    is_horizon_terminal: bool = False,
    randomise: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return a compiled environment.

    `model` is the path of an MJCF file, or its text. `observations` are their units by name, `views` names in MuJoCo's
    memory (`views.OBJECTS` has the arrays) by the names that the functions use. An action is held for `frame_skip`
    physics steps and limited to the actuators' ranges. `place` gets a point of the unit cube of `start_size`
    dimensions. `params` is a NamedTuple of numbers for all functions. A simulation that diverges stands still and pays
    `reward_if_diverged` at every step; None leaves it to MuJoCo, which starts it over from the model's file.
    `randomise` has ranges of `ranges.QUANTITIES`, drawn at each start, such as {"mass": (0.8, 1.2)}.
    """
    for name, value, least in (("horizon", horizon, 1), ("frame_skip", frame_skip, 1), ("memory_size", memory_size, 0)):
        _check_whole(name, value, least)
    functions = {"observe": observe, "reward": reward, "is_over": is_over, "place": place, "actuate": actuate}
    loaded, data = load(*find_source(model), is_reset_by_mujoco=reward_if_diverged is None)
    mujoco_size = mujoco.mj_stateSize(loaded, INTEGRATION)
    layout = Layout(loaded, data, views or {}, mujoco_size, len(observations), memory_size)
    low, high = _action_limits(loaded)
    task = dynamics.TaskParams(
        own=params,
        model=loaded._address,
        data=data._address,
        addresses=layout.addresses(),
        sizes=tuple(layout.sizes.values()),
        previous=layout.previous(),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        frame_skip=frame_skip,
        mujoco_size=mujoco_size,
        observation_size=len(observations),
        needs_late_forces=layout.needs_late_forces,
        is_frozen=reward_if_diverged is not None,
        reward_if_diverged=reward_if_diverged or 0.0,
    )
    num_steps = min(horizon, trial.NUM_STEPS)
    trial.rehearse(functions, task, loaded, data, layout, tuple(observations), num_steps, start_size)
    reset, begin, step = _compile(functions, layout.View)
    kernel = Kernel(
        params=task,
        reset=reset,
        observe=compile_template(dynamics.task_observe),
        step=step,
        horizon=horizon,
        state_size=layout.state_size,
        start_size=start_size,
        observation_low=np.full(len(observations), -np.inf),
        observation_high=np.full(len(observations), np.inf),
        action_low=low,
        action_high=high,
        is_horizon_terminal=is_horizon_terminal,
        start_values=_start_values(loaded),
        interface=Interface(observations, _action_units(loaded), 1 / (loaded.opt.timestep * frame_skip)),
        begin=begin,
        poses=lambda params, states: (loaded, states[..., 1 : 1 + loaded.nq]),
    )
    trial.compile_now(functions, kernel)
    return apply_ranges(randomisable(kernel, loaded), randomise or {})


@cache
def load(source: str, changed: float, is_reset_by_mujoco: bool) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a model and its memory, loaded once per process; `source` is a path or, if `changed` is 0, MJCF text."""
    load_library()
    try:
        loaded = mujoco.MjModel.from_xml_path(source) if changed else mujoco.MjModel.from_xml_string(source)
    except Exception as error:  # plugins and decoders may raise anything
        reason = " ".join(str(error).split())
        raise ValueError(f"model: MuJoCo cannot load {source if changed else 'the text'}: {reason}") from error
    if loaded.nu == 0:
        raise ValueError("model: it has no actuators, so there is nothing to control; add <actuator>")
    if not is_reset_by_mujoco:
        loaded.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    return loaded, mujoco.MjData(loaded)


def find_source(model: str | Path) -> tuple[str, float]:
    """Return a model's text and 0, or its path and when it was changed."""
    if isinstance(model, str) and model.lstrip().startswith("<"):
        return model, 0.0
    path = Path(model).expanduser()
    if not path.is_file():
        raise ValueError(f"model must be an MJCF file or its text, and there is no file {path}")
    return str(path.resolve()), path.stat().st_mtime


def _compile(functions: Mapping[str, Callable], view: type) -> tuple[Any, Any, Any]:
    """Return the compiled `reset`, `begin` and `step` of a task."""
    bound = {name: f if isinstance(f, Dispatcher) else njit(error_model="numpy")(f) for name, f in functions.items()}
    look = compile_template(dynamics.task_view, View=view)
    read_back = compile_template(dynamics.task_read_back, look=look, observe=bound["observe"])
    begin = compile_template(dynamics.task_begin, read_back=read_back)
    reset = compile_template(dynamics.task_reset, begin=begin, look=look, place=bound["place"])
    acting = {name: bound[name] for name in ("actuate", "reward", "is_over")}
    return reset, begin, compile_template(dynamics.task_step, read_back=read_back, look=look, **acting)


def _action_limits(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges of the actuators, or raise ValueError if one has none. [A], [A]"""
    for i, is_limited in enumerate(model.actuator_ctrllimited):
        if not is_limited:
            name = model.actuator(i).name or f"number {i}"
            raise ValueError(f'model: actuator {name} has no limits; give it ctrlrange="LOW HIGH"')
    low, high = model.actuator_ctrlrange.T
    return low.copy(), high.copy()


def _action_units(model: mujoco.MjModel) -> dict[str, str]:
    """Return the units of the actions by name: "1" unless the model says what an actuator does."""
    return {model.actuator(i).name or f"action_{i}": _action_unit(model, i) for i in range(model.nu)}


def _action_unit(model: mujoco.MjModel, i: int) -> str:
    """Return the unit of a motor's or servo's action at a hinge or slide, such as "N m", "150 N m" or "rad"."""
    is_at_joint = model.actuator_trntype[i] == int(mujoco.mjtTrn.mjTRN_JOINT)
    units = UNITS.get(int(model.jnt_type[model.actuator_trnid[i, 0]])) if is_at_joint else None
    has_dynamics = model.actuator_dyntype[i] != int(mujoco.mjtDyn.mjDYN_NONE)
    if units is None or has_dynamics or model.actuator_gaintype[i] != int(mujoco.mjtGain.mjGAIN_FIXED):
        return "1"
    force, position, rate = units
    gain, gear = model.actuator_gainprm[i, 0], model.actuator_gear[i, 0]
    if model.actuator_biastype[i] == int(mujoco.mjtBias.mjBIAS_NONE):
        return _scaled_unit(gain * gear, force)
    follows = dict(
        zip((position, rate), model.actuator_biasprm[i, 1:3])
    )  # servos: force = gain (action - what it follows)
    followed = [unit for unit, bias in follows.items() if gain and bias == -gain]
    return _scaled_unit(1 / gear, followed[0]) if followed and gear else "1"


def _scaled_unit(factor: float, unit: str) -> str:
    """Return a unit of which an action is a multiple."""
    return unit if factor == 1 else f"{factor:g} {unit}"


def _start_values(model: mujoco.MjModel) -> dict[str, int]:
    """Return the places in the state of the position and rate of every slide and hinge by its name."""
    scalar, values = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)), {}
    for name in list_names(model, "joint"):
        i = model.joint(name).id
        if model.jnt_type[i] in scalar:
            values[name] = 1 + int(model.jnt_qposadr[i])  # the time is first
            values[f"{name}_rate"] = 1 + model.nq + int(model.jnt_dofadr[i])
    return values


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_WHOLE:
        raise ValueError(f"{name} must be a whole number from {least} to {MAX_WHOLE}, got {value!r}")
