"""Small runs: SMALL takes seconds and uses every part of the paper's TDPO."""

SMALL = (
    "--env",
    "pendulum-nlr",
    "--set",
    "num_trajectories=7",
    "num_branches=3",
    "hidden_sizes=16,16",
    "variant=basic",
    "branch_times=uniform",
    "c2=0",
    "c1_over_c2=0.5",
    "delta_max=0.2",
    "exploration_std=1",
    "cg_damping=0.3",
)

ON_POLICY = "steps_per_trajectory=64 hidden_sizes=8,8"
OFF_POLICY = (
    "hidden_sizes=8,8 steps_per_round=20 updates_per_round=2 rounds_per_iteration=3 random_timesteps=20 batch_size=8"
)
OPTIONS = {
    "tdpo": "hidden_sizes=8,8",
    "trpo": ON_POLICY,
    "ppo1": ON_POLICY,
    "ddpg": OFF_POLICY + " activation=tanh",
    "td3": OFF_POLICY,
    "ars": "",
    "cma": "hidden_sizes=",
}
"""Options of a run that takes moments, by algorithm."""
