"""A small search, and evaluations of it that were never trained."""

from tdpo_baselines.sweeping.definition import Definition
from tdpo_baselines.tuning.study import Evaluation

DEFINITION = Definition(
    fixed={"env": "pendulum-nlr", "alg": "trpo", "num_iterations": 2},
    cartesian={"gamma": [0.9, 0.999], "num_trajectories": [2, 8]},
)
PRIOR = [
    Evaluation(-1, {"gamma": 0.9 + 0.009 * i, "num_trajectories": 2 + i % 7}, (0,), -100.0 * (1 + (i - 6) ** 2))
    for i in range(11)
]


def finish(run, value: float) -> None:
    """Write what a finished run of two iterations leaves."""
    run.folder.create()
    text = "iteration,total_timesteps,episodes,return_mean,wall_time\n"
    run.folder.progress_path.write_text(f"{text}1,100,1,{value},0.5\n2,200,2,{value},1.0\n")
    (run.folder.checkpoints / "iteration-000000002").mkdir()
    (run.folder.checkpoints / "iteration-000000002/state.index").touch()
