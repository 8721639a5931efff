"""A sweep: which runs it has, from a JSON object or from the command line.

    {"seeds": "0-2",
     "fixed":     {"env": "leg-100hz", "alg": "ppo1", "preset": "paper"},
     "cartesian": {"hidden_sizes": [[32, 32], [64, 64]]},
     "ovat":      {"gamma": [0.99, 0.98, 0.995], "lam": [0.98, 0.96]},
     "zip":       {"num_trajectories": [4, 8], "steps_per_trajectory": [256, 128]},
     "scale":     {"reference_hz": 100, "horizons": ["gamma", "lam"], "counts": ["steps_per_trajectory"]}}

A key is an argument or an option of `tdpo_baselines.run`; "a,b" gives two options the same value. Every cartesian
combination is joined with every one-variable-at-a-time setting (the first value of each list is the centre) and with
every row of the zipped lists. `scale` adapts settings that are meant for the control rate `reference_hz` to that of the
run's environment: horizons 1 / (1 - x), and counts of steps.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..common import files
from ..harness.resolve import Run, resolve
from ..options.config import did_you_mean, to_text
from ..run import parse as parse_run
from ..run import spell
from ..storage.run_folder import RunFolder

LISTS = ("cartesian", "ovat", "zip")
OWN = ("seed", "log_dir", "resume", "quiet", "help", "list", "set")  # arguments of a run that are no parameters
RATE = "control_rate_hz"  # option of environments
LONGEST_LABEL = 80


@dataclass(frozen=True)
class Definition:
    """The options that a sweep varies, and those that it keeps."""

    seeds: tuple[int, ...] = (0,)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    cartesian: Mapping[str, list] = field(default_factory=dict)
    ovat: Mapping[str, list] = field(default_factory=dict)
    zip: Mapping[str, list] = field(default_factory=dict)
    scale: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        for mode in ("fixed", *LISTS, "scale"):
            if not isinstance(getattr(self, mode), Mapping):
                raise ValueError(f"{mode} must be an object of parameters, got {getattr(self, mode)!r}")
        for mode, key, values in self.lists():
            if not isinstance(values, list) or not values:
                raise ValueError(f"{mode} must have a list of at least one value for {key!r}, got {values!r}")
            if len({to_text(value) for value in values}) < len(values) and mode != "zip":
                raise ValueError(f"{mode} has a value of {key!r} twice: {to_text(values)}")
        self._require_each_parameter_once()
        if len({len(values) for values in self.zip.values()}) > 1:
            lengths = ", ".join(f"{key} has {len(values)}" for key, values in self.zip.items())
            raise ValueError(f"the lists of zip must be equally long; {lengths}")
        self._check_scale()

    def lists(self) -> list[tuple[str, str, list]]:
        """Return mode, key and values of every list."""
        return [(mode, key, values) for mode in LISTS for key, values in getattr(self, mode).items()]

    def _require_each_parameter_once(self) -> None:
        """Raise ValueError for a parameter in two modes, or one that the sweep itself sets."""
        mode_of: dict[str, str] = {}
        for mode in ("fixed", *LISTS):
            for name in (name for key in getattr(self, mode) for name in key.split(",")):
                if name in OWN:
                    raise ValueError(f"{name!r} is no parameter of a sweep; seeds have a place of their own: --seeds")
                if name in mode_of:
                    raise ValueError(f"{name!r} is both in {mode_of[name]} and in {mode}; leave one of them out")
                mode_of[name] = mode

    def _check_scale(self) -> None:
        if not self.scale:
            return
        rate = self.scale.get("reference_hz")
        is_rate = isinstance(rate, (int, float)) and rate > 0
        if not is_rate or not self.scale.keys() <= {"reference_hz", "horizons", "counts"}:
            raise ValueError(f"scale must have reference_hz above 0, horizons and counts, got {dict(self.scale)}")
        given = [*self.fixed, *(key for _, key, _ in self.lists())]
        names = [*self.scale.get("horizons", []), *self.scale.get("counts", [])]
        missing = next((name for name in names if name not in given), None)
        if missing:
            raise ValueError(f"scale names {missing!r}, to which the sweep gives no value; add it to fixed")


def read(path: str | Path) -> Definition:
    """Read the JSON file of a sweep. A text "description" is for the reader."""
    values = files.read_json(path)
    known = ("description", *Definition.__dataclass_fields__)
    unknown = next((name for name in values if name not in known), None)
    if unknown:
        near = did_you_mean(unknown, known)
        raise ValueError(f"{path} has unknown {unknown!r}{near}; a sweep has {', '.join(known)}")
    values.pop("description", None)
    if "seeds" in values:
        values["seeds"] = parse_seeds(values["seeds"])
    return Definition(**values)


def write(definition: Definition, out: Path) -> None:
    """Write the definition of a sweep into its folder, as sweep.json, which `read` takes."""
    files.replace(out / "sweep.json", [json.dumps(asdict(definition), indent=2), "\n"]).close()


def parse_seeds(given: Any) -> tuple[int, ...]:
    """Return the seeds in a text such as "0-2,7", a number or a list of numbers."""
    from hpc.submit import seeds

    return tuple(seeds(to_text(given)))


def parse_list(text: str) -> tuple[str, list[str]]:
    """Split KEY=V1,V2."""
    key, equals, values = text.partition("=")
    found = [value for value in values.split(",") if value]
    if not key or not equals or not found:
        raise ValueError(f"--vary takes KEY=V1,V2,..., got {text!r}")
    return key, found


def settings(definition: Definition) -> list[dict[str, Any]]:
    """Return what every setting varies, in order: cartesian, then one variable at a time, then zipped."""
    cartesian = [dict(zip(definition.cartesian, row)) for row in itertools.product(*definition.cartesian.values())]
    centre = {key: values[0] for key, values in definition.ovat.items()}
    others = [{key: value} for key, values in definition.ovat.items() for value in values[1:]]
    zipped = [dict(zip(definition.zip, row)) for row in zip(*definition.zip.values())] or [{}]
    one_at_a_time = [centre, *(centre | change for change in others)]
    return [{**a, **b, **c} for a in cartesian for b in one_at_a_time for c in zipped]


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    label: str  # what its setting varies
    values: dict[str, Any]  # of all parameters, by key
    seed: int
    folder: RunFolder
    arguments: list[str]  # of tdpo_baselines.run
    resolved: Run

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.path.name


def make_runs(definition: Definition, out: Path) -> list[SweepRun]:
    """Return all runs, resolved; raise ValueError for the first that is not valid."""
    runs = []
    for varied in settings(definition):
        values = rescale({**definition.fixed, **varied}, definition.scale)
        label = describe({key: values[key] for key in varied}, definition)
        for seed in definition.seeds:
            runs.append(make_run(label, values, seed, out))
    known: dict[str, SweepRun] = {}
    for run in runs:
        other = known.setdefault(run.name.rpartition("~")[2], run)  # hash and seed
        if other is not run:
            raise ValueError(f"the settings {other.label!r} and {run.label!r} are the same run; leave one of them out")
    return runs


def make_run(label: str, values: dict[str, Any], seed: int, out: Path) -> SweepRun:
    """Return the run of a setting with a seed. Its folder's name has a hash of the values, whatever their order."""
    flat = {name: value for key, value in values.items() for name in key.split(",")}
    words = [f"--{name}={to_text(value)}" for name, value in flat.items()]
    mark = hashlib.sha256(json.dumps(sorted(words)).encode()).hexdigest()[:8]
    readable = re.sub(r"[^\w.,=+-]", "_", label)[:LONGEST_LABEL]
    folder = RunFolder(out.resolve() / "runs" / f"{readable}~{mark}-{seed}")
    arguments = [*map(spell, words), f"--seed={seed}", f"--log_dir={folder.path}"]
    try:
        resolved = resolve(parse_run(arguments))
    except ValueError as error:
        raise ValueError(f"setting {label!r}: {error}") from error
    return SweepRun(label, flat, seed, folder, arguments, resolved)


def describe(varied: dict[str, Any], definition: Definition) -> str:
    """Return the name of a setting: the values that differ from the centre."""
    centre = {key: values[0] for key, values in definition.ovat.items()}
    centre = rescale({**definition.fixed, **varied, **centre}, definition.scale) if centre else {}
    shown = {key: value for key, value in varied.items() if key not in definition.ovat or centre[key] != value}
    return ",".join(f"{key.replace(',', '+')}={to_text(value)}" for key, value in shown.items()) or "centre"


def rescale(values: dict[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with those that `scale` names adapted to the control rate of the environment."""
    if not scale:
        return values
    where = [f"--{key}={to_text(value)}" for key, value in values.items() if key in ("env", f"env.{RATE}", "alg")]
    options = resolve(parse_run(where)).config.env_options
    if RATE not in options:
        raise ValueError(f"scale needs an environment with the option {RATE}; {values.get('env')} has none")
    factor = options[RATE] / scale["reference_hz"]
    changes: dict[str, Any] = {}
    for key in scale.get("horizons", []):
        changes[key] = round(1 - (1 - float(values[key])) / factor, 12)
    for key in scale.get("counts", []):
        changes[key] = max(1, round(float(values[key]) * factor))
    return values | changes
