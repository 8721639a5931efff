import pytest

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.rollouts import PolicyRoller

SMALL = ("num_trajectories=2", "num_branches=1", "hidden_sizes=8")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), [("pendulum-nlr", ()), ("InvertedPendulum-v5", ("env.compiled=false",))])
def test_rollouts_are_a_part_of_the_training_time(benchmark, name, changes):
    update_share = benchmark("update_share")
    rollouts = PolicyRoller.rollouts
    in_rollouts, total, num_steps = update_share.measure(Comm(), name, 1, 3, "none", (*SMALL, *changes))
    assert 0 < in_rollouts < total and num_steps > 3
    assert PolicyRoller.rollouts is rollouts  # the timer is removed
