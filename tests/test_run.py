"""The command line, in process: invalid input is refused politely, and help explains itself."""

import os
import shlex
import subprocess
import sys

import pytest
from programs import ROOT
from small_run import SMALL

from tdpo_baselines import run

PENDULUM, LEG = "--env pendulum-nlr", "--env leg"
INVALID = {
    "--env pendulum-nrl": "unknown environment 'pendulum-nrl', did you mean 'pendulum-nlr'",
    f"{PENDULUM} --alg tdop": "unknown algorithm 'tdop', did you mean 'tdpo'",
    f"{PENDULUM} --sed 1": "unknown argument '--sed', did you mean '--seed'",
    f"{PENDULUM} --lr 1": "unknown argument '--lr'; --help --alg tdpo lists the arguments and options",
    f"{PENDULUM} --gama 0.9": "unknown argument '--gama', did you mean '--gamma'",
    f"{PENDULUM} --gamma": "--gamma is no argument, or an option without a value",
    f"{PENDULUM} --gamma 0.9 0.8": "unknown argument '0.8'",
    f"{PENDULUM} -gamma 0.9": "unknown argument '-gamma'",
    f"{PENDULUM} --gamma 2": "gamma must be",
    "--env envs:tdpo/Lg-v0": "did you mean 'envs:tdpo/Leg-v0'",
    f"{PENDULUM} --seed=-1": "seed must be at least 0",
    f"{PENDULUM} --seed": "expected one argument",
    f"{PENDULUM} --set gama=1": "unknown option 'gama', did you mean 'gamma'",
    f"{PENDULUM} --set gamma": "--set takes KEY=VALUE",
    f"{PENDULUM} --set gamma=-1": "gamma must be more than 0",
    f"{PENDULUM} --set gamma=nan": "gamma must be a finite number",
    f"{PENDULUM} --set action_scale=1e-200": "action_scale must be at least",
    f"{PENDULUM} --set env.start_scal=1": "did you mean 'start_scale'",
    f"{PENDULUM} --set env.start_scale=7": "start_scale must be between 0 and 1",
    f"{PENDULUM} --set env.variant=1.5": "env.variant must be a whole number",
    f"{PENDULUM} --set num_branches=1000000 num_trajectories=1000000": "GB per rank",
    f"{PENDULUM} --num_trajectories 0": "num_trajectories must be at least 1",
    f"{PENDULUM} --num_timesteps 1e400": "num_timesteps must be a whole number",
    f"{PENDULUM} --checkpoint_minutes 0": "checkpoint_minutes must be more than 0",
    f"{PENDULUM} --max_walltime 1h": "max_walltime must be HH:MM:SS",
    f"{PENDULUM} --config no/such.json": "cannot read no/such.json",
    f"{PENDULUM} --preset papper": "did you mean 'paper'",
    f"{PENDULUM} --log_dir /proc/nowhere": "cannot write to log_dir",
    f"{PENDULUM} --set stage1.timestep=9": "did you mean 'stage1.timesteps'",
    f"{PENDULUM} --set stage1.timesteps=9 stage1.gama=1": "stage1: unknown option",
    f"{PENDULUM} --set stage1.timesteps=9 stage1.hidden_sizes=8": "stage1: observations, actions,",
    f"{PENDULUM} --preset paper --set stage1.timesteps=0 stage2.timesteps=9 stage2.held_steps=999": "stage2: held",
    f"{PENDULUM} --set delta_max=1": "delta_max is no option of the adaptive variant",
    f"{PENDULUM} --alg td3 --set buffer_size=9": "buffer_size must be at least batch_size",
    f"{PENDULUM} --alg ppo1 --set minibatch_size=9999": "minibatch_size must be at most",
    f"{PENDULUM} --alg ddpg --set buffer_size=1e11": "transitions of buffer_size need about",
    f"{LEG} --set env.sensor_noise=maybe": "env.sensor_noise must be true or false",
    f"{LEG} --set env.contact=ice": "contact must be one of compliant",
    f"{LEG} --set env.control_rate_hz=300": "control_rate_hz must divide 4000",
    f"{LEG} --set variant=basic max_branch_steps=5 held_steps=6": "max_branch_steps must be at least held_steps",
    "--env Pendulum-v1 --alg td3 --num_trajectories 3": "pass --set batch_size=129 buffer_size=200001",
    "--env Pendulum-v1 --set env.g=nan": "env.g must be a finite number",
    "--env Pendulum-v1 --set env.max_episode_steps=10000000000000": "must be a number from 0 to 1000000",
    "--env .:x": "unknown environment '.:x'; a module's name has no empty part; --list shows",
    "--env gym:.:x": "unknown environment 'gym:.:x'; a module's name has no empty part; --list shows",
    f"--env Pendulum-v1 --set env.max_episode_steps={'9' * 400}": "must be a number from 0 to 1000000",
    f"{PENDULUM} --seed {'9' * 5000}": "seed must be a whole number",
    "--env careless:Careless-v0 --set env.fault=raises": "failed with KeyError: 'broken'",
    "": "--env is missing",
}


@pytest.mark.parametrize("arguments", INVALID)
def test_invalid_input_is_one_line_with_exit_code_2_and_touches_nothing(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.main(arguments.split()) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and INVALID[arguments] in printed.err, printed.err
    assert printed.err.startswith("error: ") and not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["--algo", "--alg"])
@pytest.mark.parametrize("steps", ["--num_timesteps", "--num-timesteps", "--n-timesteps", "--n_timesteps"])
@pytest.mark.parametrize("folder", ["--log-dir", "--log-folder", "--log_path"])
def test_spellings_of_others_are_accepted(name, steps, folder):
    parsed = run.parse([name, "td3", f"{steps}=1e6", folder, "a-b/--c", "--set", "env.a-b=c-d"])
    assert (parsed.alg, parsed.num_timesteps, parsed.log_dir) == ("td3", "1e6", "a-b/--c")
    assert parsed.set == [["env.a-b=c-d"]] and parsed.option_arguments == {}


def test_list_shows_the_algorithms_and_environments(capsys):
    assert run.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert "pendulum-nlr-9" in listed and "pendulum-500hz" in listed and "tdpo" in listed


def test_help_explains_arguments_options_and_exit_codes(capsys):
    assert run.main(["--help", "--env", "leg"]) == 0
    text = capsys.readouterr().out
    for word in (
        "--num_timesteps",
        "branch_times=",
        "env.control_rate_hz=",
        "ground: compliant,",
        "85 stopped early",
        "preset tuned",
    ):
        assert word in text


def test_help_for_an_unknown_name_is_an_error(capsys):
    assert run.main(["--help", "--alg", "tdop"]) == 2
    assert "did you mean 'tdpo'" in capsys.readouterr().err


def test_importing_the_program_does_not_load_numpy():
    """Its threads are limited by environment variables that it reads when it is loaded."""
    code = "import sys, tdpo_baselines.run; assert not {'numpy', 'numba', 'gymnasium'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.slow
def test_errors_are_printed_once_and_not_once_per_rank(program, tmp_path):
    process = program("run", "--env", "pendulum-nrl", ranks=3)
    assert process.stderr.count("unknown environment") == 1
    assert "Traceback" not in process.stderr
    process = program("run", *SMALL, "--num_trajectories", "2", "--log_dir", str(tmp_path), ranks=3)
    assert process.stderr.count("pass --num_trajectories 3 or run on 2 ranks") == 1
    assert process.returncode == 2


@pytest.mark.slow
def test_limit_of_memory_is_one_line(tmp_path):
    megabytes = 300
    command = [sys.executable, "-m", "tdpo_baselines.run", *SMALL, "--num_iterations", "1", "--log_dir", str(tmp_path)]
    limited = f"ulimit -v {1000 * megabytes}; exec {shlex.join(command)}"
    process = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert process.returncode in (1, 2) and process.stderr.count("\n") == 1, process.stderr
    assert f"error: out of memory, with a limit of {megabytes * 1.024e-3:.3g} GB (ulimit -v)" in process.stderr
