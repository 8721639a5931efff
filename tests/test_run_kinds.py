"""Every kind of run gives the same result on any number of ranks, killed and resumed; errors end all ranks."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from programs import ROOT, deterministic_part, kill_after_rows, mpi_environment
from small_run import SMALL

from tdpo_baselines.storage import checkpoint

pytestmark = pytest.mark.slow

LEG = (
    *("variant=basic", "num_trajectories=5", "num_branches=1", "branch_times=uniform", "held_steps=10"),
    *(
        "hidden_sizes=16,16",
        "c2=0",
        "c1_over_c2=0",
        "max_branch_steps=200",
        "branch_growth_steps=1e5",
        "exploration_decay_steps=1e6",
    ),
    *("delta_decay_steps=1e6", "max_drop=1"),
)
LEG_RUN = ("--env", "leg", "--set", *LEG, "--num_iterations", "12", "--checkpoint_every", "2", "--log_dir")


@pytest.fixture(scope="module")
def leg_reference(program, tmp_path_factory):
    """Return a run on one rank with MuJoCo's solver, a main trajectory shared by all branches, and every schedule."""
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
    kill_after_rows(killed, tmp_path / "run", 4)
    assert killed.returncode != 0
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
SHARED = "steps_per_round=100 updates_per_round=3 rounds_per_iteration=3 random_timesteps=300 batch_size=1030"
FEW_ROWS = "variant=basic num_branches=2 c2=0 c1_over_c2=0 delta_max=0.2 exploration_std=1 cg_damping=0.3"
RANGES = "env.mass=0.8:1.2 env.friction=0.5:1 env.motor=0.9:1.1 env.push=-2:2 env.delay_steps=0:2"
KINDS = {  # how many ranks begin, how many resume; most load TensorFlow on every rank, so they are few
    "leg-stochastic": (2, 1, "--env leg-stochastic --set max_branch_steps=50 line_search_replicates=3"),
    "adaptive": (5, 3, "--env pendulum-nlr --set num_branches=2"),
    "adaptive, one start": (2, 1, "--env leg --preset none --set max_branch_steps=50"),
    "adaptive, early ends": (3, 2, "--env birotor --set num_branches=2"),
    "few rows": (2, 3, f"--env pendulum-nlr --set {FEW_ROWS}"),  # on two cores: by every rank, then by rank 0
    "leg-100hz, randomised": (2, 1, f"--env leg-100hz --set max_branch_steps=5 {RANGES}"),
    "advanced": (5, 2, "--env Hopper-v5 --set use_observation_normalisation=true line_search_replicates=3"),
    "replayed": (2, 1, "--env Pendulum-v1 --set env.max_episode_steps=30 env.delay_steps=2"),
    "trpo": (2, 3, "--alg trpo --env Hopper-v5 --set steps_per_trajectory=70 value_minibatch_size=100"),
    "ppo1": (2, 3, "--alg ppo1 --env Hopper-v5 --set steps_per_trajectory=110 minibatch_size=300 num_epochs=2"),
    "td3": (3, 1, f"--alg td3 --env pendulum-nlr --set {OFF_POLICY} buffer_size=500 noise=pink"),
    "ddpg": (1, 2, f"--alg ddpg --env Pendulum-v1 --set {OFF_POLICY} parameter_noise_std=0.2 critic_l2=0.01"),
    "ars": (3, 2, "--alg ars --env Hopper-v5 --set num_top=2 use_adam=true"),
    "cma": (2, 3, "--alg cma --env pendulum-20hz --set hidden_sizes=3"),
    "td3 shared": (2, 3, f"--alg td3 --env pendulum-20hz --set {SHARED} buffer_size=3000"),
}


def best_of(run) -> tuple[int, bytes]:
    """Return the iteration and the parameters of the best policy."""
    best = checkpoint.load_newest(run / "best")
    return int(best["progress"]["iteration"]), best["policy"]["theta"].tobytes()


@pytest.mark.parametrize("algorithm", ["trpo", "td3"])
def test_baseline_killed_and_resumed_on_other_ranks_is_the_same(background_program, program, tmp_path, algorithm):
    """The kill comes after the second row or later; replay and noise must survive it."""
    text = {"trpo": "steps_per_trajectory=300", "td3": f"{OFF_POLICY} noise=ou noise_bandwidth=0.3 buffer_size=5000"}
    arguments = ("--alg", algorithm, "--env", "pendulum-nlr", "--set", *text[algorithm].split(), "num_trajectories=5")
    arguments = (*arguments, "hidden_sizes=8,8", "--num_iterations", "300", "--checkpoint_every", "2", "--log_dir")
    killed = background_program("run", *arguments, str(tmp_path / "killed"), ranks=2)
    kill_after_rows(killed, tmp_path / "killed", 2)
    assert killed.returncode != 0
    assert program("run", *arguments, str(tmp_path / "killed"), "--resume", ranks=3).returncode == 0
    assert program("run", *arguments, str(tmp_path / "whole")).returncode == 0
    assert deterministic_part(tmp_path / "killed") == deterministic_part(tmp_path / "whole")
    assert best_of(tmp_path / "killed") == best_of(tmp_path / "whole")


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
    assert best_of(tmp_path / "many") == best_of(tmp_path / "alone")


def test_stages_end_at_their_time_and_the_run_goes_on_the_same_when_stopped_there(program, tmp_path):
    first = ("stage1.timesteps=20000", "stage1.env.start_scale=0.5", "stage1.delta_max=0.01")
    second = ("stage2.timesteps=10000", "stage2.held_steps=2", "stage2.delta_max=0.02")
    arguments, whole, parts = (*SMALL, *first, *second, "--log_dir"), tmp_path / "whole", tmp_path / "parts"
    assert program("run", *arguments, str(whole), "--num_iterations", "9").returncode == 0
    header, *rows = (line.split(",") for line in deterministic_part(whole))
    steps_before = [0] + [int(row[1]) for row in rows[:-1]]
    deltas = [float(row[header.index("delta_max")]) for row in rows]
    stages = [np.searchsorted([0.01, 0.02], delta) for delta in deltas]  # delta_max decays a little
    assert stages == [np.searchsorted([20000, 30000], steps, side="right") for steps in steps_before]
    assert set(stages) == {0, 1, 2}
    ends = [stages.index(1), stages.index(2)]
    boundary = program("run", *arguments, str(parts), "--num_iterations", str(ends[0]), ranks=2)
    assert "stage 1: 20000 timesteps with delta_max=0.01 env.start_scale=0.5" in boundary.stdout
    assert boundary.returncode == 0 and "inf" not in boundary.stdout
    for num_iterations in (ends[1], 9):
        go_on = ("--num_iterations", str(num_iterations), "--resume")
        assert program("run", *arguments, str(parts), *go_on).returncode == 0
    assert deterministic_part(parts) == deterministic_part(whole)
    best = program("evaluate", str(parts), "--best", "--json")
    assert json.loads(best.stdout)["iteration"] >= ends[1]


def test_large_network_is_the_same_on_one_core_and_on_several_ranks(program, tmp_path):
    """Check the limit on threads: dot products split over threads would depend on the number of cores."""
    large = ("--env", "pendulum-nlr", "--set", "num_trajectories=3", "num_branches=1", "hidden_sizes=128,128")
    arguments = (*large, "--num_iterations", "4", "--log_dir")
    assert program("run", *arguments, str(tmp_path / "all-cores")).returncode == 0
    assert program("run", *arguments, str(tmp_path / "ranks"), ranks=2).returncode == 0
    one_core = {min(os.sched_getaffinity(0))}
    pinned = program("run", *arguments, str(tmp_path / "one"), preexec_fn=lambda: os.sched_setaffinity(0, one_core))
    assert pinned.returncode == 0
    expected = deterministic_part(tmp_path / "all-cores")
    assert deterministic_part(tmp_path / "ranks") == deterministic_part(tmp_path / "one") == expected


@pytest.mark.parametrize("kind", ["KeyError", "OSError", "FloatingPointError", "ValueError"])
def test_exception_on_one_rank_ends_the_job_with_its_traceback(mpirun, tmp_path, kind):
    code = (
        "import sys, tdpo_baselines.tdpo.tdpo as tdpo\n"
        "from tdpo_baselines import run\n"
        "from tdpo_baselines.common.parallel import launcher\n"
        "scale_to_trust_region = tdpo.scale_to_trust_region\n"
        "def broken(*arguments):\n"
        f"    if launcher.rank() == 1: raise {kind}('planted')\n"
        "    return scale_to_trust_region(*arguments)\n"
        "tdpo.scale_to_trust_region = broken\n"
        "sys.exit(run.main())\n"
    )
    command = [mpirun, "-np", "3", sys.executable, "-c", code, *SMALL, "--log_dir", str(tmp_path / "run")]
    process = subprocess.run(command, capture_output=True, text=True, env=mpi_environment(), timeout=120)
    assert process.returncode != 0
    assert f"[rank 1] {kind}: " in process.stderr
    assert f"[rank 1] {kind}: " in (tmp_path / "run/rank_001.log").read_text()
    assert "[rank 0]" not in process.stderr


@pytest.mark.parametrize("algorithm", ["ppo1", "td3"])
def test_reward_that_is_not_a_number_on_one_rank_ends_all_with_its_name(program, tmp_path, algorithm, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests/support'}")
    process = program(
        "run", "--alg", algorithm, "--env", "not_a_number:NotANumber-v0", "--num_trajectories", "2",
        "--num_timesteps", "5000", "--log_dir", str(tmp_path / "run"), ranks=2,
    )  # fmt: skip
    assert process.returncode == 1 and "Traceback" not in process.stderr
    fate = {"ppo1": "the state before it is saved in", "td3": "checkpoints before it, if there are any, are in"}[
        algorithm
    ]
    assert re.search(rf"^error: iteration 1: return of stream \[[01]\] is nan; {fate} ", process.stderr, re.MULTILINE)
