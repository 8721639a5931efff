"""A run of seconds that has everything."""

SMALL = (
    "--env",
    "pendulum-nlr",
    "--set",
    "num_trajectories=7",
    "num_branches=3",
    "hidden_sizes=16,16",
    "c1_over_c2=0.5",
)
