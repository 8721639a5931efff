import importlib.util
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo1", "trpo", "td3", "ddpg"])
def test_our_speed_is_measured(benchmark, algorithm):
    baselines_speed = benchmark("baselines_speed")
    assert baselines_speed.measure_ours(algorithm, baselines_speed.PENDULUM, ([8, 8], 64), None, 10) > 0


def test_missing_peers_are_said_to_be_missing(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["baselines_speed.py"])
    benchmark("baselines_speed").main()
    assert "pip install stable-baselines3 sb3-contrib" in capsys.readouterr().out
