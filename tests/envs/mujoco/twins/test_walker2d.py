import pytest
from twin_episodes import check_same_start, count_equal_steps


@pytest.mark.slow
def test_twenty_episodes_equal_gymnasiums_to_the_bit():
    assert count_equal_steps("Walker2d-v5") > 300


@pytest.mark.slow
def test_same_seed_starts_where_gymnasiums_does():
    check_same_start("Walker2d-v5")
