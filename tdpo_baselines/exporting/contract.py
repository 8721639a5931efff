"""contract.json: what whoever connects the exported controller must know."""

from typing import Any

import numpy as np

from .controller import Controller


def describe(controller: Controller, environment: Any, control_rate_hz: float | None) -> dict[str, Any]:
    """Return signals, timing, network and hash."""
    policy, observations, known = controller.policy, controller.observations, environment.interface
    names = {} if known is None else {"observations": known.observations, "actions": known.actions}
    seen = zip(observations.min(axis=0).tolist(), observations.max(axis=0).tolist())
    limits = zip(policy.low.tolist(), policy.high.tolist())
    ranges = zip(environment.action_low.tolist(), environment.action_high.tolist())
    return {
        "control_rate_hz": control_rate_hz,
        "observation_delay_s": known and known.observation_delay_s,
        "action_delay_s": known and known.action_delay_s,
        "observations": [
            {**signal, "seen": list(pair)}
            for signal, pair in zip(_signals(names.get("observations"), policy.sizes[0]), seen)
        ],
        "actions": [
            {**signal, "limits": _finite(limit), "range": _finite(span)}
            for signal, limit, span in zip(_signals(names.get("actions"), policy.sizes[-1]), limits, ranges)
        ],
        "network": {
            "sizes": list(policy.sizes),
            "hidden": policy.style.hidden,
            "has_linear_part": policy.style.has_linear_part,
            "is_squashed": policy.style.is_squashed,
        },
        "num_parameters": len(policy.theta),
        "parameters_sha256": policy.sha256,
    }


def choose_rate(environment: Any, given: float | None) -> float | None:
    """Return the control rate in Hz, None if nobody knows it; raise ValueError if the user states another one."""
    known = None if environment.interface is None else float(environment.interface.control_rate_hz)
    if known is not None and given not in (None, known):
        raise ValueError(f"rate_hz must be {known:g}, at which the policy was trained, got {given:g}; leave it out")
    if given is not None and not 0 < given < np.inf:
        raise ValueError(f"rate_hz must be positive and finite, got {given}")
    return given if known is None else known


def _signals(units: dict[str, str] | None, num: int) -> list[dict]:
    """Return name and unit of each entry, null where the environment does not know them."""
    pairs: list[Any] = [(None, None)] * num if units is None else list(units.items())
    return [{"name": name, "unit": unit} for name, unit in pairs]


def _finite(pair: tuple[float, float]) -> list[float | None]:
    """Return null for an infinite number, for which JSON has no word."""
    return [value if np.isfinite(value) else None for value in pair]
