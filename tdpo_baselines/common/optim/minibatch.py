"""Adam on minibatches of rows that all ranks hold.

A minibatch of one block of rows is not worth a message: rank 0 takes all steps in one compiled loop and broadcasts
the result. A larger one is cut into blocks that the ranks share, with a sum over the ranks per step. The minibatch
size alone decides between the two, so a run is the same on any number of ranks. Gradients, parameters and moments are
float32.

Shapes: R rows of D columns, M rows of a minibatch, P parameters.
"""

from typing import Any

import numpy as np
from numba import njit

from ..networks.templates import compile_template
from ..parallel.comm import Comm
from ..parallel.execution import ROWS_PER_BLOCK
from .adam import Adam, descend


class MinibatchAdam:
    """Minimiser of the mean of a loss over rows.

    The compiled `differentiate(theta, rows, decay, problem, gradient)` writes the gradient of the mean of the loss over
    rows [R, D] and returns the mean. `problem` is what else it needs: an array, or a tuple of arrays and numbers.
    """

    def __init__(self, differentiate, problem: Any, size: int, comm: Comm, *, max_norm: float | None, epsilon: float):
        """Clip gradients to `max_norm`, if any; `epsilon` is Adam's."""
        self._problem, self._size, self._comm = problem, size, comm
        self._max_norm, self._epsilon = np.inf if max_norm is None else max_norm, epsilon
        self._num_blocks = -(-size // ROWS_PER_BLOCK)
        mine = comm.share(self._num_blocks)
        self._mine, self._is_compiled = range(mine.start, mine.stop), False
        self._loop = compile_template(take_steps, differentiate=differentiate)
        self._differentiate = compile_template(differentiate)

    def minimise(
        self, theta: np.ndarray, adam: Adam, rows: np.ndarray, *, num_epochs: int, rng, learning_rate: float, decay=1.0
    ) -> tuple[np.ndarray, Adam, float]:
        """Return parameters and moments after `num_epochs` passes over rows [R, D], and the mean loss on the way.

        Every pass takes the rows in a new order and leaves out those that do not fill a minibatch. `decay` multiplies
        the learning rate and is passed to the loss.
        """
        num = len(rows) // self._size * self._size
        order = np.concatenate([rng.permutation(len(rows))[:num] for _ in range(num_epochs)])
        order = order.reshape(-1, self._size)  # [steps, M]
        state = [np.array(vector, np.float32) for vector in (theta, adam.mean, adam.square)]
        numbers = float(adam.count), learning_rate * decay, float(decay), self._max_norm, self._epsilon
        arguments = *state, rows.astype(np.float32), order, numbers
        if not self._is_compiled:
            self._compile(*arguments)
        if self._num_blocks == 1:
            *state, loss = self._comm.on_root(lambda: (*state, self._loop(*arguments, self._problem)))
        else:
            loss = self._step_shared(*arguments)
        theta, mean, square = (vector.astype(np.float64) for vector in state)
        return theta, Adam(mean, square, adam.count + len(order)), loss

    def _compile(self, theta, mean, square, rows, order, numbers) -> None:
        """Compile, or load compiled code, on the ranks that need it: take no steps, or a gradient of one row."""

        def call() -> None:
            if self._num_blocks == 1:
                self._loop(theta, mean, square, rows, order[:0], numbers, self._problem)
            else:
                self._differentiate(theta, rows[:1], 1.0, self._problem, np.empty_like(theta))

        self._comm.warm_up(call, is_needed=self._comm.rank == 0 if self._num_blocks == 1 else len(self._mine) > 0)
        self._is_compiled = True

    def _step_shared(self, theta, mean, square, rows, order, numbers) -> float:
        """Take one step at a time, in place, with gradients of blocks summed over the ranks; return the mean loss."""
        count, learning_rate, decay, max_norm, epsilon = numbers
        losses = np.zeros(len(order))
        for i, chosen in enumerate(order):
            parts = np.zeros((len(self._mine), 1 + len(theta)))
            for part, block in zip(parts, self._mine):
                inside = chosen[block * ROWS_PER_BLOCK : (block + 1) * ROWS_PER_BLOCK]
                gradient = np.empty_like(theta)
                loss = self._differentiate(theta, rows[inside], decay, self._problem, gradient)
                part[:] = np.append(loss, gradient) * (len(inside) / self._size)
            losses[i], *_ = total = self._comm.sum(parts, self._num_blocks)
            gradient = total[1:].astype(np.float32)
            clip_by_norm(gradient, max_norm)
            descend(theta, mean, square, gradient, count + i + 1, learning_rate, epsilon)
        return float(losses.mean())


def take_steps(theta, mean, square, rows, order, numbers, problem):
    """Take all steps, in place; return the mean loss."""
    count, learning_rate, decay, max_norm, epsilon = numbers
    gradient, minibatch, total = np.empty_like(theta), np.empty((order.shape[1], rows.shape[1]), np.float32), 0.0
    for i in range(order.shape[0]):
        for m in range(order.shape[1]):
            minibatch[m] = rows[order[i, m]]
        total += differentiate(theta, minibatch, decay, problem, gradient)  # noqa: F821 (bound by the template)
        clip_by_norm(gradient, max_norm)
        descend(theta, mean, square, gradient, count + i + 1, learning_rate, epsilon)
    return total / order.shape[0]


@njit(error_model="numpy")
def clip_by_norm(gradient, max_norm):
    """Clip a vector to norm `max_norm`, in place. Sums of 64 parts keep the order of terms on every processor."""
    if max_norm == np.inf:
        return
    whole = gradient.size - gradient.size % 64
    parts, sums, rest = gradient[:whole].reshape(-1, 64), np.zeros(64, np.float32), gradient[whole:].astype(np.float64)
    for i in range(parts.shape[0]):
        for j in range(64):
            sums[j] += parts[i, j] * parts[i, j]
    norm = np.sqrt(np.sum(sums.astype(np.float64)) + np.sum(rest * rest))
    if norm > max_norm:
        gradient *= np.float32(max_norm / norm)
