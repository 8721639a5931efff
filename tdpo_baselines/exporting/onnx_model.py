"""The policy as an ONNX model: input `observation` [batch, O], output `action` [batch, A]."""

from pathlib import Path
from typing import Any

import numpy as np

from .controller import Controller
from .policy import Policy

OPSET, IR_VERSION = 17, 8  # of 2022: runtimes on robots are seldom new


def write(folder: Path, controller: Controller) -> None:
    """Write NAME.onnx; raise ValueError if the package onnx is missing."""
    try:
        import onnx
    except ImportError as error:
        raise ValueError('--format onnx needs the package onnx; run pip install ".[export]"') from error
    helper, dtype, policy = onnx.helper, controller.dtype, controller.policy
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    operations, constants = list_operations(policy)
    graph = helper.make_graph(
        [helper.make_node(operation, inputs, [output]) for operation, inputs, output in operations],
        controller.name,
        [helper.make_tensor_value_info("observation", kind, ["batch", policy.sizes[0]])],
        [helper.make_tensor_value_info("action", kind, ["batch", policy.sizes[-1]])],
        [onnx.numpy_helper.from_array(values.astype(dtype), key) for key, values in constants.items()],
        doc_string=controller.title,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, {"parameters_sha256": policy.sha256})
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / f"{controller.name}.onnx"))


def list_operations(policy: Policy) -> tuple[list[tuple[str, list[str], str]], dict[str, np.ndarray]]:
    """Return the operations (name, inputs, output) from `observation` to `action`, and the constants they use."""
    operations: list[tuple[str, list[str], str]] = []
    constants: dict[str, np.ndarray] = {}

    def add(operation: str, inputs: list[str], **own: Any) -> str:
        constants.update(own)
        operations.append((operation, [*inputs, *own], f"value_{len(operations)}"))
        return operations[-1][2]

    x, last = "observation", len(policy.layers) - 1
    for k, (weights, biases) in enumerate(policy.layers):
        x = add("MatMul", [x], **{f"weights_{k}": weights})
        x = add("Add", [x], **{f"biases_{k}": biases})
        if k < last:
            x = add({"tanh": "Tanh", "relu": "Relu"}[policy.style.hidden], [x])
    if policy.linear is not None:
        x = add("Add", [x, add("MatMul", ["observation"], linear=policy.linear)])
    x = add("Tanh", [x]) if policy.style.is_squashed else x
    x = add("Add", [add("Mul", [x], scale=policy.scale)], centre=policy.centre)
    add("Min", [add("Max", [x], low=policy.low)], high=policy.high)
    operations[-1] = (*operations[-1][:2], "action")
    return operations, constants
