import json

import pytest

from tdpo_baselines.common.parallel.comm import Comm


@pytest.fixture
def scaling(benchmark):
    return benchmark("scaling")


def test_record_replaces_that_of_the_same_place(scaling, tmp_path):
    path = tmp_path / "scaling.json"
    for ranks, value in ((2, 1.0), (1, 3.0), (2, 2.123456789)):
        scaling.add_result(path, {"environment": "leg", "hosts": 1, "ranks": ranks, "value": value})
    assert [(r["ranks"], r["value"]) for r in json.loads(path.read_text())] == [(1, 3.0), (2, 2.1235)]


def test_clock_notes_every_stage(scaling):
    clock = scaling.Clock(0.0, "launch")
    clock.end("imports")
    assert list(clock.stages) == ["launch", "imports"] and clock.stages["imports"] < clock.stages["launch"]


@pytest.mark.slow
def test_messages_of_a_training_are_recorded_and_sent_again(scaling, monkeypatch):
    from tdpo_baselines.options import registry
    from tdpo_baselines.tdpo import Learner

    monkeypatch.setattr(scaling, "REPLAY_SECONDS", 0.01)
    run, comm = scaling.resolve_run("pendulum-nlr", 0), Comm()
    options, kernel = run.stages[-1]
    learner = Learner(options, registry.make_roller(kernel, options), comm, seed=0)
    _, recorded = scaling.train(learner, run.config, comm, scaling.record_messages(comm))
    assert "gather" in {kind for kind, *_ in scaling.count_messages(recorded)}
    assert scaling.replay(recorded, comm) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("num_trajectories", "is_shared"), [(16, False), (200, True)])
def test_work_is_divided_into_rollouts_update_and_the_rest(scaling, num_trajectories, is_shared):
    work = scaling.measure_work("pendulum-nlr", num_trajectories, 0, Comm(), has_shares=False)
    assert work["rollouts"] > 0 and work["serial"] > 0 and work["rows_per_trajectory"] == 4
    assert (work["num_groups"] > 0) == (work["update"] > 0) == is_shared
