"""The gymnast, as a user's own robot: trained by name and by callable, on ranks, resumed, from the code cache."""

import importlib
import os
import subprocess
import sys

import pytest
from programs import ROOT, deterministic_part

import tdpo_baselines
from envs.kernel import Kernel

pytestmark = pytest.mark.slow
NAME, SMALL = "gymnast:make", ("--hidden_sizes", "4", "--num_trajectories", "2", "--num_branches", "2", "--quiet")
COUNT = """
from numba.core import event
compiled = event.RecordingListener()
with event.install_listener("numba:compile", compiled):
    import gymnast
    from envs.gym_env import KernelEnv
    from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
    env = KernelEnv(gymnast.make())
    KernelRoller(env.kernel, (4,), gamma=0.99)
    env.reset(seed=0)
    env.step([1.0])
print(len(compiled.buffer))
"""


@pytest.fixture
def gymnast(monkeypatch):
    """Return the module, which programs find too."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'examples'}")
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("gymnast")


def test_second_start_compiles_nothing(gymnast, tmp_path):
    def count() -> int:
        variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return int(subprocess.check_output([sys.executable, "-c", COUNT], env=variables, timeout=900))

    assert count() > 10
    assert count() == 0


def test_runs_by_name_by_callable_on_ranks_and_resumed_are_the_same(gymnast, program, tmp_path):
    paths = [str(tmp_path / name) for name in ("ranks", "resumed", "callable")]
    begin = ["run", "--env", NAME, *SMALL, "--log_dir"]
    done = [program(*begin, paths[0], "--num_iterations", "3", ranks=2)]
    done.append(program(*begin, paths[1], "--num_iterations", "2"))
    done.append(program("run", "--env", NAME, "--resume", "--log_dir", paths[1], "--num_iterations", "3", "--quiet"))
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    options = {"hidden_sizes": 4, "num_trajectories": 2, "num_branches": 2}
    trained = tdpo_baselines.train(gymnast.make, num_iterations=3, log_dir=paths[2], options=options, quiet=True)
    ranks, resumed, called = (deterministic_part(tmp_path / name) for name in ("ranks", "resumed", "callable"))
    assert ranks == resumed == called and isinstance(trained.environment, Kernel)
    refused = program("evaluate", paths[0])
    assert refused.returncode == 2 and f"if you trust it, pass --env {NAME}" in refused.stderr
    assert "return" in program("evaluate", paths[0], "--env", NAME).stdout
