"""The policy as plain NumPy arrays in one .npz file, which `numpy.load` reads without unpickling.

    weights_K [in, out], biases_K [out]   layer K = 0, 1, ...
    linear [O, A]                         weights of the linear part beside the layers, if there is one
    centre [A], scale [A]                 output scaling
    low [A], high [A]                     limits of the actions, infinite where there are none
    hidden, is_squashed                   "tanh" or "relu"; whether the outputs pass through a tanh
    config, iteration                     the run's config.json as text; updates before the checkpoint

    x = observation; for each hidden layer K: x = hidden(x @ weights_K + biases_K); y = x @ weights_last + biases_last;
    y += observation @ linear; y = tanh(y) if is_squashed; action = clip(centre + scale * y, low, high)

Weights and biases in order, then `linear`, are theta.
"""

from pathlib import Path
from typing import Any

import numpy as np

from .controller import Controller


def write(folder: Path, controller: Controller) -> None:
    """Write NAME.npz."""
    policy = controller.policy
    arrays = {"centre": policy.centre, "scale": policy.scale, "low": policy.low, "high": policy.high}
    for number, (weights, biases) in enumerate(policy.layers):
        arrays |= {f"weights_{number}": weights, f"biases_{number}": biases}
    if policy.linear is not None:
        arrays["linear"] = policy.linear
    contents: dict[str, Any] = {key: values.astype(controller.dtype) for key, values in arrays.items()}
    contents |= {"hidden": policy.style.hidden, "is_squashed": policy.style.is_squashed}
    contents |= {"config": controller.config, "iteration": controller.iteration}
    np.savez(folder / f"{controller.name}.npz", **contents)
