import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
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


def both(x):
    return first(x) - second(x)


def add_scaled(x, y):
    return x * SCALE + y


def test_constants_and_functions_are_bound():
    assert compile_template(template, function=double, CONSTANT=1)(5) == 11
    assert compile_template(template, function=triple, CONSTANT=1)(5) == 16
    assert compile_template(template, function=triple, CONSTANT=2)(5) == 17


def test_functions_are_told_apart_by_where_they_are_bound():
    assert compile_template(both, first=double, second=triple)(5) == -5
    assert compile_template(both, first=triple, second=double)(5) == 5


def test_numbers_that_print_alike_are_told_apart():
    ones = np.ones(2000)
    other = np.where(np.arange(2000) == 1000, 2.0, 1.0)
    for scale in (1, 1.0, np.nextafter(1.0, 2.0), True, ones, other):
        result = compile_template(add_scaled, SCALE=scale)(np.ones(2000), 0.0)
        assert np.array_equal(result, np.ones(2000) * scale)


def test_closures_keep_their_values():
    def make(scale):
        return lambda x: scale * x

    assert [compile_template(make(scale))(2.0) for scale in (3.0, 4.0)] == [6.0, 8.0]


def test_functions_without_a_file_are_told_apart_by_their_code():
    results = []
    for number in (1, 2):
        names = {"__name__": "typed"}
        exec(compile(f"def typed(x):\n    return x + {number}\n", "<typed>", "exec"), names)
        results.append(compile_template(names["typed"])(5))
    assert results == [6, 7]


def test_the_same_binding_is_compiled_once():
    first = compile_template(template, function=double, CONSTANT=7)
    assert compile_template(template, function=double, CONSTANT=7) is first


def test_numba_function_keeps_its_options():
    compiled = compile_template(njit(forceinline=True)(add_scaled), SCALE=2)
    assert compiled.targetoptions["forceinline"] and compiled.targetoptions["error_model"] == "numpy"
    assert compiled(3, 4) == 10


def test_division_by_zero_is_infinite_as_in_numpy():
    def divide(x, y):
        return x / y

    assert compile_template(divide)(1.0, 0.0) == np.inf


def test_templates_accept_arrays():
    assert np.array_equal(compile_template(template, function=double, CONSTANT=1)(np.arange(3)), [1, 3, 5])


FILES = {
    "numbers_here.py": "FACTOR = 2.0\n",
    "deep.py": "from numba import njit\nfrom numbers_here import FACTOR\n@njit\ndef scale(x):\n    return FACTOR * x\n",
    "middle.py": "import deep\nfrom numba import njit\n@njit\ndef shift(x):\n    return deep.scale(x) + 1.0\n",
    "unused.py": "OTHER = 1.0\n",
    "top.py": "import unused\nfrom numba import njit\nfrom middle import shift\n"
    "@njit\ndef step(x):\n    return shift(x) * BOUND\n",
    "main.py": "from top import step\nfrom tdpo_baselines.common.networks.templates import compile_template\n"
    "step = compile_template(step, BOUND=10.0)\n"
    "print(step(3.0), sum(step.stats.cache_hits.values()))\n",
}


@pytest.fixture
def program(tmp_path):
    """A small program over several files, which prints its result and the number of cache hits."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}

    def run() -> tuple[float, int]:
        command = [sys.executable, "-B", str(tmp_path / "main.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        result, hits = done.stdout.split()
        return float(result), int(hits)

    return SimpleNamespace(run=run, folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "result"),
    [
        ("numbers_here.py", "2.0", "3.0", 100.0),  # a number that another file imports
        pytest.param("deep.py", "FACTOR * x", "FACTOR - x", 0.0, marks=pytest.mark.slow),  # reached through a module
        pytest.param("middle.py", "1.0", "2.0", 80.0, marks=pytest.mark.slow),
        pytest.param("main.py", "BOUND=10.0", "BOUND=20.0", 140.0, marks=pytest.mark.slow),
    ],
)
def test_change_anywhere_below_is_compiled_anew(program, name, old, new, result):
    assert program.run() == (70.0, 0)
    assert program.run() == (70.0, 1)
    changed = program.folder / name
    changed.write_text(changed.read_text().replace(old, new))
    assert program.run() == (result, 0)
    assert program.run() == (result, 1)


def test_change_of_a_file_that_is_not_used_keeps_the_cache(program):
    program.run()
    (program.folder / "unused.py").write_text("OTHER = 2.0\n")
    assert program.run() == (70.0, 1)


@pytest.mark.slow
def test_environments_and_policies_come_from_the_cache_in_a_second_process(tmp_path):
    code = (
        "from numba.core import event\n"
        "from envs.action_delay import delay_actions\n"
        "from envs.leg.kernels import simple_kernel\n"
        "from envs.pendulum.nlr import nlr_kernel\n"
        "from tdpo_baselines.common.sampling.kernel_roller import KernelRoller\n"
        "with event.install_recorder('numba:compile') as recorder:\n"
        "    for kernel in (nlr_kernel(), delay_actions(nlr_kernel(), 1), simple_kernel()):\n"
        "        KernelRoller(kernel, (3,), 0.9).observe(KernelRoller(kernel, (3,), 0.9).start_states(\n"
        "            __import__('numpy').full((1, kernel.start_size), 0.5))[0])\n"
        "print(len(recorder.buffer))\n"
    )
    for name in ("envs", "tdpo_baselines"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    numbers = [
        int(subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout)
        for _ in range(2)
    ]
    assert numbers[0] > 20 and numbers[1] == 0


def test_importing_templates_loads_no_library_but_numbas_own():
    code = (
        "import sys, numba\n"
        "before = {name.partition('.')[0] for name in sys.modules}\n"
        "import tdpo_baselines.common.networks.templates\n"
        "print({name.partition('.')[0] for name in sys.modules} - before - sys.stdlib_module_names)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "{'tdpo_baselines'}\n"
