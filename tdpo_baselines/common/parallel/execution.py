"""Who computes what: thresholds between one rank and all of them.

The settings decide, never the number of ranks, so that a run is the same on any number of them.
"""

MAX_SOLO_ROWS = 512  # DDPG, TD3: rank 0 makes the updates of minibatches up to this size and broadcasts the result
ROWS_PER_BLOCK = 256  # TRPO, PPO1: the same; larger minibatches are shared in blocks of this many rows
MAX_GRAM_ROWS = 256  # TDPO: up to this many rows times actions every rank solves for the coefficients of all rows
ROWS_PER_GROUP = 48  # TDPO: more are shared in groups of whole trajectories with about this many rows
