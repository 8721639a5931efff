import pytest

from tdpo_baselines.common.learners import replay_learner
from tdpo_baselines.common.parallel.comm import Comm


@pytest.mark.slow
def test_both_ways_to_descend_are_measured(benchmark, monkeypatch):
    streams_speed = benchmark("streams_speed")
    monkeypatch.setattr(replay_learner, "MAX_SOLO_ROWS", 0)  # restored after the test
    monkeypatch.setattr(streams_speed, "NUM_ROUNDS", 1)
    speeds = [streams_speed.steps_per_second(Comm(), (8,), 16, is_solo=is_solo) for is_solo in (True, False)]
    assert all(speed > 0 for speed in speeds)
