import numpy as np
import pytest

from tdpo_baselines.common.parallel.checks import (
    NotFinite,
    TooLittleMemory,
    require_finite,
    require_memory,
    require_trajectories,
)


def test_first_bad_entry_is_named():
    require_finite("return", np.ones((2, 3)))
    with pytest.raises(NotFinite, match=r"return \[1, 0\] is inf"):
        require_finite("return", np.array([[1.0, 2.0], [np.inf, np.nan]]))


def test_memory_counts_all_ranks_of_the_host(monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 1000}.get)
    require_memory("hidden_sizes", 500)
    with pytest.raises(TooLittleMemory, match="hidden_sizes need about .* GB per rank"):
        require_memory("hidden_sizes", 501)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
    with pytest.raises(TooLittleMemory, match=r"4 rank\(s\)"):
        require_memory("hidden_sizes", 126)


def test_every_rank_needs_a_trajectory():
    require_trajectories(3, 3)
    with pytest.raises(ValueError, match="pass --num_trajectories 4 or run on 3 ranks"):
        require_trajectories(3, 4)
