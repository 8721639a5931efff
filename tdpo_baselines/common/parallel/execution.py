"""Who computes what: thresholds between one rank and all of them, and which ranks load TensorFlow.

The settings decide, never the number of ranks, so that a run is the same on any number of them.
"""

from .comm import Comm
from .tensorflow_setup import load_tensorflow

MAX_SOLO_ROWS = 512  # DDPG, TD3: rank 0 makes the updates of minibatches up to this size in one compiled call
ROWS_PER_BLOCK = 256  # TRPO, PPO1: the same; larger minibatches are shared in blocks of this many rows
MAX_GRAM_ROWS = 256  # TDPO: up to this many rows times actions every rank solves for the coefficients of all rows
ROWS_PER_GROUP = 48  # TDPO: more are shared in groups of whole trajectories with about this many rows


def load_tensorflow_where_needed(comm: Comm, *, is_needed: bool) -> None:
    """Load TensorFlow on the ranks that need it: it takes most of a rank's memory and start-up time.

    All ranks call this together. With several hosts one rank of each goes first, so that no more ranks read from a
    file server at once than there are hosts.
    """
    if comm.num_hosts > 1:
        comm.warm_up(load_tensorflow, is_needed=is_needed)
    elif is_needed:
        load_tensorflow()
    comm.barrier()
