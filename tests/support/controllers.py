"""Controllers to export, and compiled C code that runs them."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.exporting import c_code
from tdpo_baselines.exporting.controller import Controller, SafetySteps
from tdpo_baselines.exporting.policy import Policy

LINEAR, SQUASHED = (
    mlp.Style(centre=(1.0, -2.0), scale=(3.0, 0.5), has_linear_part=True),
    mlp.Style("relu", True, (0.5, 0.0), (2.0, 40.0)),
)
NETWORKS = {  # every style that an algorithm of the package uses: sizes, style
    "tdpo-paper": ((4, 64, 64, 2), mlp.PLAIN),
    "tdpo-adaptive": ((4, 64, 64, 2), LINEAR),
    "td3": ((5, 40, 17, 2), SQUASHED),
    "ddpg-tanh": ((3, 9, 2), SQUASHED._replace(hidden="tanh")),
    "ddpg-linear-output": ((3, 8, 7, 2), SQUASHED._replace(is_squashed=False)),
    "ars-and-cma": ((17, 2), LINEAR._replace(has_linear_part=False)),
    "wide-output": ((6, 5, 11), mlp.PLAIN),
}
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
DRIVER = """#include "policy.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    policy_real observation[POLICY_NUM_OBSERVATIONS], action[POLICY_NUM_ACTIONS] = {0};
    policy_state state;
    (void)argv;
    policy_reset(&state, action);
    while (fread(observation, sizeof observation, 1, stdin) == 1) {
        if (argc > 1)
            policy_step(&state, observation, action);
        else
            policy_act(observation, action);
        fwrite(action, sizeof action, 1, stdout);
    }
    return 0;
}
"""


def make_controller(
    network: str = "tdpo-adaptive", *, gain: float = 1.0, limit: float = np.inf, **fields
) -> Controller:
    """Return a controller of random parameters, multiplied by `gain`."""
    sizes, style = NETWORKS[network]
    rng = np.random.default_rng(3)
    theta = gain * rng.standard_normal(mlp.num_parameters(sizes, style)) / 2
    limits = np.full(sizes[-1], limit)
    defaults = {
        "policy": Policy(sizes, style, theta, -limits, limits),
        "steps": SafetySteps(),
        "observations": rng.standard_normal((100, sizes[0])),
        "name": "policy",
        "precision": "double",
        "title": "policy of a test",
        "config": "{}",
        "iteration": 7,
    }
    return Controller(**{**defaults, **fields})


def compile_c(source: Path, *options: str) -> Path:
    """Compile a C program with strict warnings; return its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = source.with_suffix("")
    done = subprocess.run(
        [compiler, *STRICT, *options, str(source), "-o", str(program), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


def run_c(controller: Controller, observations: np.ndarray, folder: Path, *options: str, use_step: bool = False):
    """Return the actions [R, A] of the compiled controller; with `use_step` those with the safety options."""
    c_code.write(folder, controller)
    (folder / "driver.c").write_text(DRIVER)
    program = compile_c(folder / "driver.c", *options)
    rows = observations.astype(controller.dtype).tobytes()
    done = subprocess.run([str(program), *["step"] * use_step], input=rows, capture_output=True, check=True)
    return np.frombuffer(done.stdout, controller.dtype).reshape(len(observations), -1)
