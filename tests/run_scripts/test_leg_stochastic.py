import numpy as np
import pytest

from envs.leg.params import POSITION, RATE

SMALL = ("num_trajectories=1", "num_branches=1", *(f"stage{number}.timesteps=0" for number in range(1, 5)))


@pytest.mark.slow
def test_report_has_every_trained_seed_the_pd_controller_and_pictures(
    script, shrink, folders, pictures_in, monkeypatch
):
    leg_stochastic, experiments = script("leg_stochastic"), script("experiments")
    for name, value in {"NUM_LANDINGS": 2, "NUM_PD_EPISODES": 2, "EVALUATION": ("--episodes", "2")}.items():
        monkeypatch.setattr(leg_stochastic, name, value)
    small = {
        name: shrink(experiment, range(8, 9), 2e4, *SMALL) for name, experiment in leg_stochastic.EXPERIMENTS.items()
    }
    runs, out = folders
    assert experiments.train({"advanced": small["advanced"]}, runs, jobs=1) == 0
    leg_stochastic.report(small, runs, out)
    table = (out / "leg-stochastic-table.md").read_text().splitlines()
    assert [line.split(" | ")[:2] for line in table[2:]] == [["| Advanced variant", "8"], ["| PD controller", ""]]
    assert pictures_in(out) == ["leg-stochastic-curves.png", "leg-stochastic-landings-advanced-8.png"]


def test_standing_means_still_for_the_last_tenth_of_a_second(script):
    stands = script("leg_stochastic").stands
    states = np.zeros((500, 30))
    states[:, POSITION : POSITION + 3] = 0.2, np.radians(-45), np.radians(-90)
    states[:50, RATE + 1] = 10.0
    assert stands(states)
    states[-200, RATE + 1] = 1.0
    assert not stands(states)
    states[:, RATE + 1], states[-1, POSITION + 1] = 0.0, np.radians(-20)
    assert not stands(states)
