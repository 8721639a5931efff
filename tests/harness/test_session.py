from types import SimpleNamespace

import pytest

from tdpo_baselines import run
from tdpo_baselines.common.parallel.comm import Comm, Refused
from tdpo_baselines.harness import session
from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.harness.stop_request import StopRequest
from tdpo_baselines.storage.logger import Console
from tdpo_baselines.storage.run_folder import RunFolder


def resolved(*arguments: str):
    return resolve(run.parse(["--env", "pendulum-nlr", *arguments]))


def set_up(asked, path, **how):
    return session.set_up(asked, RunFolder(path), Comm(), StopRequest(), is_quiet=True, **how)


def test_options_that_cannot_run_are_refused_before_the_folder_is_made(tmp_path):
    with pytest.raises(Refused, match="held_steps must be at most the horizon"):
        set_up(resolved("--set", "variant=basic", "held_steps=999"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_folder_of_another_run_is_refused(tmp_path):
    folder = RunFolder(tmp_path)
    folder.open(resolved().config, is_resumed=False)
    folder.progress_path.write_text("iteration\n")
    folder.unlock()
    with pytest.raises(Refused, match=r"holds another run \(seed: 0 here, 5 asked for\)"):
        set_up(resolved("--seed", "5"), tmp_path, is_resumed=True)


def test_run_is_announced_with_its_stages_remarks_and_warnings(tmp_path, capsys):
    asked = resolved("--alg", "td3", "--set", "stage1.timesteps=100", "stage1.gamma=0.5", "--num_timesteps", "90")
    comm = SimpleNamespace(size=4, crowd=(4, 2))
    session.announce(asked, RunFolder("somewhere"), comm, Console(is_quiet=False))
    text = capsys.readouterr().out
    assert "td3 on pendulum-nlr, seed 0, preset none: 90 timesteps, 4 rank(s), 1 trajectories per update -> s" in text
    assert "warning: 4 ranks share 2 core(s) of a host" in text
    assert "stage 1: 100 timesteps with gamma=0.5" in text
    assert "warning: the run ends before its last stage begins" in text
    assert "random_timesteps" in text
