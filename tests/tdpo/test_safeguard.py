import numpy as np
import pytest

from tdpo_baselines.tdpo.safeguard import Safeguard


def test_safeguard_goes_back_only_from_a_large_drop_and_then_trusts_less():
    start = Safeguard(np.zeros(1))
    first, goes_back = start.update(np.ones(1), -5.0, max_drop=1.0)
    assert not goes_back and first.payoff == -5.0 and first.theta == 1
    second, goes_back = first.update(np.full(1, 2.0), -9.9, max_drop=1.0)
    assert not goes_back and second == first
    third, goes_back = second.update(np.full(1, 3.0), -10.1, max_drop=1.0)
    assert goes_back and third.trust == 0.5 and third.theta == 1
    fourth, _ = third.update(np.full(1, 4.0), -4.0, max_drop=1.0)
    assert fourth.trust == pytest.approx(0.55) and fourth.theta == 4
    unguarded, goes_back = second.update(np.full(1, 3.0), -1e9, max_drop=None)
    assert not goes_back and unguarded.theta == 3  # what was best before does not count


def test_safeguard_forgets_a_best_from_which_small_steps_drop_too():
    safeguard = Safeguard(np.zeros(1), -1.0)
    for _ in range(3):
        safeguard, goes_back = safeguard.update(np.ones(1), -5.0, max_drop=1.0)
        assert goes_back and safeguard.theta == 0
    safeguard, goes_back = safeguard.update(np.ones(1), -5.0, max_drop=1.0)
    assert not goes_back and safeguard.theta == 1 and safeguard.payoff == -5.0
