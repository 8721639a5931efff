import pytest

SMALL = ("num_trajectories=2", "num_branches=1", "env.max_episode_steps=30")


@pytest.mark.slow
def test_report_has_every_trained_task_and_pictures(script, shrink, folders, pictures_in, monkeypatch):
    gym_suite, experiments = script("gym_suite"), script("experiments")
    monkeypatch.setattr(gym_suite, "EVALUATIONS", {"last": ("--episodes", "2"), "best": ("--episodes", "2", "--best")})
    small = {name: shrink(experiment, range(2), 200, *SMALL) for name, experiment in gym_suite.EXPERIMENTS.items()}
    runs, out = folders
    begun = {name: small[name] for name in ("Swimmer-v5-tuned", "Swimmer-v5-untuned")}
    assert experiments.train(begun, runs, jobs=2) == 0
    gym_suite.report(small, runs, out)
    table = (out / "gym-table.md").read_text().splitlines()
    cells = [line.strip("| ").split(" | ") for line in table[2:]]
    assert [row[:2] for row in cells] == [["Swimmer-v5", "tuned"], ["Swimmer-v5", "untuned"]]
    assert all(len(row[2].split(", ")) == 2 and row[6] == "95, 111" for row in cells)  # a return of each seed
    assert pictures_in(out) == ["gym-Swimmer-v5.png"]
