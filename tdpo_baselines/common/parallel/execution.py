"""Who computes what: thresholds between one rank and all of them, and which ranks load TensorFlow.

The settings decide, never the number of ranks, so that a run is the same on any number of them.
"""

from .comm import Comm
from .tensorflow_setup import load_tensorflow

MAX_SOLO_ROWS = 512  # minibatches up to this size are descended by rank 0 in one compiled call, larger ones by all
ROWS_PER_BLOCK = 256  # rows of a shared minibatch per gradient
MAX_GRAM_ROWS = 256  # TDPO solves for the coefficients of up to this many rows on every rank, without messages
ROWS_PER_GROUP = 48  # rows per sum where TDPO's rows are shared; fixes the order of the sums


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
