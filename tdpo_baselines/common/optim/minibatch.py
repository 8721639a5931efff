"""Adam on minibatches of rows that all ranks hold.

A minibatch of one block of rows is not worth a message: rank 0 takes all steps in one compiled loop and broadcasts
the result. A larger one is cut into blocks that the ranks share, with a sum over the ranks per step. The minibatch
size alone decides between the two, so a run is the same on any number of ranks. Gradients are float32.

Shapes: R rows of D columns, M rows of a minibatch, P parameters.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..parallel.comm import Comm
from ..parallel.execution import ROWS_PER_BLOCK, load_tensorflow_where_needed
from ..parallel.tensorflow_setup import load_tensorflow
from .adam import Adam

Loss = Callable[[Any, Any, Any], Any]
"""loss(theta [P], rows [R, D], decay) -> loss of each row [R], in TensorFlow"""


class MinibatchAdam:
    """Minimiser of the mean of a loss over rows."""

    def __init__(self, loss: Loss, minibatch_size: int, comm: Comm, *, max_norm: float | None, epsilon: float):
        """Clip gradients to `max_norm`, if any; `epsilon` is Adam's."""
        self._loss, self._size, self._comm = loss, minibatch_size, comm
        self._max_norm, self._epsilon = max_norm, epsilon
        self._num_blocks = -(-minibatch_size // ROWS_PER_BLOCK)
        self._mine = comm.share(self._num_blocks)
        has_work = comm.rank == 0 if self._num_blocks == 1 else self._mine.start < self._mine.stop
        load_tensorflow_where_needed(comm, is_needed=has_work)
        self._compiled: Any = None

    def minimise(
        self, theta: np.ndarray, adam: Adam, rows: np.ndarray, *, num_epochs: int, rng, learning_rate: float, decay=1.0
    ) -> tuple[np.ndarray, Adam, float]:
        """Return parameters and moments after `num_epochs` passes over rows [R, D], and the mean loss on the way.

        Every pass takes the rows in a new order and leaves out those that do not fill a minibatch. `decay` multiplies
        the learning rate and is passed to the loss.
        """
        num = len(rows) // self._size * self._size
        order = np.concatenate([rng.permutation(len(rows))[:num] for _ in range(num_epochs)])
        order = order.reshape(-1, self._size).astype(np.int32)  # [steps, M]
        settings = np.array([learning_rate * decay, decay], np.float32)
        rows = rows.astype(np.float32)
        if self._num_blocks == 1:
            return self._comm.on_root(lambda: self._step_solo(theta, adam, rows, order, settings))
        return self._step_shared(theta, adam, rows, order, settings)

    def _step_solo(self, theta, adam, rows, order, settings) -> tuple[np.ndarray, Adam, float]:
        """Take all steps in one compiled call."""
        self._compiled = self._compiled or compile_loop(self._loss, self._max_norm, self._epsilon)
        tensors = map(load_tensorflow().constant, [np.asarray(v, np.float32) for v in (theta, *adam)])
        results = self._compiled(*tensors, rows, order, settings)
        theta, *moments, loss = (value.numpy().astype(np.float64) for value in results)
        return theta, Adam(*moments), float(loss)

    def _step_shared(self, theta, adam, rows, order, settings) -> tuple[np.ndarray, Adam, float]:
        """Take one step at a time, with gradients of blocks summed over the ranks."""
        mine, size = self._mine, self._size
        if self._compiled is None and mine.start < mine.stop:
            self._compiled = compile_block(self._loss)
        weights = np.zeros(self._num_blocks * ROWS_PER_BLOCK, np.float32)
        weights[:size] = 1 / size
        losses = []
        for chosen in order:
            blocks = np.zeros((len(weights), rows.shape[1]), np.float32)
            blocks[:size] = rows[chosen]
            parts = np.zeros((mine.stop - mine.start, 1 + len(theta)))
            for part, block in zip(parts, range(mine.start, mine.stop)):
                here = slice(block * ROWS_PER_BLOCK, (block + 1) * ROWS_PER_BLOCK)
                part[:] = self._compiled(np.float32(theta), blocks[here], weights[here], settings).numpy()
            total = self._comm.sum(parts, self._num_blocks)
            losses.append(total[0])
            gradient = clip_by_norm(total[1:], self._max_norm)
            adam, change = adam.step(gradient, learning_rate=settings[0], epsilon=self._epsilon)
            theta = theta - change
        return theta, adam, float(np.mean(losses))


def clip_by_norm(gradient: np.ndarray, max_norm: float | None) -> np.ndarray:
    """Clip a vector to norm `max_norm`, if any."""
    return gradient if max_norm is None else gradient * (max_norm / max(float(np.linalg.norm(gradient)), max_norm))


def compile_loop(loss: Loss, max_norm: float | None, epsilon: float):
    """Compile all steps into one call: (theta, *moments, rows, order, settings) -> theta, *moments, mean loss."""
    tf = load_tensorflow()

    def loop(theta, mean, square, count, rows, order, settings):
        def body(i, theta, mean, square, count, total):
            with tf.GradientTape() as tape:
                tape.watch(theta)
                value = tf.reduce_mean(loss(theta, tf.gather(rows, order[i]), settings[1]))
            gradient = tape.gradient(value, theta)
            gradient = gradient if max_norm is None else tf.clip_by_norm(gradient, max_norm)
            adam, change = Adam(mean, square, count).step(gradient, learning_rate=settings[0], epsilon=epsilon)
            return i + 1, theta - change, *adam, total + value

        first = (0, theta, mean, square, count, tf.constant(0.0))
        _, *rest, total = tf.while_loop(lambda i, *_: i < order.shape[0], body, first)
        return *rest, total / order.shape[0]

    return tf.function(loop, jit_compile=True, autograph=False)


def compile_block(loss: Loss):
    """Compile (theta, rows, weights, settings) -> [1 + P], the weighted loss of a block and its gradient."""
    tf = load_tensorflow()

    def block(theta, rows, weights, settings):
        with tf.GradientTape() as tape:
            tape.watch(theta)
            value = tf.reduce_sum(weights * loss(theta, rows, settings[1]))
        return tf.concat([value[None], tape.gradient(value, theta)], axis=0)

    return tf.function(block, jit_compile=True, autograph=False)
