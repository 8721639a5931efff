"""Every command reads every hostile folder: it ends soon, with a line that says why, and writes nothing outside."""

import shutil

import pytest
from hostile_folders import HOSTILE, bounds, make_example

import tdpo_baselines
from tdpo_baselines import evaluate, export, plot, report, run, watch

TRACK = ("--track", "tensorboard")
SECONDS, NUM_BYTES = 60, 4 * 2**30


def load(words: list[str]) -> int:
    """Load a run as a script does."""
    try:
        return tdpo_baselines.load(words[0]).network and 0
    except (ValueError, OSError):
        return 2


COMMANDS = {
    "evaluate": lambda run_, out: evaluate.main([run_, "--episodes", "1", "--csv", f"{out}/a.csv"]),
    "evaluate best": lambda run_, out: evaluate.main([run_, "--best", "--episodes", "1"]),
    "load": lambda run_, out: load([run_]),
    "plot": lambda run_, out: plot.main([run_, "--out", f"{out}/a.png", "--csv", f"{out}/a.csv"]),
    "report": lambda run_, out: report.main([run_, "--out", f"{out}/a.html", "--episodes", "1"]),
    "watch": lambda run_, out: watch.main([run_, "--once"]),
    "export": lambda run_, out: export.main([run_, "--format", "npz", "--out", f"{out}/policy"]),
    "resume": lambda run_, out: run.main(["--log_dir", run_, "--resume", "--num_iterations", "4"]),
    "tensorboard": lambda run_, out: run.main(["--log_dir", run_, "--resume", "--num_iterations=4", *TRACK]),
    "config": lambda run_, out: run.main(
        ["--config", f"{run_}/config.json", "--log_dir", f"{out}/run", "--num_iterations", "1"]
    ),
    "init": lambda run_, out: run.main(
        ["--env", "pendulum-nlr", "--variant=basic", "--hidden_sizes=4", "--num_trajectories=2", "--num_branches=1",
         "--init", run_, "--log_dir", f"{out}/run", "--num_iterations", "1"]
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a sound run."""
    path = tmp_path_factory.mktemp("sound") / "run"
    make_example(path)
    return path


@pytest.fixture
def check(tmp_path, sound, capfd):
    """Return check(command, name), which returns exit code and messages."""

    def run_command(command: str, name: str) -> tuple[int, str]:
        outside, path, out = tmp_path / "outside", tmp_path / "run", tmp_path / "out"
        (outside / "iteration-000000009").mkdir(parents=True)
        (outside / "file").write_text("precious")
        out.mkdir()
        shutil.copytree(sound, path)
        if name:
            HOSTILE[name](path, outside)
        capfd.readouterr()
        with bounds(seconds=SECONDS, num_bytes=NUM_BYTES):
            code = COMMANDS[command](str(path), str(out))
        assert (outside / "file").read_text() == "precious"
        assert sorted(entry.name for entry in outside.iterdir()) == ["file", "iteration-000000009"]
        return code, capfd.readouterr().err

    return run_command


TRAINING = ("resume", "tensorboard")  # a run that goes on may fail: 1
QUICK = ("evaluate", "plot", "resume")
MARKED = [command if command in QUICK else pytest.param(command, marks=pytest.mark.slow) for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_sound_folder_is_accepted(check, command):
    code, errors = check(command, "")
    assert code == 0 or "--track tensorboard needs" in errors


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("command", MARKED)
def test_hostile_folder_is_harmless(check, command, name):
    code, errors = check(command, name)
    assert code in (0, 2, 1 * (command in TRAINING)) and "Traceback" not in errors and "\x1b" not in errors
    if code and command != "load":
        assert [line.startswith(("error: ", "warning: ")) for line in errors.splitlines()].count(True) >= 1
