import pytest
from twin_episodes import count_equal_steps


@pytest.mark.slow
def test_twenty_episodes_equal_gymnasiums_to_the_bit():
    assert count_equal_steps("InvertedDoublePendulum-v5") > 100


def test_a_short_episode_equals_gymnasiums_to_the_bit():
    assert count_equal_steps("InvertedDoublePendulum-v5", num_episodes=1, horizon=60) > 5
