import pytest

from run_scripts import gym_suite


def test_paper_scale_has_its_presets_and_td3():
    assert {s.values["preset"] for s in gym_suite.settings("paper")} == {"paper"}
    assert {s.label for s in gym_suite.settings("paper")} - {s.label for s in gym_suite.settings("short")} == {"TD3"}


@pytest.mark.slow
def test_smoke(smoke, pictures_in):
    assert pictures_in(smoke("gym_suite", "--only", "Reacher-v5 PPO1")) == ["gym-suite-curves.png"]
