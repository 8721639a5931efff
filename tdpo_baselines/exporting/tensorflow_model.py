"""The policy as a SavedModel or a TensorFlow Lite model: `observation` [batch, O] to `action` [batch, A]."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..common.networks import tf_mlp
from ..common.parallel.tensorflow_setup import load_tensorflow
from .controller import Controller


def make_module(controller: Controller) -> Any:
    """Return a tf.Module with the compiled function `act`; theta is its variable."""
    tf, policy = load_tensorflow(), controller.policy
    kind = tf.as_dtype(controller.dtype)
    module = tf.Module()
    module.theta = tf.Variable(policy.theta, dtype=kind, trainable=False)

    def act(observation):
        actions = tf_mlp.apply(module.theta, observation, policy.sizes, policy.style)
        return {
            "action": tf.minimum(tf.maximum(actions, tf.constant(policy.low, kind)), tf.constant(policy.high, kind))
        }

    signature = [tf.TensorSpec([None, policy.sizes[0]], kind, name="observation")]
    module.act = tf.function(act, input_signature=signature, autograph=False)
    return module


def write_saved_model(folder: Path, controller: Controller) -> None:
    """Write the folder NAME with the signature serving_default."""
    module = make_module(controller)
    with _silence():
        load_tensorflow().saved_model.save(
            module, str(folder / controller.name), signatures={"serving_default": module.act.get_concrete_function()}
        )


def write_tflite(folder: Path, controller: Controller) -> None:
    """Write NAME.tflite."""
    tf, module = load_tensorflow(), make_module(controller)
    with _silence():
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.act.get_concrete_function()], module)
        (folder / f"{controller.name}.tflite").write_bytes(converter.convert())


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop TensorFlow's notes on the standard error, some of which its C++ part prints."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
