"""A policy that does nothing, and a run folder that holds it."""

import numpy as np

from tdpo_baselines.evaluating.trained import Trained
from tdpo_baselines.options import registry
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

OPTIONS = {"hidden_sizes": [4]}


def untrained(environment: str, **env_options) -> Trained:
    """Return a policy whose parameters are zero."""
    resolved = registry.resolve_options(environment, env_options)
    made = registry.make_environment(environment, resolved)
    roller = registry.make_roller(made, registry.algorithm("tdpo").Config.from_values(OPTIONS))
    config = RunConfig("tdpo", environment, 0, {**OPTIONS}, resolved, made_with={"num_timesteps": 1000})
    state = {"policy": {"theta": np.zeros(roller.num_parameters)}, "progress": {"iteration": np.asarray(7)}}
    return Trained(config, {**state, "config": config.to_json()})


def write_run(path, trained: Trained, num_rows: int = 5) -> RunFolder:
    """Write a run folder with a log, whose payoff rises to zero, and the policy as its newest and best checkpoint."""
    folder = RunFolder(path)
    folder.create()
    folder.write_config(trained.config)
    header = "iteration,total_timesteps,return_mean,payoff,wall_time,steps_per_second\n"
    payoffs = {i: (i - num_rows) / 4 for i in range(1, num_rows + 1)}
    rows = [f"{i},{100 * i},{200 * payoff},{payoff},{i / 2},{200 * i}\n" for i, payoff in payoffs.items()]
    folder.progress_path.write_text(header + "".join(rows))
    for where in (folder.checkpoints, folder.best):
        checkpoint.save(where, 7, trained.state, keep=1)
    return folder
