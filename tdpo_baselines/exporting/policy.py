"""The policy as it is exported: layers, output scaling and action limits, for raw observations.

Normalisation of observations is part of theta already (`common/networks/normalisation.py`).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.networks import mlp
from ..common.parallel.seeding import generator


@dataclass(frozen=True)
class Policy:
    """A network and the limits of its actions. Shapes: O observation, A action, P parameters, R rows."""

    sizes: tuple[int, ...]  # observation, hidden..., action
    style: mlp.Style
    theta: np.ndarray  # [P]
    low: np.ndarray  # [A] -inf where actions have no limit
    high: np.ndarray  # [A]

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights [in, out] and biases [out] of each layer."""
        return mlp.split_layers(self.theta, self.sizes)

    @property
    def linear(self) -> np.ndarray | None:
        """Weights [O, A] of the linear part beside the layers."""
        part = mlp.linear_part(self.theta, self.sizes)
        return part.reshape(self.sizes[0], self.sizes[-1]) if self.style.has_linear_part else None

    @property
    def is_scaled(self) -> bool:
        """True if outputs are centre + scale * output."""
        return self.style.is_squashed or bool(self.style.scale)

    @property
    def centre(self) -> np.ndarray:
        """Centre [A] of the actions, zeros without scaling."""
        return np.array(self.style.centre or np.zeros(self.sizes[-1]))

    @property
    def scale(self) -> np.ndarray:
        """Scale [A] of the actions, ones without scaling."""
        return np.array(self.style.scale or np.ones(self.sizes[-1]))

    @property
    def sha256(self) -> str:
        """Hash of the parameters as little-endian doubles."""
        return hashlib.sha256(self.theta.astype("<f8").tobytes()).hexdigest()

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Return the actions [R, A] for observations [R, O], to the bit as in rollouts."""
        return self.clip(mlp.Forward(self.sizes, self.style)(self.theta, observations))

    def act_in_single_precision(self, observations: np.ndarray) -> np.ndarray:
        """Return the actions [R, A] rounded to float32 at every operation."""
        x = rows = observations.astype(np.float32)
        *hidden, output = [(weights.astype(np.float32), biases.astype(np.float32)) for weights, biases in self.layers]
        for weights, biases in hidden:
            x = x @ weights + biases
            x = np.tanh(x) if self.style.hidden == "tanh" else np.maximum(x, 0)
        x = x @ output[0] + output[1]
        if self.linear is not None:
            x = x + rows @ self.linear.astype(np.float32)
        x = np.tanh(x) if self.style.is_squashed else x
        return self.clip(self.centre.astype(np.float32) + self.scale.astype(np.float32) * x)

    def clip(self, actions: np.ndarray) -> np.ndarray:
        """Return actions [..., A] within the limits, in their own precision."""
        return np.minimum(np.maximum(actions, self.low.astype(actions.dtype)), self.high.astype(actions.dtype))


def make_policy(theta: np.ndarray, roller: Any) -> Policy:
    """Return the policy of a checkpoint; raise ValueError if its parameters do not fit the roller's network."""
    if theta.shape != (roller.num_parameters,):
        raise ValueError(
            f"the checkpoint has parameters of shape {theta.shape}, its config asks for ({roller.num_parameters},); "
            "export a checkpoint of this run"
        )
    if not np.isfinite(theta).all():
        raise ValueError("the checkpoint has parameters that are not finite; export an earlier one, or --best")
    environment = roller.environment
    low = np.where(environment.is_action_limited, environment.action_low, -np.inf)
    high = np.where(environment.is_action_limited, environment.action_high, np.inf)
    return Policy(roller.layer_sizes, roller.style, theta, low, high)


def record_observations(theta: np.ndarray, roller: Any) -> np.ndarray:
    """Return the finite observations [T, O] of one episode."""
    starts = generator(0, "evaluation").random((1, roller.start_size))
    rollouts = roller.rollouts(theta, roller.start_states(starts))
    observations = rollouts.observations[0, : rollouts.lengths[0]]
    return observations[np.isfinite(observations).all(axis=1)]
