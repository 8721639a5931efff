import pytest
from twin_episodes import count_equal_steps


@pytest.mark.slow
def test_twenty_episodes_equal_gymnasiums_to_the_bit():
    assert count_equal_steps("Humanoid-v5") > 300
