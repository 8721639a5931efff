"""Closed-loop rollouts of a compiled environment, policy included, in compiled code.

Every kind of rollout is one function: the policy's action plus an offset that the caller supplies,
from a state that the caller supplies. Two rollouts differ only by what was put in.
"""

import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import numpy as np
from numba import njit

from . import mlp


@dataclass
class Rollouts:
    """B rollouts. Per-step arrays hold the first R steps, R as asked for; rows past `lengths` are zero."""

    observations: np.ndarray  # [B, R, O]
    actions: np.ndarray  # [B, R, A] as executed
    rewards: np.ndarray  # [B, R]
    returns: np.ndarray  # [B] discounted from the rollout's own first step, all steps
    lengths: np.ndarray  # [B]
    saved_states: np.ndarray  # [B, K, S] before the steps asked for
    final_states: np.ndarray  # [B, S]


def _rollouts(params, theta, sizes, states, num_steps, offsets, gamma, save_steps, out):
    """Roll `states` [B, S] forward in place; see `KernelRoller.rollouts`.

    This is a template: `observe`, `step` and `act` are bound when it is compiled for a kernel.
    """
    observations, actions, rewards, returns, lengths, saved_states = out
    num_recorded, observation_size, action_size = observations.shape[1], observations.shape[2], actions.shape[2]
    observation, action = np.empty(observation_size), np.empty(action_size)
    scratch = np.empty((3, sizes.max()))
    for b in range(states.shape[0]):
        state = states[b]
        total, discount, save = 0.0, 1.0, 0
        for t in range(num_steps[b]):
            while save < save_steps.shape[1] and save_steps[b, save] == t:
                saved_states[b, save] = state
                save += 1
            observe(params, state, observation)  # noqa: F821
            act(theta, sizes, observation, action, scratch)  # noqa: F821
            if t < offsets.shape[1]:
                for j in range(action_size):
                    action[j] += offsets[b, t, j]
            reward, terminated = step(params, state, action)  # noqa: F821
            total += discount * reward
            discount *= gamma
            if t < num_recorded:
                observations[b, t] = observation
                actions[b, t] = action
                rewards[b, t] = reward
            lengths[b] = t + 1
            if terminated:
                break
        returns[b] = total


class KernelRoller:
    """Rolls out a kernel with an MLP policy of the given hidden layer sizes."""

    def __init__(self, kernel, hidden_sizes: tuple[int, ...], gamma: float):
        self.kernel = kernel
        self.horizon = kernel.horizon
        self.start_size = kernel.start_size
        self.layer_sizes = (kernel.observation_size, *hidden_sizes, kernel.action_size)
        self.num_parameters = mlp.num_parameters(self.layer_sizes)
        self._gamma = gamma
        self._sizes = np.array(self.layer_sizes)
        self._compiled = compile_for(kernel)
        once = self.start_states(np.full((1, kernel.start_size), 0.5))
        self.rollouts(np.zeros(self.num_parameters), once, num_steps=np.array([1]))  # compiles now

    def start_states(self, starts: np.ndarray) -> np.ndarray:
        """States [B, S] placed at points [B, U] of the unit cube."""
        states = np.zeros((len(starts), self.kernel.state_size))
        for state, start in zip(states, starts):
            self.kernel.reset(self.kernel.params, start, state)
        return states

    def rollouts(
        self,
        theta: np.ndarray,
        states: np.ndarray,
        *,
        num_steps: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
        save_steps: np.ndarray | None = None,
        num_recorded: int | None = None,
    ) -> Rollouts:
        """Roll out from `states` [B, S] for `num_steps` [B] (default: the horizon).

        `offsets` [B, D, A] are added to the first D actions; `save_steps` [B, K], ascending, are the
        steps before which states are saved; `num_recorded` limits the per-step arrays.
        """
        kernel, batch = self.kernel, len(states)
        num_steps = np.full(batch, self.horizon) if num_steps is None else num_steps
        offsets = np.zeros((batch, 0, kernel.action_size)) if offsets is None else offsets
        save_steps = np.zeros((batch, 0), dtype=np.int64) if save_steps is None else save_steps
        num_recorded = self.horizon if num_recorded is None else num_recorded
        final_states = np.array(states)
        out = (
            np.zeros((batch, num_recorded, kernel.observation_size)),
            np.zeros((batch, num_recorded, kernel.action_size)),
            np.zeros((batch, num_recorded)),
            np.zeros(batch),
            np.zeros(batch, dtype=np.int64),
            np.zeros((batch, save_steps.shape[1], kernel.state_size)),
        )
        self._compiled(
            kernel.params, theta, self._sizes, final_states, num_steps, offsets, self._gamma, save_steps, out
        )
        return Rollouts(*out, final_states)


_compiled: dict[tuple, FunctionType] = {}


def compile_for(kernel):
    """The rollout loop with the kernel's functions inlined, cached on disk between processes.

    A closure over the functions could not be cached: numba would see a new one in every process. So
    the template's code is given a namespace of its own, and a name that changes with every source
    that goes into it, because numba looks for changes only in the file of the function itself.
    """
    key = (kernel.observe, kernel.step)
    if key not in _compiled:
        sources = {Path(inspect.getfile(f.py_func)) for f in (*key, mlp.act)}
        digest = hashlib.sha256(b"".join(sorted(path.read_bytes() for path in sources))).hexdigest()[:12]
        namespace = {"np": np, "observe": kernel.observe, "step": kernel.step, "act": mlp.act}
        loop = FunctionType(_rollouts.__code__, namespace, f"rollouts_{kernel.step.__name__}_{digest}")
        loop.__qualname__ = loop.__name__
        loop.__module__ = __name__
        _compiled[key] = njit(cache=True, error_model="numpy")(loop)
    return _compiled[key]
