"""Arguments of a run that takes seconds and uses every part of TDPO."""

SMALL = (
    "--env",
    "pendulum-nlr",
    "--set",
    "num_trajectories=7",
    "num_branches=3",
    "hidden_sizes=16,16",
    "c1_over_c2=0.5",
)
