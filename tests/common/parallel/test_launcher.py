import pytest

from tdpo_baselines.common.parallel import launcher

NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
         "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "MPI_LOCALNRANKS")  # fmt: skip


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


def test_mpiexec_of_mpich_inside_of_a_slurm_step_counts_and_not_the_step(monkeypatch):
    values = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
    for name, value in (values | {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}).items():
        monkeypatch.setenv(name, value)
    assert (launcher.rank(), launcher.num_expected(), launcher.num_local_ranks()) == (1, 4, 2)


def test_variable_that_is_no_number_is_not_of_a_launcher(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "abc")
    assert launcher.rank() is None
    monkeypatch.setenv("PMI_RANK", "2")
    assert launcher.rank() == 2


@pytest.mark.parametrize(("rank", "num", "words"), [
    ("0", "1", ""),
    ("1", "100000", ""),
    ("0", "100000", f"100000 ranks are starting; 100000 of them share {launcher.num_cores()} core(s) of this host"),
])  # fmt: skip
def test_rank_0_of_several_says_how_many_would_be_faster(monkeypatch, capsys, rank, num, words):
    for name, value in (("RANK", rank), ("SIZE", num), ("LOCAL_SIZE", num)):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    monkeypatch.setattr("sys.argv", ["run"])
    launcher.announce()
    printed = capsys.readouterr().out
    assert printed.startswith(words) and bool(printed) == bool(words)
    monkeypatch.setattr("sys.argv", ["run", "--quiet"])
    launcher.announce()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("arguments", "words"), [
    ("--env leg", " tdpo on leg"),
    ("--algo=td3 --env=leg --seed 1", " td3 on leg"),
    ("--alg trpo --env leg --resume", " trpo on leg"),
    ("--config x.json --env leg", ""),  # may hold the algorithm
    ("--resume --log_dir runs/a", ""),
    ("--env", ""),
])  # fmt: skip
def test_first_words_name_the_algorithm_and_environment_of_the_command_line(monkeypatch, capsys, arguments, words):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setattr("sys.argv", ["run", *arguments.split()])
    launcher.announce()
    assert capsys.readouterr().out == f"2 ranks are starting{words}\n"
