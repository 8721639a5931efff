"""The `tdpo` command."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from programs import ROOT

from tdpo_baselines.__main__ import COMMANDS, main

PACKAGED = ("setup.py", "pyproject.toml", "README.md", "tdpo_baselines", "envs", "hpc")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_command_explains_itself(arguments, capsys):
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS) and "tdpo run --list" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_called(name):
    assert callable(import_module(COMMANDS[name][0]).main)


def test_arguments_are_passed_on_and_the_exit_code_is_returned(capsys):
    assert main(["run", "--env", "pendulum-nrl"]) == 2
    assert "did you mean 'pendulum-nlr'" in capsys.readouterr().err


def test_unknown_command_is_one_line_with_exit_code_2(capsys):
    assert main(["evalute", "a"]) == 2
    assert capsys.readouterr().err == (
        f"error: unknown command 'evalute', did you mean 'evaluate'?; choose one of {', '.join(COMMANDS)}\n"
    )


def test_dispatching_does_not_load_numpy_before_the_command_begins():
    code = "import sys, tdpo_baselines.__main__; assert not {'numpy', 'numba', 'gymnasium'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return a folder with the packages of a wheel, which was built from a copy of the checkout."""
    copy, target = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("installed")
    for name in PACKAGED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(copy / "dist"), str(copy)]
    subprocess.run(wheel, check=True, cwd=copy, capture_output=True)
    (built,) = (copy / "dist").glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(built)], check=True, cwd=copy)
    return target


def tdpo(installed: Path, folder: Path, *arguments: str) -> str:
    """Run the installed command outside of the checkout, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    environment.pop("TDPO_PYTHON", None)
    command = [sys.executable, str(installed / "bin" / "tdpo"), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_wheel_trains_evaluates_plots_and_submits_outside_of_the_checkout(installed, tmp_path):
    assert f"  {'submit':10} " in tdpo(installed, tmp_path)
    tdpo(installed, tmp_path, "run", "--env", "pendulum-nlr", "--num_iterations", "2", "--log_dir", "a")
    assert "on pendulum-nlr, seed 0, iteration 2" in tdpo(installed, tmp_path, "evaluate", "a", "--plot", "a.png")
    tdpo(installed, tmp_path, "plot", "a", "--out", "curves.png")
    tdpo(installed, tmp_path, "report", "a", "--out", "a.html")
    assert "<canvas" in (tmp_path / "a.html").read_text() and "finished" in tdpo(installed, tmp_path, "watch", "a")
    assert (tmp_path / "a.png").stat().st_size and (tmp_path / "curves.png").stat().st_size
    assert "leg-stochastic" in tdpo(installed, tmp_path, "run", "--list")
    shown = tdpo(installed, tmp_path, "submit", "--scheduler", "slurm", "--env", "leg", "--dry-run")
    assert f'bash "{installed}/hpc/job.sh"' in shown and f"export TDPO_PYTHON={sys.executable}" in shown
    assert all((installed / "hpc" / name).is_file() for name in ("job.sh", "env.sh", "slurm.sh", "pbs.sh"))


@pytest.mark.slow
def test_own_folder_named_envs_is_named_with_the_remedy(installed, tmp_path):
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "__init__.py").touch()
    command = [sys.executable, "-m", "tdpo_baselines", "run", "--env", "leg"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and f"from {tmp_path}/envs" in done.stderr and "rename" in done.stderr
    tdpo(installed, tmp_path, "run", "--env", "pendulum-nlr", "--num_iterations", "1", "--log_dir", "a")  # the remedy
