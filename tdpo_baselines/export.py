"""Export: `python -m tdpo_baselines.export DIR --format c --out FOLDER` writes a trained policy for use elsewhere.

Every format comes with contract.json: names, units, control rate, delays, limits and the hash of the parameters.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .common.parallel.tensorflow_setup import prepare_environment
from .evaluating.trained import Trained, load
from .exporting import arrays, c_code, contract, onnx_model, tensorflow_model
from .exporting.controller import NO_SAFETY, Controller, Safety
from .exporting.policy import make_policy, record_observations
from .options.config import parse_number
from .storage.run_folder import versions

FILES = {
    "c": ["{}.h", "{}_check.c"],
    "onnx": ["{}.onnx"],
    "savedmodel": ["{}"],
    "tflite": ["{}.tflite"],
    "npz": ["{}.npz"],
}  # what each format writes beside contract.json
WRITERS: dict[str, Callable[[Path, Controller], None]] = {
    "c": c_code.write,
    "onnx": onnx_model.write,
    "savedmodel": tensorflow_model.write_saved_model,
    "tflite": tensorflow_model.write_tflite,
    "npz": arrays.write,
}


def export(
    trained: Trained,
    out: str | Path,
    *,
    format: str,
    name: str = "policy",
    precision: str | None = None,
    rate_hz: float | None = None,
    safety: Safety = NO_SAFETY,
) -> list[Path]:
    """Write a policy and its contract into the folder `out`; return the paths written."""
    out = Path(out).expanduser()
    precision = check_request(format, name, precision, safety)
    names = [*(pattern.format(name) for pattern in FILES[format]), "contract.json"]
    require_free(out, names)
    roller: Any = trained.roller
    safety, rate = safety.fit(roller.layer_sizes[-1]), contract.choose_rate(roller.environment, rate_hz)
    controller = make_controller(trained, roller, safety, rate, name=name, precision=precision)
    told = {"format": format, "files": names[:-1], "name": name, "precision": precision, **describe_run(trained)}
    told |= contract.describe(controller, roller.environment, rate) | {"safety": asdict(safety)}
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".export-") as partial:
        WRITERS[format](Path(partial), controller)
        (Path(partial) / "contract.json").write_text(json.dumps(told, indent=2) + "\n")
        move_into(Path(partial), out, names)
    return [out / file for file in names]


def make_controller(
    trained: Trained, roller: Any, safety: Safety, rate: float | None, *, name: str, precision: str
) -> Controller:
    """Return everything to be written; record an episode for it."""
    config = trained.config
    run = f"{config.algorithm} on {config.environment}, seed {config.seed}, iteration {trained.iteration}"
    return Controller(
        policy=safety.limit(make_policy(trained.theta, roller)),
        steps=safety.at_rate(rate),
        observations=record_observations(trained.theta, roller),
        name=name,
        precision=precision,
        title=f"policy of {run}",
        config=config.to_json(),
        iteration=trained.iteration,
    )


def check_request(format: str, name: str, precision: str | None, safety: Safety) -> str:
    """Return the precision, or raise ValueError if the format does not exist or cannot do what is asked for."""
    if format not in FILES:
        raise ValueError(f"format must be one of {', '.join(FILES)}, got {format!r}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name must be letters, digits and underscores, a letter first, got {name!r}")
    if precision not in (None, "double", "float"):
        raise ValueError(f"precision must be double or float, got {precision!r}")
    if format == "tflite" and precision == "double":
        raise ValueError("precision of format tflite must be float; leave --precision out")
    if format != "c" and safety.needs_memory:
        raise ValueError(f"rate_limit and low_pass need memory between steps, which {format} has not; pass --format c")
    return precision or ("float" if format == "tflite" else "double")


def require_free(out: Path, names: list[str]) -> None:
    """Raise ValueError if the folder has files that this export would not replace."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, and {out} is a file; pass another --out")
    others = sorted(path.name for path in out.glob("*") if path.name not in names)
    if others:
        raise ValueError(f"{out} has other files already ({', '.join(others[:3])}); pass a new folder as --out")


def describe_run(trained: Trained) -> dict[str, Any]:
    """Return where the policy comes from."""
    config = trained.config
    return {
        "algorithm": config.algorithm,
        "environment": config.environment,
        "env_options": config.env_options,
        "seed": config.seed,
        "iteration": trained.iteration,
        "exported_with": versions(),
    }


def move_into(folder: Path, out: Path, names: list[str]) -> None:
    """Move complete files and folders into `out`, replacing those of an earlier export."""
    out.mkdir(exist_ok=True)
    for file in names:
        if (out / file).is_dir():
            shutil.rmtree(out / file)
        (folder / file).replace(out / file)


def parse_numbers(text: str) -> tuple[float, ...]:
    """Parse numbers separated by commas."""
    try:
        return tuple(parse_number("each number", part) for part in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.export", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("path", metavar="DIR", help="folder of a run or of one checkpoint")
    add("--format", required=True, choices=FILES, help="c: a C99 header and a self-check; npz: NumPy arrays")
    add("--out", required=True, metavar="FOLDER", help="folder to write, new or with an earlier export")
    add("--best", action="store_true", help="export the best parameters of the training, not the last")
    add("--name", default="policy", help="prefix of files and C functions (default: policy)")
    add("--precision", choices=("double", "float"), help="of the numbers (default: double; tflite: float)")
    add("--env", metavar="NAME", help="the run's environment, to allow importing its module (module:Id)")
    add("--rate_hz", type=float, metavar="HZ", help="control rate, if the environment does not state it")
    safety = parser.add_argument_group("safety options, in the action's units; one number, or one per action: 5,8")
    add = safety.add_argument
    add("--output_limit", type=parse_numbers, metavar="SIZE", help="largest size of an action")
    add("--rate_limit", type=parse_numbers, metavar="RATE", help="largest change of an action per second (c only)")
    add("--low_pass", type=float, metavar="HZ", help="cut-off of a first-order filter (c only)")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    options = {"name": parsed.name, "precision": parsed.precision, "rate_hz": parsed.rate_hz}
    try:
        safety = Safety(parsed.output_limit, parsed.rate_limit, parsed.low_pass)
        trained = load(parsed.path, use_best=parsed.best, env=parsed.env)
        for path in export(trained, parsed.out, format=parsed.format, safety=safety, **options):
            print(f"-> {path}")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
