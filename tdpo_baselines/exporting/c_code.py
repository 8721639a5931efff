"""The controller as one C99 header, and a C program that checks it against the simulation.

The templates policy.h, tanh.h and check.c are beside this file. Arithmetic is that of `common/networks/mlp.py` and
`simd.py`, operation by operation, so double precision gives the same bits.
"""

from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from .controller import Controller, SafetySteps
from .policy import Policy

NUM_ROWS = 32  # of the check, from an episode; as many again ten times as large
NUMBERS_PER_LINE = 5
PRECISIONS = {
    "double": {
        "f": "", "bits": "uint64_t", "mantissa_bits": 52, "round": "6755399441055744.0",
        "ln2_high": "0.6931471803691238", "ln2_low": "1.9082149292705877e-10",
    },
    "float": {
        "f": "f", "bits": "uint32_t", "mantissa_bits": 23, "round": "12582912.0f",
        "ln2_high": "0.693359375f", "ln2_low": "(-2.12194440e-4f)",
    },
}  # fmt: skip


def write(folder: Path, controller: Controller) -> None:
    """Write NAME.h and NAME_check.c."""
    name, words = controller.name, header_words(controller)
    (folder / f"{name}.h").write_text(fill("policy.h", words))
    (folder / f"{name}_check.c").write_text(fill("check.c", words | check_words(controller)))


def header_words(controller: Controller) -> dict[str, Any]:
    """Return what replaces the names in policy.h."""
    policy, name, dtype, steps = controller.policy, controller.name, controller.dtype, controller.steps
    own: dict[str, Any] = {"name": name, "NAME": name.upper(), "real": controller.precision, "title": controller.title}
    own |= PRECISIONS[controller.precision]
    uses_tanh = policy.style.is_squashed or (policy.style.hidden == "tanh" and len(policy.sizes) > 2)
    return own | {
        "num_observations": policy.sizes[0],
        "num_actions": policy.sizes[-1],
        "sha256": policy.sha256,
        "arrays": _arrays(policy, name, dtype, steps),
        "functions": fill("tanh.h", own) if uses_tanh else "",
        "act": _act_body(policy, name),
        "step": _step_body(policy, name, dtype, steps),
        "clip_action": _limited(policy, name, "action[j]"),
    }


def check_words(controller: Controller) -> dict[str, Any]:
    """Return what replaces the names in check.c. Rounding errors in single precision give the tolerances."""
    rows, dtype = check_rows(controller.observations), controller.dtype
    exact, single = expected_actions(controller, rows)
    error = max(np.abs(single - exact).max(), np.finfo(np.float32).eps * np.abs(exact).max())
    is_single = controller.precision == "float"
    return {
        "num_rows": len(rows),
        "tolerance": f"{10 * error if is_single else 0:.2e}",
        "tolerance_without_fma": f"{10 * error if is_single else 1e-6 * error:.2e}",
        "observations": _table(rows, dtype),
        "expected": _table(exact, dtype),
    }


def check_rows(observations: np.ndarray) -> np.ndarray:
    """Return rows evenly spaced over an episode, and rows ten times as large, where units saturate."""
    rows = observations[np.linspace(0, len(observations) - 1, NUM_ROWS).round().astype(int)]
    return np.concatenate([rows, 10 * rows])


def expected_actions(controller: Controller, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the actions [R, 2, A] of policy and controller, exact and in single precision."""
    policy, first = controller.policy, np.zeros(controller.policy.sizes[-1])
    exact, single = (
        np.stack([actions, controller.run(actions, first)], axis=1)
        for actions in (policy.act(rows), policy.act_in_single_precision(rows))
    )
    return exact, single


def fill(template: str, words: dict[str, Any]) -> str:
    return Template((Path(__file__).parent / template).read_text()).substitute(words)


def _arrays(policy: Policy, name: str, dtype: type, steps: SafetySteps) -> str:
    """Return the constants of the network, its limits and the rate limit."""
    arrays: dict[str, np.ndarray | None] = {}
    for number, (weights, biases) in enumerate(policy.layers):
        arrays |= {f"weights_{number}": weights, f"biases_{number}": biases}
    arrays["linear"] = policy.linear
    if policy.is_scaled:
        arrays |= {"centre": policy.centre, "scale": policy.scale}
    if _is_limited(policy):
        arrays |= {"low": policy.low, "high": policy.high}
    arrays["max_step"] = steps.max_step
    lines = []
    for key, values in arrays.items():
        if values is not None:
            shape = " * ".join(map(str, values.shape))
            numbers = [_number(value, dtype) + "," for value in values.ravel()]
            rows = [" ".join(numbers[i : i + NUMBERS_PER_LINE]) for i in range(0, len(numbers), NUMBERS_PER_LINE)]
            lines.append(f"static const {name}_real {name}_{key}[{shape}] = {{\n{_indent(rows, 4)}\n}};\n")
    return "".join(lines)


def _act_body(policy: Policy, name: str) -> str:
    """Return the statements of NAME_act."""
    sizes, num = policy.sizes, f"{name.upper()}_NUM_ACTIONS"
    inputs = ["observation", *(f"hidden_{k}" for k in range(len(sizes) - 2)), "action"]
    lines = [f"{name}_real hidden_{k}[{size}];" for k, size in enumerate(sizes[1:-1])]
    lines += ["int i, j;"] if policy.linear is not None else ["int j;"] if _needs_index(policy) else []
    activation = {"tanh": "{name}_tanh({x})", "relu": "{x} < 0 ? 0 : {x}"}[policy.style.hidden]
    for k, (n, m) in enumerate(zip(sizes, sizes[1:])):
        lines.append(f"{name}_affine({name}_weights_{k}, {name}_biases_{k}, {n}, {m}, {inputs[k]}, {inputs[k + 1]});")
        if k < len(sizes) - 2:
            x = f"hidden_{k}[j]"
            lines += [f"for (j = 0; j < {m}; j++)", f"    {x} = {activation.format(name=name, x=x)};"]
    each = f"for (j = 0; j < {num}; j++)"
    if policy.linear is not None:
        lines += [each, f"    for (i = 0; i < {name.upper()}_NUM_OBSERVATIONS; i++)"]
        lines += [f"        action[j] = action[j] + {name}_linear[i * {num} + j] * observation[i];"]
    if policy.is_scaled:
        output = f"{name}_tanh(action[j])" if policy.style.is_squashed else "action[j]"
        lines += [each, f"    action[j] = {name}_centre[j] + {name}_scale[j] * {output};"]
    if _is_limited(policy):
        lines += [each, f"    action[j] = {_limited(policy, name, 'action[j]')};"]
    return _indent(lines, 4)


def _step_body(policy: Policy, name: str, dtype: type, steps: SafetySteps) -> str:
    """Return the statements of NAME_step for one action x."""
    lines = []
    if steps.gain is not None:
        gain = _number(steps.gain, dtype)
        lines += [f"state->filtered[j] = state->filtered[j] + {gain} * (x - state->filtered[j]);"]
        lines += ["x = state->filtered[j];"]
    if steps.max_step is not None:
        lines += [f"x = {name}_clip(x, state->last[j] - {name}_max_step[j], state->last[j] + {name}_max_step[j]);"]
    return _indent([*lines, f"state->last[j] = {_limited(policy, name, 'x')};"], 12)


def _needs_index(policy: Policy) -> bool:
    return len(policy.sizes) > 2 or policy.is_scaled or _is_limited(policy)


def _is_limited(policy: Policy) -> bool:
    return bool(np.isfinite([policy.low, policy.high]).any())


def _limited(policy: Policy, name: str, x: str) -> str:
    return f"{name}_clip({x}, {name}_low[j], {name}_high[j])" if _is_limited(policy) else x


def _indent(lines: Iterable[str], width: int) -> str:
    return "\n".join(" " * width + line for line in lines)


def _number(value: float, dtype: type) -> str:
    """Return the shortest decimal number that is rounded to exactly this value."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = str(dtype(value))
    return text + ("f" if dtype is np.float32 else "")


def _table(rows: np.ndarray, dtype: type) -> str:
    """Return rows [R, ...] as nested initialisers, a line per row."""

    def nest(values: np.ndarray) -> str:
        parts = [nest(part) for part in values] if values.ndim > 1 else [_number(value, dtype) for value in values]
        return "{" + ", ".join(parts) + "}"

    return ",\n".join("    " + nest(row) for row in rows)
