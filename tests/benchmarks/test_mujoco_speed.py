import re

import pytest


@pytest.mark.slow
def test_bare_loop_makes_the_motion_of_the_closed_loop(benchmark, monkeypatch):
    mujoco_speed = benchmark("mujoco_speed")
    monkeypatch.setattr(mujoco_speed, "ROUNDS", 2)
    monkeypatch.setattr(mujoco_speed, "MIN_STEPS", 100)
    printed = mujoco_speed.measure("InvertedPendulum-v5")
    assert "same motion to 0e+00" in printed and len(re.findall(r"\d\.\d\d", printed)) == 3
