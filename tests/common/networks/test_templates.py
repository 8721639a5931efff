import os
import shutil
import subprocess
import sys

import numpy as np
from numba import njit
from programs import ROOT

from tdpo_baselines.common.networks.templates import compile_template

# ruff: noqa: F821


@njit
def double(x):
    return 2 * x


@njit
def triple(x):
    return 3 * x


def template(x):
    return function(x) + CONSTANT


def test_constants_and_functions_are_bound():
    assert compile_template(template, function=double, CONSTANT=1)(5) == 11
    assert compile_template(template, function=triple, CONSTANT=1)(5) == 16
    assert compile_template(template, function=triple, CONSTANT=2)(5) == 17


def test_the_same_binding_is_compiled_once():
    first = compile_template(template, function=double, CONSTANT=7)
    assert compile_template(template, function=double, CONSTANT=7) is first


def test_a_second_process_finds_the_cache_and_a_changed_source_does_not(tmp_path):
    """The policy's functions come from the cache, until a file that they were made from changes."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tdpo_baselines.common import mlp, few_rows\n"
        "import numpy as np\n"
        "act = mlp.compile_act((2, 3, 1))\n"
        "mlp.act_once(act, (2, 3, 1), np.zeros(13), np.zeros(2))\n"
        "limits = dict(max_iterations=1, tolerance=0.0, damping=0.1)\n"
        "few_rows.solve(np.zeros(13), np.zeros((1, 2)), (2, 3, 1), np.ones(1), np.ones(1), **limits)\n"
        "print(sum(sum(f.stats.cache_hits.values()) for f in (act, few_rows.solve_compiled)))\n"
    )
    shutil.copytree(ROOT / "tdpo_baselines", tmp_path / "tdpo_baselines", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def cache_hits() -> int:
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        return int(done.stdout)

    assert cache_hits() == 0
    assert cache_hits() == 2
    with open(tmp_path / "tdpo_baselines" / "common" / "vectors.py", "a") as file:
        file.write("\n")
    assert cache_hits() == 0


def test_templates_accept_arrays():
    assert np.array_equal(compile_template(template, function=double, CONSTANT=1)(np.arange(3)), [1, 3, 5])
