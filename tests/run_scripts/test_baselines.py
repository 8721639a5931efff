import pytest

ON_POLICY = ("num_trajectories=1", "steps_per_trajectory=200")
OFF_POLICY = ("batch_size=16", "random_timesteps=100", "buffer_size=1000", "rounds_per_iteration=2")
TDPO = ("num_trajectories=2", "num_branches=1")


@pytest.mark.slow
def test_report_has_every_trained_algorithm_and_pictures(script, shrink, folders, pictures_in, monkeypatch):
    baselines, experiments = script("baselines"), script("experiments")
    monkeypatch.setattr(baselines, "EPISODES", ("--episodes", "2"))
    monkeypatch.setattr(baselines, "MORE_EPISODES", {})
    options = {"td3-Pendulum-v1": OFF_POLICY, "trpo-Pendulum-v1": ON_POLICY, "pendulum-nlr-tdpo": TDPO}
    small = {
        name: shrink(experiment, range(2), 400, *options.get(name, ()))
        for name, experiment in baselines.EXPERIMENTS.items()
    }
    runs, out = folders
    assert experiments.train({name: small[name] for name in options}, runs, jobs=2) == 0
    baselines.report(small, runs, out)
    scores = [line.strip("| ").split(" | ") for line in (out / "baselines-scores.md").read_text().splitlines()[2:]]
    assert [row[:3] for row in scores] == [["td3", "Pendulum-v1", "400"], ["trpo", "Pendulum-v1", "400"]]
    assert all(len(row[3].split(", ")) == 2 for row in scores)  # a return of each seed
    comparison = (out / "baselines-comparison.md").read_text().splitlines()
    assert len(comparison) == 3 and comparison[2].startswith("| pendulum-nlr | tdpo |")
    assert pictures_in(out) == ["baselines-pendulum-nlr.png"]
