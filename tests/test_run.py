"""The program as a user meets it: one run on any number of ranks, killed and resumed, refused politely."""

import importlib.util
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from programs import ROOT, deterministic_part, kill_all, mpi_environment

from tdpo_baselines import registry, run

pytestmark = pytest.mark.slow

SMALL = (
    "--env",
    "pendulum-nlr",
    "--set",
    "num_trajectories=7",
    "num_branches=3",
    "hidden_sizes=16,16",
    "c1_over_c2=0.5",
)
LENGTH = "120"  # iterations: long enough to be killed on the way


@pytest.fixture(scope="module")
def reference(program, tmp_path_factory):
    """An undisturbed run on one rank."""
    folder = tmp_path_factory.mktemp("reference") / "run"
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--checkpoint_every", "7", "--log_dir", str(folder))
    assert process.returncode == 0, process.stderr
    return folder


def test_progress_has_the_promised_columns(reference):
    header = (reference / "progress.csv").read_text().splitlines()[0]
    assert header.startswith(
        "iteration,total_timesteps,episodes,return_mean,discounted_return_mean,payoff,wall_time,steps_per_second"
    )
    for name in ("gradient_norm", "cg_residual", "step_w", "is_trust_region_bound", "exploration_std"):
        assert name in header


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_run_is_the_same_to_the_byte_on_any_number_of_ranks(program, tmp_path, reference, ranks):
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(tmp_path), ranks=ranks)
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path) == deterministic_part(reference)
    assert process.stdout.count(f"finished: {LENGTH} iterations") == 1


def test_killed_at_a_random_moment_and_resumed_on_other_ranks_it_is_the_same(
    background_program, program, tmp_path, reference
):
    arguments = (*SMALL, "--num_iterations", LENGTH, "--checkpoint_every", "3", "--log_dir", str(tmp_path / "run"))
    progress = tmp_path / "run" / "progress.csv"
    rng = random.Random()
    for ranks in (2, 1):
        while True:
            process = background_program("run", *arguments, "--resume", ranks=ranks)
            wanted = rng.randrange(2, 60)
            while process.poll() is None and not (progress.exists() and progress.read_text().count("\n") > wanted):
                time.sleep(0.002)
            kill_all(str(tmp_path))
            process.communicate()
            if process.returncode != 0:
                break
            shutil.rmtree(tmp_path / "run")  # it was faster than the kill: once more
    with open(progress, "a") as file:
        file.write("119,12")  # a torn line, as a kill inside a write would leave
    process = program("run", *arguments, "--resume", ranks=3)
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path / "run") == deterministic_part(reference)


LEG = ("num_trajectories=5", "max_branch_steps=200", "branch_growth_steps=1e5", "hidden_sizes=16,16")
LEG_RUN = ("--env", "leg", "--set", *LEG, "--num_iterations", "12", "--checkpoint_every", "2", "--log_dir")


@pytest.fixture(scope="module")
def leg_reference(program, tmp_path_factory):
    """MuJoCo's solver, a main trajectory shared by all branches, and every schedule, on one rank."""
    folder = tmp_path_factory.mktemp("leg") / "run"
    process = program("run", *LEG_RUN, str(folder))
    assert process.returncode == 0, process.stderr
    return folder


@pytest.mark.parametrize("ranks", [2, 3])
def test_leg_is_the_same_on_any_number_of_ranks(program, tmp_path, leg_reference, ranks):
    assert program("run", *LEG_RUN, str(tmp_path / "run"), ranks=ranks).returncode == 0
    assert deterministic_part(tmp_path / "run") == deterministic_part(leg_reference)


def test_leg_killed_and_resumed_on_other_ranks_is_the_same(background_program, program, tmp_path, leg_reference):
    killed = background_program("run", *LEG_RUN, str(tmp_path / "run"), ranks=2)
    progress = tmp_path / "run" / "progress.csv"
    while killed.poll() is None and not (progress.exists() and progress.read_text().count("\n") > 4):
        time.sleep(0.002)
    kill_all(str(tmp_path / "run"))
    killed.communicate()
    assert program("run", *LEG_RUN, str(tmp_path / "run"), "--resume", ranks=3).returncode == 0
    assert deterministic_part(tmp_path / "run") == deterministic_part(leg_reference)


def test_leg_evaluation_starts_where_it_is_told_and_draws(program, leg_reference, tmp_path):
    picture = tmp_path / "landing.png"
    start = ("--reset", "theta_hip=-0.5,height=0.3", "--episodes", "1")
    process = program("evaluate", str(leg_reference), *start, "--json", "--plot", str(picture))
    assert process.returncode == 0, process.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    given = json.loads(process.stdout)["episodes"]
    usual = json.loads(program("evaluate", str(leg_reference), "--episodes", "1", "--json").stdout)["episodes"]
    assert given["payoff"] != usual["payoff"]
    process = program("evaluate", str(leg_reference), "--reset", "hip=1")
    assert process.returncode == 2 and "unknown start value 'hip'" in process.stderr
    process = program("evaluate", str(leg_reference), "--reset", "height=high")
    assert process.returncode == 2 and "height must be a finite number" in process.stderr


OFF_POLICY = "steps_per_round=20 updates_per_round=6 rounds_per_iteration=3 random_timesteps=300 batch_size=40"
KINDS = {  # how many ranks begin, how many resume; every rank loads TensorFlow, so most are few
    "leg-stochastic": (2, 1, "--env leg-stochastic --set max_branch_steps=50 line_search_replicates=3"),
    "leg-100hz": (2, 1, "--env leg-100hz --set max_branch_steps=5"),
    "advanced": (5, 2, "--env Hopper-v5 --set use_observation_normalisation=true line_search_replicates=3"),
    "replayed": (2, 1, "--env Pendulum-v1 --set env.max_episode_steps=30 env.delay_steps=2"),
    "trpo": (3, 1, "--alg trpo --env Hopper-v5 --set steps_per_trajectory=70 value_minibatch_size=100"),
    "ppo1": (2, 3, "--alg ppo1 --env Hopper-v5 --set steps_per_trajectory=110 minibatch_size=300 num_epochs=2"),
    "td3": (3, 1, f"--alg td3 --env pendulum-nlr --set {OFF_POLICY} buffer_size=500 noise=pink"),
    "ddpg": (1, 2, f"--alg ddpg --env Pendulum-v1 --set {OFF_POLICY} parameter_noise_std=0.2 critic_l2=0.01"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_is_the_same_begun_on_several_ranks_and_resumed_on_fewer(program, tmp_path, kind):
    begins, resumes, text = KINDS[kind]
    arguments = (*text.split(), "num_trajectories=5", "hidden_sizes=8,8", "--num_iterations")
    for process in (
        program("run", *arguments, "4", "--log_dir", str(tmp_path / "alone")),
        program("run", *arguments, "2", "--log_dir", str(tmp_path / "many"), ranks=begins),
        program("run", *arguments, "4", "--log_dir", str(tmp_path / "many"), "--resume", ranks=resumes),
    ):
        assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path / "many") == deterministic_part(tmp_path / "alone")


def test_first_stage_ends_at_its_time_and_the_run_goes_on_the_same_when_stopped_there(program, tmp_path):
    first = ("first_stage.timesteps=20000", "first_stage.env.start_scale=0.5", "first_stage.delta_max=0.01")
    arguments, whole, parts = (*SMALL, *first, "--log_dir"), tmp_path / "whole", tmp_path / "parts"
    assert program("run", *arguments, str(whole), "--num_iterations", "7").returncode == 0
    header, *rows = (line.split(",") for line in deterministic_part(whole).splitlines())
    steps_before = [0] + [int(row[1]) for row in rows[:-1]]
    is_first = [float(row[header.index("delta_max")]) <= 0.01 for row in rows]
    assert is_first == [steps < 20000 for steps in steps_before] and 0 < sum(is_first) < 7
    boundary = program("run", *arguments, str(parts), "--num_iterations", str(sum(is_first)), ranks=2)
    assert "first stage: 20000 timesteps with delta_max=0.01 env.start_scale=0.5" in boundary.stdout
    assert boundary.returncode == 0 and "inf" not in boundary.stdout
    assert program("run", *arguments, str(parts), "--num_iterations", "7", "--resume").returncode == 0
    assert deterministic_part(parts) == deterministic_part(whole)
    best = program("evaluate", str(parts), "--best", "--json")
    assert json.loads(best.stdout)["iteration"] >= sum(is_first)


def test_large_network_is_the_same_on_one_core_and_on_several_ranks(program, tmp_path):
    """Long dot products would be split over threads, and so depend on the cores, were threads not limited."""
    large = ("--env", "pendulum-nlr", "--set", "num_trajectories=3", "num_branches=1", "hidden_sizes=128,128")
    arguments = (*large, "--num_iterations", "4", "--log_dir")
    assert program("run", *arguments, str(tmp_path / "all-cores")).returncode == 0
    assert program("run", *arguments, str(tmp_path / "ranks"), ranks=2).returncode == 0
    one_core = {min(os.sched_getaffinity(0))}
    pinned = program("run", *arguments, str(tmp_path / "one"), preexec_fn=lambda: os.sched_setaffinity(0, one_core))
    assert pinned.returncode == 0
    expected = deterministic_part(tmp_path / "all-cores")
    assert deterministic_part(tmp_path / "ranks") == deterministic_part(tmp_path / "one") == expected


def test_resume_of_a_finished_run_says_so(program, reference):
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(reference), "--resume")
    assert process.returncode == 0
    assert "finished already" in process.stdout


def test_walltime_stops_with_its_own_code_and_the_run_goes_on_the_same(program, tmp_path, reference):
    arguments = (*SMALL, "--num_iterations", LENGTH, "--log_dir", str(tmp_path / "run"))
    process = program("run", *arguments, "--max_walltime", "00:00:00")
    assert process.returncode == 85 and "continue with --resume" in process.stdout
    assert program("run", *arguments, "--resume", ranks=2).returncode == 0
    assert deterministic_part(tmp_path / "run") == deterministic_part(reference)


def test_interrupt_checkpoints_and_stops(background_program, tmp_path):
    process = background_program("run", *SMALL, "--log_dir", str(tmp_path / "run"))
    while not (tmp_path / "run" / "progress.csv").exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 85, output
    assert "stopped at iteration" in output
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 1


def test_torn_newest_checkpoint_is_skipped_and_the_run_is_the_same(program, tmp_path, reference):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    newest = max((folder / "checkpoints").iterdir()) / "state.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:100])
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 0 and "torn or corrupt" in process.stderr
    assert deterministic_part(folder) == deterministic_part(reference)


@pytest.mark.parametrize("kind", ["KeyError", "OSError", "FloatingPointError", "ValueError"])
def test_exception_on_one_rank_ends_the_job_with_its_traceback(mpirun, tmp_path, kind):
    code = (
        "import sys, tdpo_baselines.algos.tdpo as tdpo\n"
        "from tdpo_baselines import run\n"
        "from tdpo_baselines.common import launcher\n"
        "best_step = tdpo.best_step\n"
        "def broken(*arguments):\n"
        f"    if launcher.rank() == 1: raise {kind}('planted')\n"
        "    return best_step(*arguments)\n"
        "tdpo.best_step = broken\n"
        "sys.exit(run.main())\n"
    )
    command = [mpirun, "-np", "3", sys.executable, "-c", code, *SMALL, "--log_dir", str(tmp_path / "run")]
    process = subprocess.run(command, capture_output=True, text=True, env=mpi_environment(), timeout=120)
    assert process.returncode != 0
    assert f"[rank 1] {kind}: " in process.stderr
    assert "[rank 0]" not in process.stderr


@pytest.mark.parametrize("algorithm", ["ppo1", "td3"])
def test_reward_that_is_not_a_number_on_one_rank_ends_all_with_its_name(program, tmp_path, algorithm, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests/support'}")
    process = program(
        "run", "--alg", algorithm, "--env", "not_a_number:NotANumber-v0", "--num_trajectories", "2",
        "--num_timesteps", "5000", "--log_dir", str(tmp_path / "run"), ranks=2,
    )  # fmt: skip
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert re.search(r"^error: iteration 1: return of stream \[[01]\] is nan; the state before", process.stderr, re.M)


def test_resume_without_a_readable_checkpoint_touches_nothing(program, tmp_path, reference):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    for data in folder.glob("checkpoints/*/state.data*"):
        data.write_bytes(b"")
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 2 and "none of the checkpoints" in process.stderr
    assert (folder / "progress.csv").read_bytes() == (reference / "progress.csv").read_bytes()


@pytest.mark.parametrize("damage", ["rows missing", "not a table", "garbage row"])
def test_damaged_progress_is_named_and_left_alone(program, tmp_path, reference, damage):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    lines = (folder / "progress.csv").read_text().splitlines(keepends=True)
    damaged = {"rows missing": lines[:20], "not a table": ["hello\n"], "garbage row": [*lines[:5], "xx\n", *lines[6:]]}
    (folder / "progress.csv").write_text("".join(damaged[damage]))
    process = program("run", *SMALL, "--num_iterations", "999", "--log_dir", str(folder), "--resume")
    assert process.returncode == 2 and f"does not hold the {LENGTH} rows before the checkpoint" in process.stderr
    assert (folder / "progress.csv").read_text() == "".join(damaged[damage])


def test_tensorboard_events_are_written_or_the_remedy_is_named(program, tmp_path):
    process = program("run", *SMALL, "--num_iterations", "2", "--log_dir", str(tmp_path / "run"), "--tensorboard")
    if importlib.util.find_spec("tensorboard") is None:
        assert process.returncode == 2 and "tdpo_baselines[tensorboard]" in process.stderr
    else:
        assert process.returncode == 0 and list((tmp_path / "run" / "tensorboard").glob("events*"))


BAD = {
    ("--env", "pendulum-nrl"): "unknown environment 'pendulum-nrl', did you mean 'pendulum-nlr'",
    ("--env", "pendulum-nlr", "--alg", "tdop"): "unknown algorithm 'tdop', did you mean 'tdpo'",
    ("--env", "pendulum-nlr", "--sed", "1"): "unknown argument '--sed', did you mean '--seed'",
    ("--env", "pendulum-nlr", "--set", "gama=1"): "unknown option 'gama', did you mean 'gamma'",
    ("--env", "pendulum-nlr", "--set", "gamma"): "--set takes KEY=VALUE",
    ("--env", "pendulum-nlr", "--set", "gamma=-1"): "gamma must be more than 0",
    ("--env", "pendulum-nlr", "--set", "gamma=nan"): "gamma must be a finite number",
    ("--env", "pendulum-nlr", "--set", "env.start_scal=1"): "did you mean 'start_scale'",
    ("--env", "pendulum-nlr", "--set", "env.start_scale=7"): "start_scale must be between 0 and 1",
    ("--env", "pendulum-nlr", "--set", "num_branches=1000000", "num_trajectories=1000000"): "GB per rank",
    ("--env", "pendulum-nlr", "--num_trajectories", "0"): "num_trajectories must be at least 1",
    ("--env", "pendulum-nlr", "--num_timesteps", "1e400"): "num_timesteps must be a whole number",
    ("--env", "pendulum-nlr", "--num_timesteps", "-5"): "num_timesteps must be at least 1",
    ("--env", "pendulum-nlr", "--num_iterations", "0"): "num_iterations must be at least 1",
    ("--env", "pendulum-nlr", "--set", "action_scale=1e-200"): "action_scale must be at least",
    ("--env", "pendulum-nlr", "--set", "env.variant=1.5"): "env.variant must be a whole number",
    ("--env", "pendulum-nlr", "--seed", "-1"): "seed must be at least 0",
    ("--env", "leg", "--set", "env.sensor_noise=maybe"): "env.sensor_noise must be true or false",
    ("--env", "leg", "--set", "env.contact=ice"): "contact must be one of compliant",
    ("--env", "leg", "--set", "env.control_rate_hz=300"): "control_rate_hz must divide 4000",
    ("--env", "leg", "--set", "max_branch_steps=5", "held_steps=6"): "max_branch_steps must be at least held_steps",
    ("--env", "pendulum-nlr", "--checkpoint_minutes", "0"): "checkpoint_minutes must be more than 0",
    ("--env", "Pendulum-v1", "--alg", "td3", "--num_trajectories", "3"): "batch_size must be a multiple of num_traj",
    ("--env", "pendulum-nlr", "--alg", "ppo1", "--set", "minibatch_size=9999"): "minibatch_size must be at most",
    ("--env", "pendulum-nlr", "--alg", "ddpg", "--set", "buffer_size=1e11"): "buffer_size need about",
    ("--env", "pendulum-nlr", "--max_walltime", "1h"): "max_walltime must be HH:MM:SS",
    ("--env", "pendulum-nlr", "--config", "no/such.json"): "cannot read no/such.json",
    ("--env", "pendulum-nlr", "--preset", "papper"): "did you mean 'paper'",
    ("--env", "pendulum-nlr", "--log_dir", "/proc/nowhere"): "cannot write to log_dir",
    ("--env", "pendulum-nlr", "--set", "first_stage.gamma=0.9"): "first_stage.timesteps is missing",
    ("--env", "pendulum-nlr", "--set", "first_stage.timestep=9"): "did you mean 'timestep'",
    ("--env", "pendulum-nlr", "--set", "first_stage.timesteps=9", "first_stage.gama=1"): "first_stage: unknown option",
    ("--env", "pendulum-nlr", "--set", "first_stage.timesteps=9", "first_stage.hidden_sizes=8"): "hidden_sizes of the",
    (): "--env is missing",
}


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a[-2:]))
def test_bad_input_is_one_line_with_a_remedy_and_exit_code_2(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and BAD[arguments] in printed.err, printed.err
    assert not os.listdir(tmp_path)


def test_errors_are_printed_once_and_not_once_per_rank(program, tmp_path):
    process = program("run", "--env", "pendulum-nrl", ranks=3)
    assert process.stderr.count("unknown environment") == 1
    assert "Traceback" not in process.stderr
    process = program("run", *SMALL, "--num_trajectories", "2", "--log_dir", str(tmp_path), ranks=3)
    assert process.stderr.count("pass --num_trajectories 3 or run on 2 ranks") == 1
    assert process.returncode == 2


def test_folder_of_another_run_is_refused_and_left_alone(reference, capsys):
    before = (reference / "progress.csv").read_bytes()
    iterations = ("--num_iterations", LENGTH, "--log_dir", str(reference))
    assert run.main([*SMALL, *iterations]) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert run.main([*SMALL, "--seed", "5", *iterations, "--resume"]) == 2
    assert "holds another run (seed: 0 here, 5 asked for)" in capsys.readouterr().err
    other = [word.replace("pendulum-nlr", "pendulum-20hz") for word in SMALL]
    assert run.main([*other, *iterations, "--resume"]) == 2
    assert "environment: pendulum-nlr here, pendulum-20hz asked for" in capsys.readouterr().err
    assert (reference / "progress.csv").read_bytes() == before


def test_checkpoint_of_another_environment_is_refused(program, tmp_path, reference):
    folder = tmp_path / "run"
    arguments = [word.replace("pendulum-nlr", "pendulum-nlr-3") for word in SMALL]
    arguments += ["--num_iterations", "1", "--log_dir", str(folder)]
    assert program("run", *arguments).returncode == 0
    shutil.rmtree(folder / "checkpoints")
    shutil.copytree(reference / "checkpoints", folder / "checkpoints")
    process = program("run", *arguments, "--resume")
    assert process.returncode == 2
    assert "is of another run (environment: pendulum-nlr here, pendulum-nlr-3 asked for" in process.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_while_logging_is_named_and_nothing_is_lost(program, tmp_path, reference):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    from tdpo_baselines.common.logger import ProgressCSV

    log = ProgressCSV(folder / "progress.csv", last_iteration=int(LENGTH))
    log._file = open("/dev/full", "w")
    with pytest.raises(OSError, match="progress.csv: No space left on device; make room and continue with --resume"):
        log.write(dict.fromkeys(log._columns, 1))
    assert deterministic_part(folder) == deterministic_part(reference)


class Malicious:
    """Pickled, it writes a file when it is loaded."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def test_pickles_in_a_run_folder_are_never_loaded(program, tmp_path, reference):
    folder, trace = tmp_path / "run", tmp_path / "executed"
    shutil.copytree(reference, folder)
    harmful = pickle.dumps(Malicious(trace))
    newest = max((folder / "checkpoints").iterdir())
    for path in (folder / "policy.pkl", folder / "best" / "theta.pkl", newest / "state.pkl", newest / "state.index"):
        path.write_bytes(harmful)
    (folder / "state.npy").write_bytes(harmful)
    assert program("evaluate", str(folder), "--episodes", "1").returncode == 0
    assert program("evaluate", str(folder), "--episodes", "1", "--best").returncode == 0
    assert program("plot", str(folder), "--out", str(tmp_path / "curves.png")).returncode == 0
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 0 and "torn or corrupt" in process.stderr
    assert not trace.exists()
    pickle.loads(harmful).close()
    assert trace.exists()  # it would have worked


def test_two_processes_cannot_train_in_one_folder(tmp_path, capsys):
    from tdpo_baselines.run_folder import RunFolder

    holder = RunFolder(tmp_path)
    holder.create()
    holder.lock()
    assert run.main([*SMALL, "--log_dir", str(tmp_path)]) == 2
    assert "another process is training" in capsys.readouterr().err


@pytest.mark.parametrize("environment", [*registry.ENVIRONMENTS, "Pendulum-v1", "Swimmer-v5"])
@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
def test_help_shows_every_preset(algorithm, environment, capsys):
    for preset in ("none", *registry.presets(algorithm, environment)):
        assert run.main(["--help", "--alg", algorithm, "--env", environment, "--preset", preset]) == 0
        assert f"options of {algorithm} for --set (for {environment}, preset {preset})" in capsys.readouterr().out


def test_list_and_help_explain_themselves(capsys):
    assert run.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert "pendulum-nlr-9" in listed and "pendulum-500hz" in listed and "tdpo" in listed
    assert run.main(["--help", "--env", "pendulum-nlr"]) == 0
    text = capsys.readouterr().out
    for word in ("--num_timesteps", "branch_times=", "law nu of the branch times", "env.start_scale="):
        assert word in text


def test_config_json_says_how_the_run_was_made(reference):
    config = json.loads((reference / "config.json").read_text())
    assert config["environment"] == "pendulum-nlr" and config["options"]["num_trajectories"] == 7
    assert config["made_with"]["num_ranks"] == 1 and config["made_with"]["tensorflow"]


def test_evaluation_loads_by_path_alone_and_draws(program, reference, tmp_path):
    picture = tmp_path / "swing.png"
    process = program("evaluate", str(reference), "--episodes", "3", "--plot", str(picture))
    assert process.returncode == 0, process.stderr
    for name in ("return", "payoff", "offset", "amplitude", "band_share"):
        assert re.search(rf"^{name} ", process.stdout, re.MULTILINE)
    assert picture.read_bytes().startswith(b"\x89PNG")

    checkpoint = max((reference / "checkpoints").iterdir())
    first = program("evaluate", str(checkpoint), "--episodes", "3", "--json")
    results = json.loads(first.stdout)
    assert results["iteration"] == int(LENGTH) and len(results["episodes"]["return"]) == 3
    assert program("evaluate", str(reference), "--episodes", "3", "--json").stdout == first.stdout


def test_evaluation_refuses_what_is_no_run(program, tmp_path):
    process = program("evaluate", str(tmp_path))
    assert process.returncode == 2 and "is not a run folder" in process.stderr
