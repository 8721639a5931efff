"""The loop around a learner, with a toy learner in one process."""

import csv
import signal

import numpy as np
import pytest
from programs import deterministic_part
from toy_learner import TIMESTEPS, ToyLearner, toy_config, toy_training

from tdpo_baselines.common.parallel.checks import NotFinite
from tdpo_baselines.common.parallel.comm import Comm, Refused
from tdpo_baselines.harness import training
from tdpo_baselines.harness.stop_request import EXIT_STOPPED, StopRequest
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunFolder


def rows_of(path) -> list[dict]:
    with open(path / "progress.csv") as file:
        return list(csv.DictReader(file))


def test_log_has_a_row_per_iteration_with_the_promised_columns_first(tmp_path):
    assert toy_training(tmp_path, num_iterations=5).run() == 0
    rows = rows_of(tmp_path)
    counters = ["iteration", "total_timesteps", "episodes", "return_mean", "discounted_return_mean", "payoff"]
    assert list(rows[0]) == [*counters, "wall_time", "steps_per_second", "count"]
    assert [int(row["iteration"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [int(row["total_timesteps"]) for row in rows] == [TIMESTEPS * i for i in range(1, 6)]


@pytest.mark.parametrize("key", ["num_timesteps", "num_episodes", "return_mean", "discounted_return_mean", "payoff"])
def test_row_without_a_required_key_names_the_algorithm_and_the_key(tmp_path, key):
    class Forgetful(ToyLearner):
        def iterate(self, iteration, total_timesteps):
            return {name: value for name, value in super().iterate(0, 0).items() if name != key}

    with pytest.raises(TypeError, match=f"toy's Learner.iterate returns has no '{key}'"):
        toy_training(tmp_path, Forgetful()).run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": np.ones(2)}, "must hold numbers, got count="),
        ({"count": "abc"}, "must hold numbers, got count='abc'"),
        ({"num_timesteps": 0}, "must count at least one timestep, got num_timesteps=0"),
    ],
)
def test_row_with_an_odd_value_is_named(tmp_path, changes, message):
    class Odd(ToyLearner):
        def iterate(self, iteration, total_timesteps):
            return {**super().iterate(0, 0), **changes}

    with pytest.raises(TypeError, match=message):
        toy_training(tmp_path, Odd()).run()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"theta": np.zeros(2)}, r"must be \{component: \{name: array\}\}, got .* as 'theta'"),
        ({"policy": {"deep": {"theta": 1}}}, "must be .* as 'policy'"),
        ({"search": {"theta": np.zeros(2)}}, r"must have .* state\['policy'\]\['theta'\]"),
    ],
)
def test_state_of_another_form_is_refused_before_training(tmp_path, state, message):
    class Odd(ToyLearner):
        def replicated(self):
            return state

    with pytest.raises(TypeError, match=f"toy's Learner.state\\(\\) {message}"):
        toy_training(tmp_path, Odd())


class InPlace(ToyLearner):
    """A learner that changes its arrays in place; its sixth update is not finite."""

    def iterate(self, iteration, total_timesteps):
        theta = self.theta
        row = super().iterate(iteration, total_timesteps)
        theta[:] = self.theta if iteration < 5 else np.nan
        self.theta = theta
        return row


def test_learner_that_changes_arrays_in_place_keeps_its_best_and_its_state_before_a_bad_update(tmp_path):
    with pytest.raises(NotFinite, match="iteration 6: parameter .* is nan"):
        toy_training(tmp_path, InPlace(), num_iterations=9).run()
    assert np.array_equal(checkpoint.load_newest(tmp_path / "best")["policy"]["theta"], [2.0, 2.0])
    assert np.array_equal(checkpoint.load_newest(tmp_path / "checkpoints")["policy"]["theta"], [5.0, 5.0])


def test_resumed_run_equals_an_undisturbed_one(tmp_path):
    assert toy_training(tmp_path / "whole", num_iterations=6).run() == 0
    assert toy_training(tmp_path / "parts", num_iterations=3).run() == 0
    assert toy_training(tmp_path / "parts", num_iterations=6, is_resumed=True).run() == 0
    assert deterministic_part(tmp_path / "parts") == deterministic_part(tmp_path / "whole")


def test_resume_from_an_older_checkpoint_drops_the_rows_after_it(tmp_path):
    assert toy_training(tmp_path, num_iterations=5).run() == 0
    expected = deterministic_part(tmp_path)
    newest = max((tmp_path / "checkpoints").iterdir())
    (newest / "state.index").write_bytes(b"")
    with open(tmp_path / "progress.csv", "a") as file:
        file.write("6,60,1")  # as a kill inside a write would leave
    assert toy_training(tmp_path, num_iterations=5, is_resumed=True).run() == 0
    assert deterministic_part(tmp_path) == expected


def test_checkpoint_holds_progress_and_the_learners_components_side_by_side(tmp_path):
    toy_training(tmp_path, num_iterations=4).run()
    state = checkpoint.load_newest(tmp_path / "checkpoints")
    assert set(state) == {"progress", "selection", "policy", "counter", "config"}
    assert state["progress"]["iteration"] == 4 and state["progress"]["total_timesteps"] == 4 * TIMESTEPS
    assert np.array_equal(state["policy"]["theta"], [4.0, 4.0]) and state["counter"]["count"] == 4


def test_best_checkpoint_holds_the_policy_its_iteration_and_the_config(tmp_path):
    toy_training(tmp_path, num_iterations=6).run()
    best = checkpoint.load_newest(tmp_path / "best")
    assert set(best) == {"policy", "progress", "config"}
    assert np.array_equal(best["policy"]["theta"], [2.0, 2.0]) and best["progress"]["iteration"] == 2


def test_ranks_are_compared_by_component_and_name(tmp_path):
    class Recorder(Comm):
        compared = ()

        def check_equal(self, arrays):
            self.compared = tuple(arrays)

    comm = Recorder()
    toy_training(tmp_path, comm=comm).run()
    assert comm.compared == ("policy/theta", "counter/count")


class Failing(ToyLearner):
    """A number is not finite in the third update."""

    def iterate(self, iteration, total_timesteps):
        row = super().iterate(iteration, total_timesteps)
        if iteration == 2:
            raise NotFinite("return [0] is nan")
        return row


def test_update_that_is_not_finite_ends_the_run_with_the_state_before_it_saved(tmp_path):
    with pytest.raises(NotFinite, match=r"^iteration 3: return \[0\] is nan; the state before it is saved in"):
        toy_training(tmp_path, Failing()).run()
    assert checkpoint.load_newest(tmp_path / "checkpoints")["counter"]["count"] == 2
    assert len(rows_of(tmp_path)) == 2


def test_learner_with_a_replay_is_not_copied_before_every_update(tmp_path):
    learner = Failing()
    learner.replay_bytes = 1
    with pytest.raises(NotFinite, match="checkpoints before it, if there are any, are in"):
        toy_training(tmp_path, learner).run()
    assert checkpoint.load_newest(tmp_path / "checkpoints")["counter"]["count"] == 2  # of checkpoint_every


def test_first_checkpoint_of_a_session_comes_early(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SECONDS_TO_FIRST_CHECKPOINT", 0.0)
    saved = []
    monkeypatch.setattr(checkpoint, "save", lambda folder, iteration, *state, **how: saved.append((folder, iteration)))
    toy_training(tmp_path, num_iterations=30, checkpoint_every=1000).run()
    iterations = [iteration for folder, iteration in saved if folder.name == "checkpoints"]
    assert len(iterations) == 2 and iterations[0] < 30 == iterations[1]


@pytest.mark.parametrize("reason", ["SIGUSR1", "max_walltime"])
def test_stop_saves_and_returns_its_own_exit_code(tmp_path, capsys, reason):
    with StopRequest() as stop:
        if reason == "SIGUSR1":
            signal.raise_signal(signal.SIGUSR1)
        walltime = "0:0:0" if reason == "max_walltime" else None
        training = toy_training(tmp_path, num_iterations=500, stop=stop, max_walltime=walltime, is_quiet=False)
        assert training.run() == EXIT_STOPPED == 85
    assert f"({reason}); continue with --resume" in capsys.readouterr().out
    assert checkpoint.load_newest(tmp_path / "checkpoints")["progress"]["iteration"] == len(rows_of(tmp_path)) < 500


def test_expected_time_is_printed_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(training, "SECONDS_TO_MEASURE", 0.0)
    toy_training(tmp_path, is_quiet=False).run()
    assert capsys.readouterr().out.count("expected time: 0.0 minutes\n") == 1


def test_finished_run_that_is_resumed_says_so_and_does_nothing(tmp_path, capsys):
    toy_training(tmp_path).run()
    before = (tmp_path / "progress.csv").read_bytes()
    assert toy_training(tmp_path, is_resumed=True, is_quiet=False).run() == 0
    assert "finished already" in capsys.readouterr().out
    assert (tmp_path / "progress.csv").read_bytes() == before


STAGES = toy_config(stages=[{"timesteps": 3 * TIMESTEPS, "rate": 2.0}])


def test_new_stage_takes_over_the_policy_and_forgets_the_best(tmp_path, capsys):
    learners = ToyLearner(rate=2.0), ToyLearner(rate=0.0)
    assert toy_training(tmp_path, *learners, config=STAGES, num_iterations=5, is_quiet=False).run() == 0
    assert "stage 2 begins after iteration 3" in capsys.readouterr().out
    assert [row["count"] for row in rows_of(tmp_path)] == ["1", "2", "3", "1", "2"]
    assert [float(row["payoff"]) for row in rows_of(tmp_path)] == [-2.5, -0.5, -1.5, -3.5, -3.5]
    best = checkpoint.load_newest(tmp_path / "best")
    assert best["progress"]["iteration"] == 3 and np.array_equal(best["policy"]["theta"], [6.0, 6.0])


@pytest.mark.parametrize("first", [2, 3, 4])
def test_run_with_stages_resumes_in_the_stage_it_was_in(tmp_path, first):
    def learners():
        return ToyLearner(rate=2.0), ToyLearner(rate=0.5)

    toy_training(tmp_path / "whole", *learners(), config=STAGES).run()
    toy_training(tmp_path / "parts", *learners(), config=STAGES, num_iterations=first).run()
    toy_training(tmp_path / "parts", *learners(), config=STAGES, is_resumed=True).run()
    assert deterministic_part(tmp_path / "parts") == deterministic_part(tmp_path / "whole")


def test_checkpoint_of_another_run_is_refused(tmp_path):
    toy_training(tmp_path / "run", num_iterations=2).run()
    toy_training(tmp_path / "other", num_iterations=2, config=toy_config(environment="elsewhere")).run()
    RunFolder(tmp_path / "run").checkpoints.rename(tmp_path / "aside")
    RunFolder(tmp_path / "other").checkpoints.rename(tmp_path / "run/checkpoints")
    with pytest.raises(Refused, match=r"is of another run \(environment: elsewhere here, nowhere asked for\)"):
        toy_training(tmp_path / "run", is_resumed=True)


class Larger(ToyLearner):
    def state(self):
        return {**super().state(), "replay": {"rows": np.zeros(3)}}


class Wider(ToyLearner):
    def __init__(self):
        super().__init__()
        self.theta = np.zeros(3)


@pytest.mark.parametrize(("kind", "missing"), [(Larger, "replay/rows"), (Wider, r"policy/theta of shape \(3,\)")])
def test_checkpoint_without_what_the_learner_needs_is_refused(tmp_path, kind, missing):
    toy_training(tmp_path, num_iterations=2).run()
    with pytest.raises(Refused, match=f"has no {missing}"):
        toy_training(tmp_path, kind(), is_resumed=True)


def test_damaged_log_is_named_and_left_alone(tmp_path):
    toy_training(tmp_path, num_iterations=4).run()
    (tmp_path / "progress.csv").write_text("hello\n")
    with pytest.raises(Refused, match="does not hold the 4 rows before the checkpoint"):
        toy_training(tmp_path, is_resumed=True)
    assert (tmp_path / "progress.csv").read_text() == "hello\n"


def test_replay_that_will_not_fit_on_the_disk_is_refused_before_training(tmp_path):
    learner = ToyLearner()
    learner.replay_bytes = 10**18
    with pytest.raises(Refused, match="checkpoints need about 4,000,000,000,000 MB"):
        toy_training(tmp_path, learner)
    assert not RunFolder(tmp_path).has_run()


def test_gradient_of_zero_is_pointed_out_once(tmp_path, capsys):
    class Stuck(ToyLearner):
        def iterate(self, iteration, total_timesteps):
            return {**super().iterate(iteration, total_timesteps), "gradient_norm": 0.0}

    toy_training(tmp_path, Stuck(), is_quiet=False).run()
    assert capsys.readouterr().out.count("the gradient is exactly zero") == 1
