"""Starting ranks, with every MPI that this machine offers."""

import re
import signal
import subprocess
import sys

import mpis
import pytest
from programs import ROOT, deterministic_part, wait_for_rows
from small_run import SMALL

from tdpo_baselines import run
from tdpo_baselines.common.parallel import mpirun

LENGTH = ("--num_iterations", "30")


def test_one_rank_needs_no_mpirun():
    assert mpirun.command(1) == []


@pytest.mark.parametrize("num_ranks", [0, -1, 1.5, True, "2"])
def test_ranks_must_be_a_number_of_at_least_one(num_ranks):
    with pytest.raises(ValueError, match="ranks must be a whole number of at least 1"):
        mpirun.command(num_ranks)


def test_mpirun_is_the_named_one_or_that_beside_python_or_that_of_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("MPIRUN", "/my/mpirun")
    assert mpirun.command(3) == ["/my/mpirun", "-np", "3"]
    monkeypatch.delenv("MPIRUN")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"tdpo_baselines\[mpi\]"):
        mpirun.command(2)
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "mpirun").touch(mode=0o755)
        assert mpirun.command(2)[0] == str(folder / "mpirun")


@pytest.fixture(scope="module")
def serial_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "run"
    assert run.main([*SMALL, *LENGTH, "--quiet", "--log_dir", str(folder)]) == 0
    return folder


def test_more_ranks_than_trajectories_are_refused_before_any_rank_is_started(capsys, monkeypatch):
    monkeypatch.setattr(mpirun, "start", None)
    assert run.main([*SMALL, "--ranks", "1000"]) == 2
    assert "num_trajectories must be at least the number of ranks (1000)" in capsys.readouterr().err


def test_clean_stop_is_told_by_a_file_only_to_the_mpirun_that_asked(monkeypatch, tmp_path):
    told = tmp_path / "code"
    monkeypatch.setenv(mpirun.EXIT_CODE_FILE, str(told))
    assert mpirun.tell(85) == 85 and not told.exists()  # no rank
    for rank in ("1", "0"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        assert mpirun.tell(85) == 0 and told.exists() is (rank == "0")
    assert told.read_text() == "85"
    monkeypatch.delenv(mpirun.EXIT_CODE_FILE)
    assert mpirun.tell(85) == 85


def start(mpi, *arguments):
    command = [sys.executable, "-m", "tdpo_baselines.run", *SMALL, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=mpi.environment
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", mpis.NAMES)
def test_three_ranks_of_any_mpi_give_the_run_of_one(name, tmp_path, serial_run):
    process = start(mpis.find(name), "--ranks", "3", *LENGTH, "--log_dir", str(tmp_path / "run"))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and "3 ranks are starting" in output and "3 rank(s)" in output, output
    assert deterministic_part(tmp_path / "run") == deterministic_part(serial_run)


@pytest.mark.slow
@pytest.mark.parametrize("name", mpis.NAMES)
def test_ranks_of_any_mpi_save_when_they_are_asked_to_stop(name, tmp_path, serial_run):
    process = start(mpis.find(name), "--ranks=2", "--log_dir", str(tmp_path / "run"))
    wait_for_rows(process, tmp_path / "run")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 85 and "(SIGUSR1); continue with --resume" in output, output
    assert "non-zero" not in output and "-----" not in output, output  # a comment of mpirun
    assert list((tmp_path / "run/checkpoints").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", mpis.NAMES)
def test_invalid_input_is_one_line_with_its_exit_code(name, tmp_path):
    process = start(mpis.find(name), "--ranks", "2", "--gamma", "7", "--log_dir", str(tmp_path / "run"))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 2 and re.fullmatch("error: gamma must be .*\n", output), output


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in mpis.NAMES if name != mpis.NAMES[0]])
def test_mpirun_of_another_mpi_than_mpi4py_is_refused(name, tmp_path):
    mpi = mpis.find(name)
    if name.startswith("Open MPI"):
        pytest.skip("Open MPI's mpirun starts programs of its other versions")
    program = [sys.executable, "-m", "tdpo_baselines.run", *SMALL, "--log_dir", str(tmp_path / "run")]
    command = [mpi.mpirun, "-np", "2", "env", *(f"--unset={name}" for name in mpi.variables), *program]
    process = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=mpi.environment_of_launcher, timeout=300
    )
    assert process.returncode == 2 and not (tmp_path / "run").exists()
    lines = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "the launcher started 2 ranks but MPI sees 1; use the mpirun of mpi4py's" in lines[0]


@pytest.mark.parametrize(
    ("text", "message"), [("0", "ranks must be"), ("x", "ranks must be"), ("3", "leave out --ranks")]
)
def test_ranks_that_cannot_be_started_are_refused(monkeypatch, capsys, text, message):
    if text == "3":
        for name in ("RANK", "SIZE"):
            monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", {"RANK": "0", "SIZE": "2"}[name])
    assert run.main([*SMALL, "--ranks", text]) == 2
    assert message in capsys.readouterr().err
