from tdpo_baselines import ddpg, ppo1, td3, trpo
from tdpo_baselines.common.parallel.execution import MAX_SOLO_ROWS, ROWS_PER_BLOCK


def test_minibatches_of_the_defaults_are_small_enough_for_rank_0_alone():
    assert all(module.Config().batch_size <= MAX_SOLO_ROWS for module in (ddpg, td3))
    assert ppo1.Config().steps_per_gradient <= ROWS_PER_BLOCK
    assert trpo.Config().steps_per_value_gradient <= ROWS_PER_BLOCK
