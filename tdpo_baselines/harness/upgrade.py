"""Checkpoints of revision 027a713 and before, whose arrays stood side by side without components.

`upgrade` sorts them into components, so that old runs evaluate and resume.
"""

import json

_PROGRESS = ("iteration", "total_timesteps", "episodes", "wall_time", "best_payoff", "best_iteration", "best_theta")
_STATS = {"count": "observation_count", "sum": "observation_sum", "squares": "observation_squares"}
_STREAMS = {name: f"stream_{name}" for name in ("states", "steps", "returns", "discounted")}
_STREAMS |= {name: name for name in ("num_ended", "ended_returns", "ended_discounted", "last_returns")}


def _adam(prefix: str) -> dict[str, str]:
    return {name: f"{prefix}_{name}" for name in ("mean", "square", "count")}


_ON_POLICY = {
    "policy": {"theta": "theta", "log_std": "log_std"},
    "value": {"theta": "value_theta", "target_sums": "target_sums"},
    "adam": _adam("adam"),
    "observation_stats": _STATS,
    "streams": _STREAMS,
}
_OFF_POLICY = {
    "policy": {"theta": "theta"},
    "critics": {"theta": "critics", "num_updates": "num_updates"},
    "targets": {"actor": "target_actor", "critics": "target_critics"},
    "actor_adam": _adam("actor_adam"),
    "critic_adam": _adam("critic_adam"),
    "streams": _STREAMS,
    "noise": {"state": "noise_state"},
    "replay": {"rows": "replay_rows", "num_added": "replay_added"},
}
OLD_NAMES = {  # algorithm -> component -> name -> old name
    "tdpo": {
        "policy": {"theta": "theta"},
        "safeguard": {"theta": "safe_theta", "payoff": "safe_payoff", "trust": "trust"},
        "exploration_scale": {
            "log_std": "log_std",
            "mean": "log_std_mean",
            "square": "log_std_square",
            "count": "log_std_updates",
        },
        "observation_stats": _STATS,
    },
    "trpo": _ON_POLICY,
    "ppo1": _ON_POLICY,
    "ddpg": {**_OFF_POLICY, "parameter_noise": {"scale": "parameter_scale"}},
    "td3": _OFF_POLICY,
}


def is_old(state: dict) -> bool:
    """Return whether a checkpoint has no components."""
    return "theta" in state


def upgrade(state: dict) -> dict:
    """Return the nested form of an old checkpoint; those in `best` have only a few of the names."""
    try:
        components = OLD_NAMES[json.loads(state["config"])["algorithm"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the checkpoint is not one of a run ({error!r})") from error
    nested: dict = {"config": state["config"]}
    for component, names in {"progress": {name: name for name in _PROGRESS}, **components}.items():
        found = {name: state[old] for name, old in names.items() if old in state}
        if found:
            nested[component] = found
    return nested
