import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp


@pytest.mark.slow
def test_every_round_compares_both_pendulums_with_gymnasium(benchmark, monkeypatch, capsys):
    rollout_speed = benchmark("rollout_speed")
    monkeypatch.setattr(rollout_speed, "SECONDS", 0.01)
    monkeypatch.setattr(rollout_speed, "ROUNDS", 2)
    rollout_speed.main()
    header, *rounds = capsys.readouterr().out.splitlines()
    assert "pendulum-20hz" in header and "pendulum-nlr" in header
    assert [line.split()[0] for line in rounds] == ["1", "2"] and all(line.count(" x)") == 2 for line in rounds)


def test_numpy_policy_is_the_compiled_network(benchmark):
    sizes, rng = (3, 8, 8, 1), np.random.default_rng(0)
    theta, observation = mlp.init_parameters(sizes, rng, 1.0), rng.standard_normal(3)
    expected = mlp.Forward(sizes)(theta, observation)
    act = benchmark("rollout_speed").make_numpy_policy(theta, sizes)
    np.testing.assert_allclose(act(observation), expected, rtol=1e-12)
