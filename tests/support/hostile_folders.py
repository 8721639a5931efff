"""Run folders that a stranger might have made, and bounds for the commands that read them."""

import contextlib
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.storage import checkpoint

EXAMPLE = Path(__file__).parent.parent / "storage" / "data" / "tdpo-027a713"
CHECKPOINT = Path("checkpoints", "iteration-000000003")
FILES = {
    "config": Path("config.json"),
    "progress": Path("progress.csv"),
    "index": CHECKPOINT / "state.index",
    "data": CHECKPOINT / "state.data-00000-of-00001",
    "lock": Path(".lock"),
}
DEEP = "[" * 100_000 + "]" * 100_000


def make_example(run: Path) -> None:
    """Make a sound run with checkpoints of the present format."""
    shutil.copytree(EXAMPLE, run)
    change_state(run, lambda state: None)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(20 * 2**30)


def folder(path: Path) -> None:
    path.mkdir()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def instead_of(name: str, make: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    """Return a change that puts something in the place of a file."""

    def change(run: Path, outside: Path) -> None:
        (run / FILES[name]).unlink(missing_ok=True)
        make(run / FILES[name])

    return change


def link(name: str, *, is_folder: bool = False) -> Callable[[Path, Path], None]:
    """Return a change that puts a link to what lies outside in the place of a file or folder."""

    def change(run: Path, outside: Path) -> None:
        path = run / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(outside if is_folder else outside / "file")

    return change


def _exact(value):
    return value if isinstance(value, str) else np.asarray(value)


def change_state(run: Path, change: Callable[[dict], object]) -> None:
    """Write the checkpoints anew with a changed state."""
    tf = load_tensorflow()  # stores what our own writer refuses
    for kind in ("checkpoints", "best"):
        for path in (run / kind).glob("iteration-*"):
            state = checkpoint.load(path)
            shutil.rmtree(path)
            change(state)
            variables = tf.nest.map_structure(lambda value: tf.Variable(_exact(value), trainable=False), state)
            tf.train.Checkpoint(**variables).write(str(path / "state"))


def with_config(change: Callable[[dict], object]) -> Callable[[Path, Path], None]:
    """Return a change of the config, in config.json and in the checkpoints."""

    def apply(run: Path, outside: Path) -> None:
        config = json.loads((run / "config.json").read_text())
        change(config)
        text = json.dumps(config)
        (run / "config.json").write_text(text)
        change_state(run, lambda state: state.update(config=text))

    return apply


def with_field(name: str, value) -> Callable[[Path, Path], None]:
    """Return a change of one field, such as "options.gamma"."""

    def change(config: dict) -> None:
        *path, last = name.split(".")
        for part in path:
            config = config[part]
        config[last] = value

    return with_config(change)


def with_array(component: str, name: str, value) -> Callable[[Path, Path], None]:
    """Return a change of one array of the checkpoints that have its component; None removes it."""

    def change(state: dict) -> None:
        arrays = state.get(component, {})
        arrays.pop(name, None)
        if value is not None:
            arrays[name] = value

    return lambda run, outside: change_state(run, change)


def with_many_layers(run: Path, outside: Path) -> None:
    """Let config and parameters agree on 3000 layers."""
    with_field("options.hidden_sizes", [1] * 3000)(run, outside)
    with_array("policy", "theta", np.zeros(2 + 1 + 2 * 2999 + 2))(run, outside)


def with_environment(name: str, **options) -> Callable[[Path, Path], None]:
    return with_config(lambda config: config.update(environment=name, env_options=options))


def with_progress(change: Callable[[str], str]) -> Callable[[Path, Path], None]:
    def apply(run: Path, outside: Path) -> None:
        (run / "progress.csv").write_text(change((run / "progress.csv").read_text()))

    return apply


def with_model_in_a_pipe(run: Path, outside: Path) -> None:
    os.mkfifo(run / "model.xml")
    with_environment("Swimmer-v5", xml_file=str(run / "model.xml"))(run, outside)


def with_noise_in_a_pipe(run: Path, outside: Path) -> None:
    os.mkfifo(run / "noise.csv")
    with_environment("leg-stochastic", sensor_noise=True, noise_template=str(run / "noise.csv"))(run, outside)


THINGS = {f.__name__: f for f in (pipe, zeros, sparse, folder, empty, noise)}
HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    **{f"{name} {thing}": instead_of(name, make) for name in FILES for thing, make in THINGS.items()},
    **{f"{name} link": link(str(path)) for name, path in FILES.items()},
    **{
        f"link {name}": link(name)
        for name in ("config.partial", "progress.partial", ".config.json.partial", ".progress.csv.partial")
    },
    **{f"{name} leads outside": link(name, is_folder=True) for name in ("checkpoints", "best", "tensorboard")},
    "config deep": lambda run, outside: (run / "config.json").write_text(DEEP),
    "config rather deep": with_field("made_with.x", json.loads("[" * 500 + "]" * 500)),
    "config in checkpoint deep": lambda run, outside: change_state(run, lambda state: state.update(config=DEEP)),
    "config in checkpoint missing": lambda run, outside: change_state(run, lambda state: state.pop("config")),
    "config with long number": lambda run, outside: (run / "config.json").write_text('{"seed": 1' + "0" * 5000 + "}"),
    "seed of 400 digits": with_field("seed", 10**400),
    "seed negative": with_field("seed", -1),
    "seed true": with_field("seed", True),
    "algorithm unknown": with_field("algorithm", "../../x"),
    "environment unknown": with_field("environment", "x\x1b[2J"),
    "environment with module": with_environment("os:x"),
    "environment in the folder": with_environment(".:x"),
    "environment with mathematics": with_field("environment", "$" + "{" * 1500 + "}" * 1500 + "$"),
    "environment with broken mathematics": with_field("environment", r"$\frac{$"),
    "options a list": with_field("options", [1]),
    "options with text": with_field("options.gamma", "0.9x"),
    "options with object": with_field("options.hidden_sizes", [{"a": 1}]),
    "options unknown": with_field("options.x", 1),
    "layers 3000": with_many_layers,
    "layers large": with_field("options.hidden_sizes", [4096] * 6),
    "delay 10000": with_field("env_options.delay_steps", 10_000),
    "delay text": with_field("env_options.delay_steps", "x"),
    "delay a list": with_field("env_options.delay_steps", [1, 2]),
    "env option an object": with_field("env_options.start_scale", {"a": 1}),
    "steps 1e9": with_environment("Pendulum-v1", max_episode_steps=10**9),
    "steps a text": with_environment("Pendulum-v1", max_episode_steps="many"),
    "window": with_environment("Pendulum-v1", render_mode="human"),
    "frame_skip 1e9": with_environment("Swimmer-v5", frame_skip=10**9),
    "model in a pipe": with_model_in_a_pipe,
    "noise in a pipe": with_noise_in_a_pipe,
    "stages a number": with_field("stages", [5]),
    "stages without timesteps": with_field("stages", [{"gamma": 0.9}]),
    "stages with text": with_field("stages", [{"timesteps": "many"}]),
    "limits a text": with_field("made_with.num_timesteps", "many"),
    "init a list": with_field("init", [1]),
    "init a number": with_field("init", {"from": 3}),
    **{
        f"theta {name}": with_array("policy", "theta", value)
        for name, value in {
            "missing": None, "text": "abc", "matrix": np.zeros((17, 1)), "number": np.asarray(1.0),
            "complex": np.zeros(17, complex), "whole": np.zeros(17, int), "short": np.zeros(3),
            "nan": np.full(17, np.nan),
        }.items()
    },
    "candidate short": with_array("selection", "next_theta", np.zeros(3)),
    **{
        f"iteration {name}": with_array("progress", "iteration", value)
        for name, value in {
            "missing": None, "text": "abc", "vector": np.zeros(3, int), "real": np.asarray(1.5),
            "complex": np.asarray(1j), "negative": np.asarray(-3),
        }.items()
    },
    "progress long field": with_progress(lambda text: text.replace("400", "4" * 200_000, 1)),
    "progress long number": with_progress(lambda text: text.replace("400", "4" * 5000, 1)),
    "progress text": with_progress(lambda text: text.replace("\n2,", "\n2,x", 1)),
    "progress nan": with_progress(lambda text: text.replace("\n2,", "\nnan,", 1)),
    "progress short row": with_progress(lambda text: text + "4,5\n"),
    "progress without header": with_progress(lambda text: text.partition("\n")[2]),
    "progress with other columns": with_progress(lambda text: "iteration,a\n1,2\n2,3\n3,4\n"),
    "progress with quotes": with_progress(lambda text: '"' + text),
}  # fmt: skip


class Hangs(BaseException):
    """A command has not ended in time."""


@contextlib.contextmanager
def bounds(*, seconds: int, num_bytes: int) -> Iterator[None]:
    """Raise Hangs after some seconds, and let allocations of more than so much memory fail."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def stop(*_):
        raise Hangs(f"not ended after {seconds} s")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (used + num_bytes, before[1]))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, before)
