"""Runs of earlier revisions.

Checkpoints of revision 027a713 and before had no components: `upgrade` sorts their arrays into components.
"""

from ..common.files import parse_json

ADDED_OPTIONS = {"time_limit": "bootstrap", "entropy_coefficient": 0.0}
"""Options that were added since, with what runs before did."""

ADDED_ENV_OPTIONS = {
    **dict.fromkeys(("mass", "friction", "joint_friction", "damping", "motor", "gravity"), 1.0),
    "push": 0.0,
}
"""Options of environments that were added since, with what runs before did."""

REMOVED_OPTIONS = {"schedule_power": 1.0, "max_drop_after": 0.0}
"""Options that were removed since, with the value that made no difference. Runs with another cannot be repeated."""

_PROGRESS = "progress: iteration total_timesteps episodes wall_time best_payoff best_iteration best_theta"
_STATS = "observation_stats: count=observation_count sum=observation_sum squares=observation_squares"
_STREAMS = """
    streams: states=stream_states steps=stream_steps returns=stream_returns discounted=stream_discounted num_ended
    streams: ended_returns ended_discounted last_returns
"""
_TDPO = f"""
    policy: theta
    safeguard: theta=safe_theta payoff=safe_payoff trust
    exploration_scale: log_std mean=log_std_mean square=log_std_square count=log_std_updates
    {_STATS}
"""
_ON_POLICY = f"""
    policy: theta log_std
    value: theta=value_theta target_sums
    adam: mean=adam_mean square=adam_square count=adam_count
    {_STATS}
    {_STREAMS}
"""
_OFF_POLICY = f"""
    policy: theta
    critics: theta=critics num_updates
    targets: actor=target_actor critics=target_critics
    actor_adam: mean=actor_adam_mean square=actor_adam_square count=actor_adam_count
    critic_adam: mean=critic_adam_mean square=critic_adam_square count=critic_adam_count
    noise: state=noise_state
    replay: rows=replay_rows num_added=replay_added
    parameter_noise: scale=parameter_scale
    {_STREAMS}
"""
OLD_NAMES = {"tdpo": _TDPO, "trpo": _ON_POLICY, "ppo1": _ON_POLICY, "ddpg": _OFF_POLICY, "td3": _OFF_POLICY}
"""Old names of each algorithm's state, in lines of `component: name=old_name ...`."""


def is_old(state: dict) -> bool:
    """Return whether a checkpoint has no components."""
    return "theta" in state


def upgrade(state: dict) -> dict:
    """Return the nested form of an old checkpoint; it may lack names, as those in `best` do."""
    try:
        lines = OLD_NAMES[parse_json(state["config"], "config")["algorithm"]].splitlines()
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the checkpoint is not one of a run: {error!r}") from error
    nested: dict = {"config": state["config"]}
    for component, _, names in (line.strip().partition(": ") for line in [_PROGRESS, *lines]):
        pairs = [(word.partition("=")[0], word.rpartition("=")[2]) for word in names.split()]
        found = {name: state[old] for name, old in pairs if old in state}
        if found:
            nested[component] = nested.get(component, {}) | found
    return nested
