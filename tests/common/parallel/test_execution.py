import pytest

from tdpo_baselines.common.parallel import execution
from tdpo_baselines.common.parallel.comm import Comm


class Hosts(Comm):
    """A comm that notes how TensorFlow was loaded."""

    def __init__(self, num_hosts):
        self.num_hosts, self.calls = num_hosts, []

    def warm_up(self, function, *, is_needed=True):
        self.calls.append(("warm_up", is_needed))

    def barrier(self):
        self.calls.append("barrier")


@pytest.mark.parametrize("is_needed", [True, False])
def test_tensorflow_is_loaded_where_it_is_needed_and_one_rank_per_host_first(monkeypatch, is_needed):
    loaded = []
    monkeypatch.setattr(execution, "load_tensorflow", lambda: loaded.append(1))
    alone, cluster = Hosts(1), Hosts(3)
    execution.load_tensorflow_where_needed(alone, is_needed=is_needed)
    assert alone.calls == ["barrier"] and len(loaded) == is_needed
    execution.load_tensorflow_where_needed(cluster, is_needed=is_needed)
    assert cluster.calls == [("warm_up", is_needed), "barrier"] and len(loaded) == is_needed
