"""Arrays of a model by name, such as "qpos", "qpos:knee" or "site_xpos:foot", resolved once to memory of MuJoCo."""

import difflib
import keyword
from collections import namedtuple
from collections.abc import Iterable, Mapping
from typing import Any

import mujoco
import numpy as np

OBJECTS = {  # kinds of named objects, and their arrays that a view can show
    "joint": ("qpos", "qvel", "qacc", "qfrc_actuator", "qfrc_applied", "qfrc_bias", "qfrc_constraint", "qfrc_passive"),
    "actuator": ("ctrl", "actuator_force", "actuator_length", "actuator_velocity"),
    "sensor": ("sensordata",),
    "site": ("site_xpos", "site_xmat"),
    "geom": ("geom_xpos", "geom_xmat"),
    "body": (
        *("xpos", "xquat", "xmat", "xipos", "ximat", "subtree_com", "cvel", "xfrc_applied"),
        *("cinert", "cfrc_ext", "cfrc_int", "cacc"),
    ),
    "tendon": ("ten_length", "ten_velocity"),
}
KINDS = {array: kind for kind, arrays in OBJECTS.items() for array in arrays}
LATE = ("cfrc_ext", "cfrc_int", "cacc")  # computed by mj_rnePostConstraint alone
PREVIOUS = "previous "  # before an array: as it was before the action
BUILT_IN = {"qpos": "qpos", "qvel": "qvel", "ctrl": "ctrl"}  # and step and memory, which are in the state


class Layout:
    """Where the views are: in MuJoCo's memory, or in the flat state.

    The state: MuJoCo's part, the step, 1 if diverged, the observation, previous values, the task's memory.
    """

    def __init__(
        self, model, data, views: Mapping[str, str], mujoco_size: int, num_observations: int, memory_size: int
    ):
        self.found: dict[str, np.ndarray] = {}  # in MuJoCo's memory; previous values: where the present ones are
        self.index: dict[str, int] = {}  # in the state
        self.state_size = mujoco_size + 2 + num_observations
        for name, text in {**BUILT_IN, **views}.items():
            _check_name(name, views)
            try:
                self.found[name] = find(model, data, text.removeprefix(PREVIOUS))
            except ValueError as error:
                raise ValueError(f"views: {name}: {error}") from error
            if text.startswith(PREVIOUS):
                self._append(name, self.found[name].size)
        self.sizes = {name: array.size for name, array in self.found.items()} | {"step": 1, "memory": memory_size}
        self.index["step"] = mujoco_size
        self._append("memory", memory_size)
        self.needs_late_forces = any(text.removeprefix(PREVIOUS).startswith(LATE) for text in views.values())
        self.View: Any = namedtuple("View", self.sizes)  # type: ignore[misc]

    def _append(self, name: str, size: int) -> None:
        self.index[name] = self.state_size
        self.state_size += size

    def addresses(self) -> tuple[int, ...]:
        """Return the addresses of the views; -n is n bytes into the state."""
        return tuple(
            -8 * self.index[name] if name in self.index else self.found[name].ctypes.data for name in self.sizes
        )

    def previous(self) -> np.ndarray:
        """Return pairs of indices in the state and addresses of what is kept there for the next action. [P, 2]"""
        kept = [(self.index[name], self.found[name]) for name in self.index if name in self.found]
        pairs = [(first + i, array.ctypes.data + 8 * i) for first, array in kept for i in range(array.size)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def view(self, state: np.ndarray) -> Any:
        """Return the view for functions that run in Python."""
        in_state = {name: state[i : i + self.sizes[name]] for name, i in self.index.items()}
        return self.View(**{**self.found, **in_state})


def find(model: mujoco.MjModel, data: mujoco.MjData, text: str) -> np.ndarray:
    """Return the memory that a text names, flat; raise ValueError for an unknown name."""
    array, colon, name = text.partition(":")
    if array not in KINDS:
        raise ValueError(f"no array {array!r} in {text!r}{suggest(array, KINDS)}; arrays: {', '.join(KINDS)}")
    if not colon:
        return getattr(data, array).reshape(-1)
    kind = KINDS[array]
    names = list_names(model, kind)
    if name not in names:
        known = ", ".join(names) or f"it names no {kind}"
        raise ValueError(f"the model has no {kind} {name!r} for {text!r}{suggest(name, names)}; it has {known}")
    named: Any = getattr(data, kind)(name)
    member = {"sensordata": "data"}.get(array, array.removeprefix(f"{kind}_").removeprefix("ten_"))
    return getattr(named, member).reshape(-1)


def list_names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Return the names of the model's objects of a kind, without objects that have none."""
    number = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    count = getattr(model, {"joint": "njnt", "actuator": "nu"}.get(kind, f"n{kind}"))
    names = (mujoco.mj_id2name(model, number, i) for i in range(count))
    return [name for name in names if name]


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" if a known name is near, else ''."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _check_name(name: str, views: Mapping[str, str]) -> None:
    """Raise ValueError unless a view may have the name."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"views: a name must be a Python name without a leading underscore, got {name!r}")
    if name in {*BUILT_IN, "step", "memory"} & views.keys():
        raise ValueError(f"views: {name!r} is there without being asked for; give yours another name")
