import pytest

from tdpo_baselines.common.parallel import launcher

NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
         "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")  # fmt: skip


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_without_a_launcher_nothing_is_known():
    assert launcher.rank() is launcher.num_local_ranks() is launcher.num_expected() is None


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"])
def test_rank_is_read_from_any_launcher(monkeypatch, name):
    monkeypatch.setenv(name, "5")
    assert launcher.rank() == 5


def test_numbers_of_ranks_are_those_of_mpirun_or_of_the_slurm_step(monkeypatch):
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert launcher.num_expected() == 1
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    assert launcher.num_expected() == 3
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1")
    assert launcher.num_expected() == 2 and launcher.num_local_ranks() == 1


def test_one_rank_needs_no_mpirun():
    assert launcher.mpirun_command(1) == []


@pytest.mark.parametrize("num_ranks", [0, -1, 1.5, True, "2"])
def test_ranks_must_be_a_number_of_at_least_one(num_ranks):
    with pytest.raises(ValueError, match="ranks must be a whole number of at least 1"):
        launcher.mpirun_command(num_ranks)


def test_mpirun_is_the_named_one_or_that_beside_python_or_that_of_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("MPIRUN", "/my/mpirun")
    assert launcher.mpirun_command(3) == ["/my/mpirun", "-np", "3"]
    monkeypatch.delenv("MPIRUN")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"tdpo_baselines\[mpi\]"):
        launcher.mpirun_command(2)
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "mpirun").touch(mode=0o755)
        assert launcher.mpirun_command(2)[0] == str(folder / "mpirun")
