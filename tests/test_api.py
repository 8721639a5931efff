"""`train` and `load`: the same runs as on the command line, from a script."""

import os
import signal
import threading

import gymnasium
import numpy as np
import pytest
from chromium import PROGRAM, Page
from programs import deterministic_part, mpi_environment
from small_run import OPTIONS as TINY
from small_run import SMALL

import tdpo_baselines
from tdpo_baselines import api, report, run
from tdpo_baselines.export import export
from tdpo_baselines.options import registry
from tdpo_baselines.viewing.film import make_film
from tdpo_baselines.viewing.mujoco_frames import SET_ASIDE

OPTIONS = dict(word.split("=") for word in SMALL[3:])
SEEN: list[dict] = []


@pytest.fixture(autouse=True)
def mpi(monkeypatch):
    SEEN.clear()
    for name, value in mpi_environment().items():
        monkeypatch.setenv(name, value)


class Spring(gymnasium.Env):
    """A mass on a spring, moved to a target."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), dtype=np.float64)

    def __init__(self, mass: float = 1.0):
        self.mass = mass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state = self.np_random.uniform(-0.1, 0.1, 2)
        return self._state.copy(), {}

    def step(self, action):
        position, rate = self._state
        rate += 0.1 * (float(action[0]) - position) / self.mass
        self._state = np.array([position + 0.1 * rate, rate])
        return self._state.copy(), -((position - 0.5) ** 2), False, False, {}


def make_spring(mass: float = 1.0):
    return gymnasium.wrappers.TimeLimit(Spring(mass), 20)


def test_package_offers_train_and_load():
    assert tdpo_baselines.train is api.train and tdpo_baselines.load is api.load
    with pytest.raises(AttributeError, match="has no attribute 'tran'"):
        tdpo_baselines.tran  # noqa: B018


def test_run_is_that_of_the_command_line_and_its_rows_reach_the_callback(tmp_path, capsys):
    assert run.main([*SMALL, "--num_iterations", "4", "--seed", "3", "--log_dir", str(tmp_path / "a"), "--quiet"]) == 0
    trained = tdpo_baselines.train(
        "pendulum-nlr", seed=3, num_iterations=4, options=OPTIONS, log_dir=tmp_path / "b", callback=SEEN.append
    )
    assert deterministic_part(tmp_path / "a") == deterministic_part(tmp_path / "b")
    assert [row["iteration"] for row in SEEN] == [1, 2, 3, 4] and "finished: 4 iterations" in capsys.readouterr().out
    last = (tmp_path / "b" / "progress.csv").read_text().splitlines()[-1].split(",")
    assert [str(value) for value in SEEN[-1].values()] == last
    assert (trained.iteration, trained.config.seed, trained.config.options["num_branches"]) == (4, 3, 3)
    assert np.array_equal(trained.theta, tdpo_baselines.load(tmp_path / "a").theta)


def test_invalid_input_is_a_value_error_with_the_message_of_the_command_line(tmp_path):
    with pytest.raises(ValueError, match="unknown environment 'pendulum-nrl', did you mean 'pendulum-nlr'"):
        tdpo_baselines.train("pendulum-nrl", log_dir=tmp_path / "a")
    with pytest.raises(ValueError, match="unknown argument '--gama', did you mean '--gamma'"):
        tdpo_baselines.train("pendulum-nlr", gama=0.9, log_dir=tmp_path / "a")
    with pytest.raises(ValueError, match="noise_std must be a finite number, got 'none'"):
        tdpo_baselines.train(
            "pendulum-nlr", "td3", noise_std=None, preset=None, num_iterations=None, log_dir=tmp_path / "a"
        )
    with pytest.raises(ValueError, match="ranks must be a whole number of at least 1, got 0"):
        tdpo_baselines.train("pendulum-nlr", ranks=0)
    lock = threading.Lock()
    with pytest.raises(ValueError, match="env must be a callable that can be sent to other processes"):
        tdpo_baselines.train(lambda: lock)
    assert not (tmp_path / "a").exists()


def test_script_under_mpirun_is_refused(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    with pytest.raises(ValueError, match="start the script without mpirun and pass ranks=N"):
        tdpo_baselines.train("pendulum-nlr")


@pytest.mark.slow
def test_ranks_give_the_same_run_and_a_callback_stops_it(tmp_path):
    def stop_at_five(row):
        SEEN.append(row)
        return row["iteration"] < 5

    how = {"env": "pendulum-nlr", "options": OPTIONS, "log_dir": tmp_path / "b", "ranks": 2}
    stopped = tdpo_baselines.train(**how, callback=stop_at_five)
    num_iterations = stopped.iteration + 3
    with pytest.raises(ValueError, match="holds a run already"):
        tdpo_baselines.train(**how)
    resumed = tdpo_baselines.train(
        log_dir=tmp_path / "b", num_iterations=num_iterations, resume=True, callback=SEEN.append
    )
    assert [row["iteration"] for row in SEEN] == list(
        range(1, num_iterations + 1)
    ) and resumed.iteration == num_iterations
    arguments = ["--num_iterations", str(num_iterations), "--log_dir", str(tmp_path / "a"), "--quiet"]
    assert run.main([*SMALL, *arguments]) == 0
    assert deterministic_part(tmp_path / "a") == deterministic_part(tmp_path / "b")


@pytest.mark.slow
def test_callable_is_shipped_to_the_ranks_and_never_written(tmp_path):
    how = {"num_iterations": 3, "num_trajectories": 4, "options": {"env.mass": 2.0}}
    alone = tdpo_baselines.train(make_spring, log_dir=tmp_path / "a", **how)
    trained = tdpo_baselines.train(make_spring, log_dir=tmp_path / "b", ranks=2, **how)
    assert deterministic_part(tmp_path / "a") == deterministic_part(tmp_path / "b")
    with pytest.raises(ValueError, match="unknown argument '--gama'"):
        tdpo_baselines.train(make_spring, log_dir=tmp_path / "c", ranks=2, gama=0.9)
    assert np.array_equal(alone.theta, trained.theta)
    assert trained.env.unwrapped.mass == 2.0 and trained.evaluate(num_episodes=2).results["return"].shape == (2,)
    assert trained.config.environment.startswith("callable/") and "make_spring-" in trained.config.environment
    written = b"".join(path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())
    assert b"reduce" not in written and b"cloudpickle" not in written and b"target." not in written
    with pytest.raises(ValueError, match="pass it again"):
        tdpo_baselines.train(log_dir=tmp_path / "b", resume=True, num_iterations=5)
    resumed = tdpo_baselines.train(make_spring, log_dir=tmp_path / "b", resume=True, num_iterations=5)
    assert resumed.iteration == 5
    with pytest.raises(ValueError, match="holds another run .environment: callable/"):
        tdpo_baselines.train(lambda: make_spring(), log_dir=tmp_path / "b", resume=True, num_iterations=6)


@pytest.mark.slow
def test_error_of_the_callback_or_ctrl_c_leaves_a_saved_run(tmp_path):
    def fail(row):
        raise KeyError("mine")

    def interrupt(row):
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    for callback, expected in ((fail, KeyError), (interrupt, KeyboardInterrupt)):
        folder = tmp_path / callback.__name__
        with pytest.raises(expected):
            tdpo_baselines.train("pendulum-nlr", options=OPTIONS, log_dir=folder, callback=callback)
        assert tdpo_baselines.load(folder).iteration >= 1
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_error_inside_of_the_environment_is_raised_with_its_traceback(tmp_path):
    class Broken(Spring):
        def step(self, action):
            raise ArithmeticError("broken joint")

    def make():
        return gymnasium.wrappers.TimeLimit(Broken(), 20)

    with pytest.raises((RuntimeError, ValueError), match="broken joint"):
        tdpo_baselines.train(make, log_dir=tmp_path / "a", num_trajectories=4)


@pytest.mark.slow
def test_joblib_trains_seeds_side_by_side(tmp_path):
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    jobs = [
        delayed(tdpo_baselines.train)(
            make_spring, seed=seed, num_iterations=2, num_trajectories=4, log_dir=str(tmp_path / str(seed)), quiet=True
        )
        for seed in (0, 1)
    ]
    first, second = Parallel(n_jobs=2)(jobs)
    get_reusable_executor().shutdown()  # its processes would keep this working folder for other tests
    assert (first.config.seed, second.config.seed) == (0, 1)
    assert first.evaluate(num_episodes=1).results["return"] != second.evaluate(num_episodes=1).results["return"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
def test_tiny_run_of_every_algorithm_is_loaded_evaluated_filmed_reported_and_exported(algorithm, tmp_path, monkeypatch):
    """The leg has both kinds of film and measures of its own."""
    options = dict(word.split("=") for word in TINY[algorithm].split())
    trained = tdpo_baselines.train(
        "leg-100hz", algorithm, num_iterations=2, options=options, log_dir=tmp_path / "run", quiet=True
    )
    evaluation = trained.evaluate(num_episodes=3)
    observation, _ = trained.env.reset(seed=0)
    assert trained.env.action_space.shape == trained.act(observation).shape and "is_broken" in evaluation.results

    monkeypatch.setenv(SET_ASIDE, "")  # taken back after the test, whatever becomes of it
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    films = [make_film(evaluation, str(tmp_path / "mujoco.png"))]
    monkeypatch.setenv("MUJOCO_GL", "off")
    films.append(make_film(evaluation, str(tmp_path / "drawing.gif"), slow=0.2))
    assert films[0].startswith("MuJoCo, ") or "cannot render" in films[0]
    assert films[1].startswith("schematic") and (tmp_path / "drawing.gif").stat().st_size > 10_000

    export(trained, tmp_path / "npz", format="npz")
    again = tdpo_baselines.load(tmp_path / "npz/policy.npz")
    assert again.sha256 == trained.sha256 and again.evaluate(num_episodes=3).summary() == evaluation.summary()

    page = str(tmp_path / "report.html")
    assert report.main([str(tmp_path / "run"), "--out", page, "--episodes", "3"]) == 0
    if PROGRAM is not None:  # Chromium
        shown = Page(tmp_path / "report.html", tmp_path / "profile")
        cells = shown.run("[...document.querySelectorAll('td[data-value]')].map(cell => Number(cell.dataset.value))")
        assert cells == [number for of in evaluation.summary().values() for number in of.values()]
        assert shown.problems == []
        shown.close()
