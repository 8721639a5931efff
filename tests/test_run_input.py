"""What users type: refused politely, explained when asked."""

import os
import re
from types import SimpleNamespace

import pytest
from small_run import SMALL

from tdpo_baselines import run
from tdpo_baselines.common.parallel.checks import require_memory
from tdpo_baselines.harness import registry
from tdpo_baselines.harness.run_folder import RunFolder

pytestmark = pytest.mark.slow

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
    ("--env", "Pendulum-v1", "--alg", "td3", "--num_trajectories", "3"): "pass --set batch_size=129 buffer_size=200001",
    (
        "--env",
        "pendulum-nlr",
        "--alg",
        "td3",
        "--set",
        "buffer_size=9",
    ): "buffer_size must be at least batch_size",
    ("--env", "pendulum-nlr", "--alg", "ppo1", "--set", "minibatch_size=9999"): "minibatch_size must be at most",
    ("--env", "pendulum-nlr", "--alg", "ddpg", "--set", "buffer_size=1e11"): "transitions of buffer_size need about",
    ("--env", "Pendulum-v1", "--set", "env.g=nan"): "env.g must be a finite number",
    ("--env", "Pendulum-v1", "--set", "env.max_episode_steps=10000000000000"): "actions of env.max_episode_steps need",
    ("--env", "pendulum-nlr", "--max_walltime", "1h"): "max_walltime must be HH:MM:SS",
    ("--env", "pendulum-nlr", "--config", "no/such.json"): "cannot read no/such.json",
    ("--env", "pendulum-nlr", "--preset", "papper"): "did you mean 'paper'",
    ("--env", "pendulum-nlr", "--log_dir", "/proc/nowhere"): "cannot write to log_dir",
    ("--env", "pendulum-nlr", "--set", "stage1.gamma=0.9"): "stage1.timesteps is missing",
    ("--env", "pendulum-nlr", "--set", "stage1.timestep=9"): "did you mean 'timestep'",
    ("--env", "pendulum-nlr", "--set", "stage1.timesteps=9", "stage1.gama=1"): "stage1: unknown option",
    ("--env", "pendulum-nlr", "--set", "stage1.timesteps=9", "stage1.hidden_sizes=8"): "stage1: observations, actions,",
    ("--env", "pendulum-nlr", "--set", "stage1.timesteps=9", "stage3.timesteps=9"): "nothing of stage2; stages are",
    ("--env", "pendulum-nlr", "--set", "stage1.timesteps=9", "stage1.held_steps=999"): "stage1: held_steps must be",
    (
        "--env",
        "pendulum-nlr",
        "--set",
        "stage1.timesteps=9",
        "stage1.use_observation_normalisation=true",
    ): "stage1: observations, actions,",
    (
        "--env",
        "pendulum-nlr",
        "--set",
        "stage1.timesteps=0",
        "stage2.timesteps=9",
        "stage2.held_steps=999",
    ): "stage2: held_steps must be",
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


def test_two_processes_cannot_train_in_one_folder(tmp_path, capsys):
    holder = RunFolder(tmp_path)
    holder.create()
    holder.lock()
    assert run.main([*SMALL, "--log_dir", str(tmp_path)]) == 2
    assert "another process is training" in capsys.readouterr().err


def test_replay_that_will_not_fit_on_the_disk_is_refused_at_the_start(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=20e6))
    arguments = ["--env", "pendulum-nlr", "--alg", "ddpg", "--set", "batch_size=100", "hidden_sizes=8"]
    large, small = tmp_path / "large", tmp_path / "small"
    assert run.main([*arguments, "buffer_size=2e5", "--log_dir", str(large)]) == 2
    assert re.search(r"checkpoints need about 22 MB .* 20 MB are free; make room", capsys.readouterr().err)
    assert not RunFolder(large).has_run()
    assert run.main([*arguments, "buffer_size=1e5", "--log_dir", str(small), "--num_timesteps", "2000"]) == 0
    present = sum(path.stat().st_size for path in (small / "checkpoints").rglob("*"))
    RunFolder(small).require_space(20_000_000 + present // 2)  # what is there already needs no new room


def test_memory_is_that_of_all_ranks_of_the_host(monkeypatch):
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    require_memory("settings", total / 10)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "6")
    with pytest.raises(ValueError, match=r"settings need about .* this host, with 6 rank\(s\), has"):
        require_memory("settings", total / 10)


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
