"""The rank that receives its environment through standard input."""

import subprocess
import sys

import gymnasium
from programs import ROOT

from tdpo_baselines.options import callables

ARGUMENTS = ["--num_iterations", "2", "--num_trajectories", "2", "--quiet", "--log_dir"]


def make_pendulum():
    return gymnasium.make("Pendulum-v1", max_episode_steps=10)


def start(standard_input: bytes, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tdpo_baselines.worker", *arguments]
    return subprocess.run(command, input=standard_input, capture_output=True, cwd=ROOT, timeout=300)


def test_environment_from_standard_input_is_trained_in(tmp_path, monkeypatch):
    monkeypatch.setattr(make_pendulum, "__module__", "__main__")  # sent by value
    arguments = ["--env", callables.name_of(make_pendulum), *ARGUMENTS, str(tmp_path)]
    process = start(callables.pickle(make_pendulum), *arguments)
    assert process.returncode == 0, process.stderr
    assert len((tmp_path / "progress.csv").read_text().splitlines()) == 3


def test_what_is_no_callable_is_one_line_with_exit_code_2(tmp_path):
    process = start((7).to_bytes(8, "big") + b"nothing", "--env", "callable/a", *ARGUMENTS, str(tmp_path))
    assert process.returncode == 2 and process.stderr.count(b"\n") == 1
    assert process.stderr.startswith(b"error: env cannot be loaded by the ranks")
