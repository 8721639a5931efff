import pytest

SMALL = ("num_trajectories=2", "num_branches=1")


@pytest.mark.slow
def test_report_has_every_trained_seed_and_pictures(script, shrink, folders, pictures_in, monkeypatch):
    pendulum_nlr, experiments = script("pendulum_nlr"), script("experiments")
    monkeypatch.setattr(pendulum_nlr, "EPISODES", ("--episodes", "3"))
    small = {
        "main": shrink(pendulum_nlr.EXPERIMENTS["main"], range(2), 2000, *SMALL),
        "variant-8": shrink(pendulum_nlr.EXPERIMENTS["variant-8"], range(4, 5), 2000, *SMALL, "stage1.timesteps=1000"),
        "paper": shrink(pendulum_nlr.EXPERIMENTS["paper"], range(1), 2000, *SMALL),
    }
    runs, out = folders
    begun = {name: small[name] for name in ("main", "variant-8")}
    assert experiments.train(begun, runs, jobs=2) == 0
    assert experiments.train(begun, runs, jobs=2) == 0  # finished already
    pendulum_nlr.report(small, runs, out)
    text = (out / "pendulum-nlr-tables.md").read_text()
    assert text.count("of 2 solved") == 1 and text.count("of 1 solved") == 1
    seeds = [line.split(" | ")[0] for line in text.splitlines() if line.startswith(("| 0", "| 1", "| 4"))]
    assert seeds == ["| 0", "| 1", "| 4"]
    assert "--env pendulum-nlr-8 --num_timesteps 2000 --seed SEED" in text
    names = ["best", "main-curves", "paper-curves", "worst"]
    assert pictures_in(out) == [f"pendulum-nlr-{name}.png" for name in names]
