import re

import pytest


@pytest.mark.slow
def test_both_loops_make_the_same_motion(benchmark, monkeypatch):
    leg_speed = benchmark("leg_speed")
    monkeypatch.setattr(leg_speed, "ROUNDS", 2)
    text = leg_speed.measure("leg")
    assert re.search(r"bare mj_step [\d.]+ us, closed loop [\d.]+ us .* ratio [\d.]+ ", text)
    assert float(text.rpartition("same motion to ")[2]) < 1e-9
