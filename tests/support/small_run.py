"""Arguments of a run that takes seconds and uses every part of the paper's TDPO."""

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
