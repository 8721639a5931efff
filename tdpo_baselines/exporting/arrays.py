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

import zipfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common.networks import mlp
from .controller import Controller
from .policy import Policy

MAX_BYTES = 2**28  # of a file's arrays: a network of 4096-4096 in double precision has half of that
DAMAGE = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


class Exported(NamedTuple):
    """The contents of a file."""

    policy: Policy
    config: str  # the run's config.json
    iteration: int


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


def read(path: Path) -> Exported:
    """Read a file that someone else may have made; raise ValueError unless it is a complete, finite policy."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise ValueError(f"its arrays have {size:,} bytes, more than the {MAX_BYTES:,} allowed")
        with np.load(path, allow_pickle=False) as arrays:
            return _parse({name: arrays[name] for name in arrays.files})
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist") from error
    except DAMAGE as error:
        reason = f"it has no array {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ValueError(f"{path} is not an exported policy, or is damaged: {reason}; export it again") from error


def _parse(arrays: dict[str, np.ndarray]) -> Exported:
    """Return the policy in arrays that may be anything."""
    num_layers = sum(name.startswith("weights_") for name in arrays)
    weights = [_numbers(arrays, f"weights_{k}", 2) for k in range(num_layers)]
    biases = [_numbers(arrays, f"biases_{k}", 1) for k in range(num_layers)]
    if not weights or any(w.shape[1:] != b.shape for w, b in zip(weights, biases)):
        raise ValueError("biases must have an entry for each output of their weights")
    if any(w.shape[1] != after.shape[0] for w, after in pairwise(weights)):
        raise ValueError("the weights of a layer do not fit those of the next one")
    sizes = (weights[0].shape[0], *(len(b) for b in biases))
    parts = [part for layer in zip(weights, biases) for part in layer]
    if "linear" in arrays:
        parts.append(_numbers(arrays, "linear", 2))
        if parts[-1].shape != (sizes[0], sizes[-1]):
            raise ValueError(f"linear must have shape {(sizes[0], sizes[-1])}, got {parts[-1].shape}")
    theta = np.concatenate([part.ravel() for part in parts])
    low, high = _limits(arrays, "low", sizes[-1]), _limits(arrays, "high", sizes[-1])
    policy = Policy(sizes, _style(arrays, sizes[-1]), theta, low, high)
    return Exported(policy, str(arrays["config"]), int(arrays["iteration"]))


def _numbers(arrays: dict[str, np.ndarray], name: str, num_axes: int) -> np.ndarray:
    """Return finite numbers in double precision."""
    values = arrays[name]
    if values.dtype.kind != "f" or values.ndim != num_axes or not values.size or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite floating-point numbers with {num_axes} axes")
    return values.astype(np.float64)


def _limits(arrays: dict[str, np.ndarray], name: str, num_actions: int) -> np.ndarray:
    """Return limits of the actions [A], which may be infinite."""
    values = arrays[name]
    if values.dtype.kind != "f" or values.shape != (num_actions,) or np.isnan(values).any():
        raise ValueError(f"{name} must be {num_actions} number(s)")
    return values.astype(np.float64)


def _style(arrays: dict[str, np.ndarray], num_actions: int) -> mlp.Style:
    """Return activation, linear part and output scaling."""
    hidden, is_squashed = str(arrays["hidden"]), arrays["is_squashed"]
    if hidden not in ("tanh", "relu") or is_squashed.dtype.kind != "b" or is_squashed.shape:
        raise ValueError("hidden must be tanh or relu, and is_squashed a truth value")
    centre, scale = _numbers(arrays, "centre", 1), _numbers(arrays, "scale", 1)
    if centre.shape != (num_actions,) or scale.shape != (num_actions,):
        raise ValueError(f"centre and scale must be {num_actions} number(s)")
    scaling = (tuple(centre.tolist()), tuple(scale.tolist()))
    return mlp.Style(hidden, bool(is_squashed), *scaling, has_linear_part="linear" in arrays)
