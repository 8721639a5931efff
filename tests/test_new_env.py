import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT

from tdpo_baselines import new_env


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Run a module of Python in a folder, with the packages of the checkout."""
    variables = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=600)


def test_files_are_written_and_the_next_commands_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert new_env.main(["my_arm"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "wrote my_arm.py and test_my_arm.py" and len(printed) == 5
    assert "--env my_arm:make" in printed[3] and "test_my_arm.py" in printed[2]
    assert not any(new_env.PLACEHOLDER in path.read_text() for path in tmp_path.iterdir())


def test_written_files_pass_the_linter_and_are_formatted(tmp_path):
    new_env.write("my_arm", tmp_path)
    settings = ["--no-cache", "--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
    for command in (["check"], ["format", "--check"]):
        done = run(["ruff", *command, *settings], tmp_path)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-arm", "NAME must be a Python name, such as my_robot, got 'my-arm'"),
        ("class", "NAME must be a Python name"),
        ("numpy", "there is a module numpy already"),
        ("taken", "test_taken.py exists already"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path, monkeypatch, capsys, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_taken.py").touch()
    assert new_env.main([name]) == 2
    assert message in capsys.readouterr().err and len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_written_environment_passes_its_test(tmp_path):
    new_env.write("my_arm", tmp_path)
    done = run(["pytest", "-q", "test_my_arm.py"], tmp_path)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout
