import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo1", "trpo", "td3", "ddpg"])
def test_our_speed_is_measured(benchmark, algorithm):
    baselines_speed = benchmark("baselines_speed")
    assert baselines_speed.measure_ours(algorithm, baselines_speed.PENDULUM, ([8, 8], 64), None, 10) > 0


def test_missing_peers_are_said_to_be_missing(benchmark, monkeypatch, capsys, tmp_path):
    baselines_speed = benchmark("baselines_speed")
    monkeypatch.setattr(baselines_speed, "PEERS_PYTHON", tmp_path / "python")
    monkeypatch.setattr(sys, "argv", ["baselines_speed.py"])
    baselines_speed.main()
    assert "make bench-peers" in capsys.readouterr().out


def test_every_peer_has_its_line_and_row(benchmark, monkeypatch, capsys):
    baselines_speed = benchmark("baselines_speed")
    speeds, rows = {"SB3": 10.0, "sbx": 20.0, "ours": 50.0}, {}
    monkeypatch.setattr(baselines_speed, "measure", lambda who, case: speeds[who])
    monkeypatch.setattr(baselines_speed, "add_row", lambda name, ours, unit, **rest: rows.update({name: rest}))
    for case in ("TD3, HalfCheetah-v5, 400-300, batch 256", "TRPO, pendulum, 64-64"):
        baselines_speed.compare(case)
    assert list(rows) == [
        "TD3, HalfCheetah-v5, 400-300, batch 256, beside SB3",
        "TD3, HalfCheetah-v5, 400-300, batch 256, beside sbx",
        "TRPO, pendulum, 64-64, beside SB3",
    ]
    assert [row["goal"] for row in rows.values()] == ["at least 2.5", "at least 2", "at least 5"]
    assert "5, 5, 5" in capsys.readouterr().out
