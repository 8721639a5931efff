"""The `tdpo` command: `tdpo run --env leg` is `python -m tdpo_baselines.run --env leg`, and so on for every command."""

import sys
from importlib import import_module

from .common.parallel import launcher

COMMANDS = {  # name -> module with main(arguments), what it does
    "run": ("tdpo_baselines.run", "train a policy, alone or under mpirun"),
    "evaluate": ("tdpo_baselines.evaluate", "roll out trained policies and compare them, or draw an episode"),
    "plot": ("tdpo_baselines.plot", "draw the learning curves of runs"),
    "watch": ("tdpo_baselines.watch", "show the progress of runs in the terminal"),
    "report": ("tdpo_baselines.report", "write a page with configuration, curves, evaluation and a replay"),
    "export": ("tdpo_baselines.export", "write a trained policy as C, ONNX, TensorFlow or NumPy"),
    "sweep": ("tdpo_baselines.sweep", "train many settings with many seeds"),
    "tune": ("tdpo_baselines.tune", "search the options with the best return"),
    "new-env": ("tdpo_baselines.new_env", "write an environment of your own to begin with, and its test"),
    "submit": ("hpc.submit", "submit runs to SLURM or PBS"),
}
FIRST_STEPS = """\
First steps:
  tdpo run --list                                                        algorithms and environments
  tdpo run --env pendulum-nlr --num_timesteps 1e7 --log_dir runs/first   train for less than a minute
  tdpo evaluate runs/first --plot swing.png                              look at the result

From Python: tdpo_baselines.train(...) and tdpo_baselines.load(...)."""


def describe() -> str:
    """Return the commands and the first steps."""
    lines = ["usage: tdpo COMMAND [ARGUMENT ...], or python -m tdpo_baselines COMMAND [ARGUMENT ...]", "", "Commands:"]
    lines += [f"  {name:10} {meaning}" for name, (_, meaning) in COMMANDS.items()]
    return "\n".join([*lines, "", "tdpo COMMAND --help lists the arguments of a command.", "", FIRST_STEPS])


def main(arguments: list[str] | None = None) -> int:
    """Call the command that the first argument names; return its exit code."""
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if command in ("--help", "-h", "help"):
        print(describe())
        return 0
    if command not in COMMANDS:
        from .options.config import did_you_mean

        near = did_you_mean(command, COMMANDS)
        print(f"error: unknown command {command!r}{near}; choose one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    if command == "run":
        launcher.announce()  # before its imports
    return import_module(COMMANDS[command][0]).main(rest)


if __name__ == "__main__":
    sys.exit(main())
