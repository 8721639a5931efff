import pytest

from run_scripts import action_delay


def test_every_delay_has_every_method():
    found = action_delay.settings("short")
    assert len(found) == 24 and {s.values["env.delay_steps"] for s in found} == set(range(6))


@pytest.mark.slow
def test_smoke(smoke, pictures_in):
    assert pictures_in(smoke("action_delay", "--only", "5 steps TDPO", "5 steps TRPO")) == ["action-delay-curves.png"]
