import pytest

SMALL = ("num_trajectories=1", "num_branches=1")


@pytest.mark.slow
def test_report_has_every_trained_seed_the_pd_controllers_and_pictures(script, shrink, folders, pictures_in):
    leg, experiments = script("leg"), script("experiments")
    small = {name: shrink(experiment, range(20, 22), 2e4, *SMALL) for name, experiment in leg.EXPERIMENTS.items()}
    runs, out = folders
    assert experiments.train({"main": small["main"]}, runs, jobs=2) == 0
    leg.report(small, runs, out)
    text = (out / "leg-tables.md").read_text()
    assert "best parameters: " in text and "last parameters: " in text and "The paper's settings" not in text
    labels = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert labels == ["| seed", "| 20", "| 21"] * 2 + ["| seed", "| by hand", "| random search"]
    rows = {line.split(" | ")[0]: line for line in text.splitlines()}
    assert rows["| random search"].endswith("| yes |")
    assert pictures_in(out) == ["leg-best.png", "leg-curves.png", "leg-worst.png"]
