import errno

import numpy as np
import pytest

from tdpo_baselines.common.parallel.checks import (
    NotFinite,
    describe_shortage,
    is_finite,
    noting_memory,
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
    with pytest.raises(ValueError, match="hidden_sizes need about .* GB per rank"):
        require_memory("hidden_sizes", 501)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
    with pytest.raises(ValueError, match=r"4 rank\(s\)"):
        require_memory("hidden_sizes", 126)


def test_memory_that_settings_need_is_noted_instead_of_compared(monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 1000}.get)
    with noting_memory() as needs:
        for cause, num_bytes in (("hidden_sizes", 501), ("buffer_size", 2e6), ("hidden_sizes", 400)):
            require_memory(cause, num_bytes)
    assert needs == {"hidden_sizes": 501, "buffer_size": 2e6}
    with pytest.raises(ValueError, match="hidden_sizes need"):
        require_memory("hidden_sizes", 501)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory, with a limit of 5 GB"),
        (OSError(errno.ENOMEM, "x"), "out of memory"),
        (ImportError("libtensorflow_cc.so.2: failed to map segment from shared object"), "out of memory"),
        (OSError(errno.EMFILE, "x"), "too many open files; raise the limit with ulimit -n"),
        (OSError(errno.ENOSPC, "x"), ""),
        (ValueError("x"), ""),
    ],
)
def test_error_about_a_limit_of_the_machine_is_explained(monkeypatch, error, words):
    monkeypatch.setattr("resource.getrlimit", lambda kind: (5 * 10**9, 0))
    text = describe_shortage(error)
    assert text.startswith(words) and bool(text) == bool(words)


@pytest.mark.parametrize("values", [[1e200, 1.0], [0.0, 0.0]])
def test_finite_numbers_are_finite_also_where_their_squares_are_not(values):
    assert is_finite(np.array(values))
    assert not is_finite(np.array([*values, np.nan])) and not is_finite(np.array([*values, -np.inf]))


def test_every_rank_needs_a_trajectory():
    require_trajectories(3, 3)
    with pytest.raises(ValueError, match="pass --num_trajectories 4 or run on 3 ranks"):
        require_trajectories(3, 4)
