"""Compiled C code against the compiled policy of the rollouts."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from controllers import NETWORKS, compile_c, make_controller, run_c

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.exporting import c_code
from tdpo_baselines.exporting.controller import SafetySteps
from tdpo_baselines.exporting.policy import make_policy
from tdpo_baselines.options import registry

SAFE = SafetySteps(np.array([0.02, 0.3]), 0.4)


def spread(num_rows: int, width: int) -> np.ndarray:
    """Return observations of many magnitudes, zeros of both signs among them."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((num_rows, width)) * 10.0 ** rng.uniform(-12, 3, (num_rows, 1))
    rows[:2] = [[0.0], [-0.0]]
    return rows


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and first.tobytes() == second.tobytes()


@pytest.mark.parametrize("options", [("-O0",), ("-O3", "-march=native")])
@pytest.mark.parametrize("network", NETWORKS)
def test_double_precision_has_the_bits_of_the_compiled_policy(network, options, tmp_path):
    controller = make_controller(network)
    rows = spread(2000, controller.policy.sizes[0])
    expected = mlp.Forward(controller.policy.sizes, controller.policy.style)(controller.policy.theta, rows)
    assert np.isfinite(expected).all() and same_bits(run_c(controller, rows, tmp_path, *options), expected)


@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O3", "-march=native")])
@pytest.mark.parametrize(("algorithm", "size"), [("tdpo", 0.3), ("td3", 0.2)])
def test_double_precision_repeats_an_episode_of_the_leg_to_the_bit(algorithm, size, options, tmp_path):
    environment = registry.make_environment("leg", registry.resolve_options("leg", {}))
    config = registry.algorithm(algorithm).Config.from_values({"hidden_sizes": [32, 32]} if algorithm == "td3" else {})
    roller = registry.make_roller(environment, config)
    theta = size * np.random.default_rng(1).standard_normal(roller.num_parameters)
    rollouts = roller.rollouts(theta, roller.start_states(np.zeros((1, 0))))
    observations, actions = rollouts.observations[0], rollouts.actions[0]
    assert len(actions) == 8000 and len(np.unique(actions[:, 0])) > 7000  # the leg moves all the time
    controller = make_controller(policy=make_policy(theta, roller))
    assert same_bits(run_c(controller, observations, tmp_path, *options), actions)
    assert same_bits(run_c(controller, observations, tmp_path, *options, use_step=True), actions)


@pytest.mark.parametrize("network", NETWORKS)
def test_limits_are_those_of_the_environment(network, tmp_path):
    controller = make_controller(network, limit=0.75)
    rows = spread(500, controller.policy.sizes[0])
    actions = run_c(controller, rows, tmp_path)
    assert same_bits(actions, controller.policy.act(rows)) and np.abs(actions).max() == 0.75


@pytest.mark.parametrize("precision", ["double", "float"])
def test_one_action_may_be_limited_and_another_not(precision, tmp_path):
    controller = make_controller(precision=precision)
    controller.policy.low[:], controller.policy.high[:] = (-np.inf, 0.25), (np.inf, 0.5)
    actions = run_c(controller, spread(500, 4), tmp_path)
    assert np.abs(actions[:, 0]).max() > 10 and actions[:, 1].min() == 0.25 and actions[:, 1].max() == 0.5


@pytest.mark.parametrize("network", NETWORKS)
def test_single_precision_is_as_exact_as_single_precision_can_be(network, tmp_path):
    controller = make_controller(network, precision="float")
    rows = np.random.default_rng(5).standard_normal((2000, controller.policy.sizes[0]))
    exact = controller.policy.act(rows)
    numpy_error = np.abs(controller.policy.act_in_single_precision(rows) - exact).max()
    found = run_c(controller, rows, tmp_path, "-O2", "-Wdouble-promotion")
    assert found.dtype == np.float32 and np.abs(found - exact).max() < 2 * numpy_error


def test_tanh_in_single_precision_is_exact_to_three_units_in_the_last_place(tmp_path):
    c_code.write(tmp_path, make_controller("ddpg-tanh", precision="float"))
    (tmp_path / "sweep.c").write_text(
        '#include "policy.h"\n#include <stdio.h>\n'
        "int main(void)\n{\n    uint32_t bits;\n    double worst = 0;\n"
        "    for (bits = 0; bits < 0x7f800000u; bits += 997) {\n        float x;\n        double exact, unit;\n"
        "        memcpy(&x, &bits, sizeof x);\n        exact = tanh(x);\n"
        "        unit = fmax(ldexp(1.0, ilogb(exact) - 23), 1e-45);\n"
        "        if (exact > 0)\n            worst = fmax(worst, fabs(policy_tanh(x) - exact) / unit);\n"
        "        if (policy_tanh(-x) != -policy_tanh(x))\n            return 1;\n    }\n"
        '    printf("%g", worst);\n    return 0;\n}\n'
    )
    program = compile_c(tmp_path / "sweep.c", "-O2")
    assert 0 < float(subprocess.run([program], check=True, capture_output=True).stdout) < 3


@pytest.mark.parametrize("steps", [SAFE, SAFE._replace(gain=None), SAFE._replace(max_step=None)])
@pytest.mark.parametrize("limit", [np.inf, 1.5])
def test_safety_options_have_the_bits_of_the_reference(steps, limit, tmp_path):
    controller = make_controller(limit=limit, steps=steps)
    rows = spread(500, 4)
    expected = controller.run(controller.policy.act(rows), np.zeros(2))
    assert same_bits(run_c(controller, rows, tmp_path, use_step=True), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_last_action_is_held_while_an_observation_is_not_finite(bad, tmp_path):
    controller = make_controller("ddpg-tanh", steps=SAFE)
    rows = np.random.default_rng(1).standard_normal((20, 3))
    rows[8:12, 1] = bad
    actions = run_c(controller, rows, tmp_path, use_step=True)
    assert np.array_equal(actions[8:12], np.repeat(actions[7:8], 4, axis=0))
    assert same_bits(np.delete(actions, range(8, 12), axis=0),
                     run_c(controller, np.delete(rows, range(8, 12), axis=0), tmp_path, use_step=True))  # fmt: skip


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("options", [("-O2",), ("-O2", "-DPOLICY_NO_FMA")])
@pytest.mark.parametrize("network", NETWORKS)
def test_check_passes_and_finds_a_changed_weight(network, options, precision, tmp_path):
    steps = SafetySteps(None, 0.4)
    controller = make_controller(network, gain=0.5, precision=precision, steps=steps)
    c_code.write(tmp_path, controller)
    program = compile_c(tmp_path / "policy_check.c", *options)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0 and "64 observations" in done.stdout and "passed" in done.stdout
    theta = controller.policy.theta.copy()
    theta[-1] *= 1.01
    changed = replace(controller, policy=replace(controller.policy, theta=theta))
    (tmp_path / "policy.h").write_text(c_code.fill("policy.h", c_code.header_words(changed)))
    done = subprocess.run([compile_c(tmp_path / "policy_check.c", *options)], capture_output=True, text=True)
    assert done.returncode == 1 and "FAILED" in done.stdout


def test_header_is_valid_cpp_too(tmp_path):
    c_code.write(tmp_path, make_controller(limit=2.0, steps=SAFE))
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    command = [compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off", "-x", "c++"]
    subprocess.run([*command, str(tmp_path / "policy_check.c"), "-o", str(tmp_path / "check")], check=True)
    subprocess.run([tmp_path / "check"], check=True)


def test_two_controllers_fit_into_one_program(tmp_path):
    for name in ("left", "right_2"):
        c_code.write(tmp_path, make_controller(name=name))
    (tmp_path / "both.c").write_text(
        '#include "left.h"\n#include "right_2.h"\n'
        "int main(void)\n{\n    double observation[4] = {1, 2, 3, 4}, a[2], b[2];\n"
        "    left_act(observation, a);\n    right_2_act(observation, b);\n    return a[0] != b[0];\n}\n"
    )
    assert subprocess.run([compile_c(tmp_path / "both.c")]).returncode == 0
