"""Batch jobs: scripts, invalid input, and the whole life of a job under a real Slurm."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import slurm
from programs import ROOT, deterministic_part, mpi_environment, wait_for_rows

from hpc import submit
from tdpo_baselines import sweep, tune

QSUB = ROOT / ".qsub/usr/bin/qsub"  # where `make system-deps` unpacks it
RUN = ("--env", "pendulum-nlr", "--time", "00:20:00")
LENGTH = 4000  # iterations, some seconds: a warning is to meet the run on its way
SMALL = ("--set", "num_trajectories=4", "num_branches=2", "hidden_sizes=8,8", "--num_iterations", str(LENGTH))


def submitted(tmp_path, *arguments, scheduler="slurm", dry_run=False):
    folders = ("--runs", str(tmp_path / "runs"), "--jobs", str(tmp_path / "jobs"))
    own = ("--scheduler", scheduler, *RUN, *folders, *(("--dry-run",) if dry_run else ()))
    return submit.main([*own, *arguments, "--", *SMALL])


@pytest.fixture
def commands(tmp_path_factory, monkeypatch):
    """Put commands named sbatch and qsub onto the path that accept any job."""
    folder = tmp_path_factory.mktemp("commands")
    for command, *_ in submit.SCHEDULERS.values():
        (folder / command).write_text("#!/bin/sh\n")
        (folder / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_dry_run_shows_script_tasks_and_cost_and_writes_nothing(tmp_path, capsys):
    assert submitted(tmp_path, "--seeds", "0-11", "--ranks", "2", dry_run=True) == 0
    shown = capsys.readouterr().out
    assert "#SBATCH --array=0-11" in shown and "\n--alg tdpo --env pendulum-nlr --seed 0 " in shown
    assert "--seed 10" not in shown and "\n... and 2 more\n" in shown
    for line in (
        "12 run(s) of 2 rank(s), 5e7 timesteps each",
        "must make 41,667 timesteps per second",
        "a rank needs 1 MB for its settings",
    ):
        assert shown.count(line) == 2, line  # in the script, and after it
    assert list(tmp_path.iterdir()) == []


def test_runs_that_will_be_continued_are_named(tmp_path, capsys):
    begun = tmp_path / "runs/tdpo-pendulum-nlr-1"
    begun.mkdir(parents=True)
    (begun / "progress.csv").touch()
    assert submitted(tmp_path, "--seeds", "0-1", dry_run=True) == 0
    shown = capsys.readouterr().out
    assert f"1 of the folders hold a run already\n#   {begun}\n" in shown


def test_every_seed_and_every_line_of_a_sweep_is_a_task(tmp_path, capsys, commands):
    sweep = tmp_path / "sweep.txt"
    sweep.write_text("--set gamma=0.9  # short-sighted\n\n--set gamma=0.99 num_branches=2\n")
    assert submitted(tmp_path, "--seeds", "0-2,7", "--sweep", str(sweep), "--ranks", "3") == 0
    tasks = (tmp_path / "jobs/tdpo-pendulum-nlr-1/tasks.txt").read_text().splitlines()
    assert len(tasks) == 8 and len({re.search(r"--log_dir (\S+)", task)[1] for task in tasks}) == 8
    assert "--seed 7 --set gamma=0.9 " in tasks[3] and "--seed 0 --set gamma=0.99 num_branches=2 " in tasks[4]
    assert all("--max_walltime 00:17:30" in task for task in tasks)
    script = (tmp_path / "jobs/tdpo-pendulum-nlr-1/job.sh").read_text()
    for line in ("#SBATCH --array=0-7", "#SBATCH --ntasks=3", "#SBATCH --signal=B:USR1@300", "#SBATCH --time=00:20:00"):
        assert line in script
    assert submitted(tmp_path) == 0 and (tmp_path / "jobs/tdpo-pendulum-nlr-2").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "5-2"), "the last is before the first"),
        (("--seeds", "a"), "--seeds must be like"),
        (("--seeds", "1,1"), "named twice"),
        (("--seeds", "0-99999999"), "more than 10000 seeds"),
        (("--jobs", "jobs$(touch injected)"), "has '$' in its name"),
        (("--jobs", "two words"), "has ' ' in its name"),
        (("--time", "1h"), "--time must be HH:MM:SS"),
        (("--time", "00:05:00"), "must be more than 10 minutes"),
        (("--ranks", "0"), "--ranks must be at least 1"),
        (("--ranks", "5"), "num_trajectories must be at least the number of ranks (5), got 4"),
        (("--alg", "tdop"), "did you mean 'tdpo'"),
        (("--sweep", "/no/such"), "No such file"),
        (("--name", "../elsewhere"), "--name must be a letter, then letters"),
        (("--sweep", "@--seed 3"), "hpc.submit sets --seed of the runs"),
        (("--sweep", "@--seed=3"), "hpc.submit sets --seed of the runs"),
        (("--sweep", "@--algo td3"), "hpc.submit sets --alg of the runs"),
    ],
)
def test_what_a_run_would_refuse_is_refused_before_it_waits(tmp_path, capsys, arguments, message):
    if arguments[1].startswith("@"):  # what a sweep's file holds
        (tmp_path / "sweep.txt").write_text(arguments[1][1:])
        arguments = (arguments[0], str(tmp_path / "sweep.txt"))
    assert submitted(tmp_path, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "jobs").exists()


def test_site_values_come_from_one_place(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TDPO_PARTITION", "long")
    monkeypatch.setenv("TDPO_ACCOUNT", "physics")
    for scheduler, lines in (("slurm", ("--partition=long", "--account=physics")), ("pbs", ("-q long", "-A physics"))):
        assert submitted(tmp_path, scheduler=scheduler, dry_run=True) == 0
        printed = capsys.readouterr().out
        assert all(line in printed for line in lines)


@pytest.mark.parametrize("scheduler", submit.SCHEDULERS)
def test_scripts_pass_shellcheck(tmp_path, scheduler, commands):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: make system-deps")
    assert submitted(tmp_path, "--seeds", "0-1", scheduler=scheduler) == 0
    scripts = [*(tmp_path / "jobs").glob("*/*.sh"), ROOT / "hpc/job.sh", ROOT / "hpc/env.sh"]
    checked = subprocess.run(["shellcheck", "-x", *scripts], capture_output=True, text=True, cwd=ROOT)
    assert checked.returncode == 0, checked.stdout


@pytest.fixture(scope="module")
def undisturbed(program, tmp_path_factory):
    """Return the log of seed 0."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert program("run", "--env", "pendulum-nlr", "--seed", "0", *SMALL, "--log_dir", str(folder)).returncode == 0
    return deterministic_part(folder)


@pytest.fixture
def site(monkeypatch, mpirun):
    """Set the variables of hpc/env.sh as a site would."""
    for name, value in mpi_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TDPO_PYTHON", sys.executable)
    monkeypatch.setenv("TDPO_MPIRUN", mpirun)
    monkeypatch.setenv("TDPO_MPIRUN_OPTIONS", "--bind-to none --allow-run-as-root")


@pytest.mark.slow
def test_pbs_script_saves_when_warned_submits_itself_again_and_goes_on(
    tmp_path, site, undisturbed, monkeypatch, commands
):
    """Run the script's body with the variables that PBS sets, and a `qsub` that notes its arguments."""
    assert submitted(tmp_path, "--seeds", "0-1", "--ranks", "2", scheduler="pbs") == 0
    folder, run = tmp_path / "jobs/tdpo-pendulum-nlr-1", tmp_path / "runs/tdpo-pendulum-nlr-0"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/qsub").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    (tmp_path / "bin/qsub").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PBS_ARRAY_INDEX", "0")
    first = subprocess.Popen(
        ["bash", str(folder / "job.sh")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for_rows(first, run)
    first.terminate()  # what PBS does before it kills
    output, _ = first.communicate(timeout=120)
    assert first.returncode == 85, output
    assert (tmp_path / "asked").read_text() == f"-v TASK=0 {folder}/again.sh\n"
    again = (folder / "again.sh").read_text()
    assert "#PBS -J" not in again and "#PBS -J 0-1" in (folder / "job.sh").read_text()
    monkeypatch.delenv("PBS_ARRAY_INDEX")
    refused = subprocess.run(["bash", str(folder / "job.sh")], capture_output=True, text=True)
    assert refused.returncode != 0 and "PBS_ARRAY_INDEX: is not set by this PBS" in refused.stderr
    monkeypatch.setenv("TASK", "0")
    assert subprocess.run(["bash", str(folder / "again.sh")], capture_output=True, timeout=300).returncode == 0
    assert deterministic_part(run) == undisturbed


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Return a private Slurm that the commands of this process use."""
    if not slurm.is_installed():
        pytest.skip("no Slurm here: make system-deps, as root")
    cluster = slurm.Slurm(tmp_path / "slurm")
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.slow
def test_pbs_job_under_slurms_qsub_is_warned_submits_itself_again_and_ends(
    tmp_path, site, undisturbed, cluster, monkeypatch
):
    """Slurm reads PBS scripts but knows neither PBS_ARRAY_INDEX nor -o: this is one run, with logs of other names."""
    if not QSUB.exists():
        pytest.skip("no qsub of slurm-wlm-torque here: make system-deps, as root")
    commands = tmp_path / "bin"
    commands.mkdir()
    shutil.copy(QSUB, commands)
    (commands / "sbatch").symlink_to(shutil.which("sbatch"))  # it looks for it beside itself
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    alone = "--mca ras ^slurm --mca plm ^slurm"  # as under PBS, mpirun must not ask Slurm for hosts
    monkeypatch.setenv("TDPO_MPIRUN_OPTIONS", f"{os.environ['TDPO_MPIRUN_OPTIONS']} {alone}")
    assert submitted(tmp_path, scheduler="pbs") == 0
    run = tmp_path / "runs/tdpo-pendulum-nlr-0"
    cluster.wait_for((run / "progress.csv").exists, "the first rows")
    cluster.run("scancel", "--signal=USR1", "--batch", "1")
    cluster.wait_for(lambda: cluster.states("2") == {"COMPLETED"}, "the job's second submission to end")
    logs = "".join(path.read_text() for path in (tmp_path / "jobs/tdpo-pendulum-nlr-1").glob("*.sh.o*"))
    assert "exit code 85" in logs and "resumed at iteration" in logs
    assert deterministic_part(run) == undisturbed


@pytest.mark.slow
def test_array_job_under_slurm_is_warned_saves_queues_again_and_ends_as_if_undisturbed(
    tmp_path, site, undisturbed, cluster, capfd
):
    assert submitted(tmp_path, "--seeds", "0-1", "--ranks", "2") == 0
    job = re.search(r"Submitted batch job (\d+)", capfd.readouterr().out)[1]
    runs = [tmp_path / f"runs/tdpo-pendulum-nlr-{seed}" for seed in (0, 1)]
    cluster.wait_for(lambda: (runs[0] / "progress.csv").exists(), "the first rows of task 0")
    cluster.run("scancel", "--signal=USR1", "--batch", f"{job}_0")  # as Slurm itself does before the end
    log = tmp_path / "jobs/tdpo-pendulum-nlr-1/0.log"
    cluster.wait_for(lambda: "queues again" in log.read_text(), "the checkpoint of task 0")
    cluster.wait_for(lambda: cluster.states(job) == {"COMPLETED"}, "both tasks to end", seconds=300)
    assert "exit code 85" in log.read_text() and "resumed at iteration" in log.read_text()
    assert deterministic_part(runs[0]) == undisturbed
    assert len(deterministic_part(runs[1])) == LENGTH + 1
    cluster.run("scontrol", "requeue", f"{job}_1")  # finished: it ends at once
    cluster.wait_for(lambda: "finished already" in log.with_name("1.log").read_text(), "task 1 to say so")
    cluster.wait_for(lambda: cluster.states(job) == {"COMPLETED"}, "task 1 to end again")


@pytest.mark.slow
def test_sweep_trains_as_an_array_under_slurm_and_its_results_are_collected(tmp_path, site, cluster, capfd):
    command = ["--env", "pendulum-nlr", "--vary", "gamma=0.9,1", "--out", str(tmp_path / "sweep")]
    command += ["--set", "num_trajectories=4", "num_branches=2", "hidden_sizes=8,8", "num_iterations=50"]
    assert sweep.main([*command, "--submit", "slurm", "--ranks", "2", "--time", "00:20:00"]) == 0
    job = re.search(r"Submitted batch job (\d+)", capfd.readouterr().out)[1]
    cluster.wait_for(lambda: cluster.states(job) == {"COMPLETED"}, "both tasks to end", seconds=300)
    assert sweep.main([*command, "--status"]) == 0
    assert capfd.readouterr().out.count("1/1") == 2
    assert sweep.main([*command, "--submit", "slurm"]) == 0
    assert capfd.readouterr().out == "all runs are finished\n"


@pytest.mark.slow
def test_search_trains_round_by_round_under_slurm(tmp_path, site, cluster, capfd):
    command = ["--alg", "ars", "--env", "delayed-spring", "--vary", "learning_rate=0.01,0.1", "--library", "random"]
    command += ["--set", "num_iterations=5", "--variant", "A", "--batch", "2", "--evaluations", "3"]
    command += ["--fresh_seeds", "1", "--out", str(tmp_path / "study"), "--submit", "slurm", "--time", "00:20:00"]
    for num_runs in (2, 1, 1):  # both rounds and the winner's fresh seed
        assert tune.main(command) == 85
        output = capfd.readouterr().out
        assert f"{num_runs} run(s) of 1 rank(s)" in output and "when the submitted runs have ended" in output
        job = re.search(r"Submitted batch job (\d+)", output)[1]
        cluster.wait_for(lambda job=job: cluster.states(job) == {"COMPLETED"}, "the round to end", seconds=300)
    assert tune.main(command) == 0
    assert "fresh seeds: mean" in capfd.readouterr().out


def test_failures_are_counted_by_the_logs_of_all_jobs(tmp_path):
    for job, codes in (("a-1", (1, 0)), ("a-2", (139, 85)), ("a-3", (2, 0))):
        folder = tmp_path / job
        folder.mkdir()
        (folder / "tasks.txt").write_text("--env leg --log_dir=/x/0 --seed=0\n--env leg --log_dir=/x/1 --seed=1\n")
        for index, code in enumerate(codes):
            log = f"2026-01-01 00:00:00 task {index}: begins\n2026-01-01 00:00:01 task {index}: exit code {code}\n"
            (folder / f"{index}.log").write_text(log)
    assert submit.failures(tmp_path) == {"/x/0": 2}
    assert submit.failures(tmp_path / "absent") == {}


@pytest.mark.parametrize("prepare", ["nothing", "open to others", "a link"])
def test_numba_executes_no_file_that_another_user_could_have_written(tmp_path, prepare, monkeypatch):
    predictable = tmp_path / f"tdpo-numba-{os.getuid()}"
    if prepare == "open to others":
        predictable.mkdir()
        predictable.chmod(0o777)
    elif prepare == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        predictable.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tasks.txt").write_text("--env leg\n")
    monkeypatch.setenv("TDPO_SCRATCH", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    wrapper = tmp_path / "mpirun"
    wrapper.write_text("#!/bin/sh\nprintenv NUMBA_CACHE_DIR\n")
    wrapper.chmod(0o700)
    monkeypatch.setenv("TDPO_MPIRUN", str(wrapper))
    done = subprocess.run(
        ["bash", str(ROOT / "hpc/job.sh"), str(tmp_path / "tasks.txt"), "0", "1"], capture_output=True, text=True
    )
    used = Path(done.stdout.splitlines()[1])
    assert used.stat().st_mode & 0o777 == 0o700 and not used.is_symlink()
    assert (used == predictable) is (prepare == "nothing")
