"""A trained policy: load it from a run or a file, act with it, evaluate it. Loading executes nothing of either."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common.networks import mlp
from ..common.parallel.checks import require_memory
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..common.sampling.rollouts import Rollouts
from ..contracts import Roller
from ..exporting import arrays
from ..exporting.policy import Policy
from ..options import callables, registry
from ..options.config import did_you_mean
from ..storage import checkpoint
from ..storage.run_folder import RunConfig, RunFolder

PRETRAINED = "pretrained:"
AGENTS = Path(__file__).parent.parent / "agents"  # policies in the package, each NAME.npz with its card, NAME.json


class Network(NamedTuple):
    """The shape of a policy."""

    sizes: tuple[int, ...]  # observation, hidden..., action
    style: mlp.Style


@dataclass
class Trained:
    """A policy with the config of its run, and the environment to use instead of the run's own, if any."""

    config: RunConfig
    state: dict[
        str, Any
    ]  # the checkpoint without its replay; one of `best`, or a file, holds little more than the policy
    given_env: str | Callable | None = None
    env_changes: dict[str, Any] = field(default_factory=dict)  # options of the environment that replace the run's
    exported: Policy | None = None  # as a file describes it, which must agree with the config

    @property
    def theta(self) -> np.ndarray:
        """The parameters [P] of the deterministic policy."""
        return self.state["policy"]["theta"]

    @property
    def sha256(self) -> str:
        """Hash of the parameters as little-endian doubles, as in an export's contract."""
        return hashlib.sha256(self.theta.astype("<f8").tobytes()).hexdigest()

    @property
    def iteration(self) -> int:
        """The number of updates before it was saved."""
        return int(self.state["progress"]["iteration"])

    @cached_property
    def environment_name(self) -> str:
        """The name of the environment to use. A run may be someone else's: no module is imported by its name alone."""
        if callable(self.given_env):
            return callables.register(self.given_env)
        if not self.given_env:
            registry.require_trusted(self.config.environment, self.config.env_options)
        return self.given_env or self.config.environment

    @property
    def environment_options(self) -> dict:
        """The options of the environment: the run's, or the defaults of another environment."""
        own = self.config.env_options if self.is_at_home else {}
        return registry.resolve_options(self.environment_name, {**own, **self.env_changes})

    @property
    def is_at_home(self) -> bool:
        """True in the environment that the policy was trained in."""
        return callables.without_hash(self.environment_name) == callables.without_hash(self.config.environment)

    @cached_property
    def environment(self) -> Any:
        """The environment with its flat state, for rollouts."""
        return registry.make_environment(self.environment_name, self.environment_options)

    @cached_property
    def env(self) -> Any:
        """The environment with Gymnasium's interface."""
        return registry.make_gymnasium(self.environment_name, self.environment_options)

    @cached_property
    def options(self) -> Any:
        """The algorithm's options."""
        return registry.algorithm(self.config.algorithm).Config.from_values(self.config.options).fit(self.environment)

    @cached_property
    def network(self) -> Network:
        """The shape of the policy; raise ValueError if the parameters or the environment do not fit it."""
        environment, options = self.environment, self.options
        sizes = (environment.observation_size, *options.hidden_sizes, environment.action_size)
        network = Network(sizes, options.network_style(environment))
        expected = mlp.num_parameters(*network)
        if self.theta.shape != (expected,):
            raise ValueError(
                f"the checkpoint has {self.theta.size} parameters, its config asks for {expected} in "
                f"{self.environment_name} ({sizes[0]} observations, {sizes[-1]} actions); "
                f"the policy was trained in {self.config.environment}"
            )
        if self.exported is not None:
            require_agreement(self.exported, network, environment if self.is_at_home else None)
        return network

    @cached_property
    def roller(self) -> Roller:
        """Rollouts of the policy; raise ValueError if the environment does not fit it."""
        _ = self.network  # raises ValueError before anything is compiled
        return registry.make_roller(self.environment, self.options)

    @cached_property
    def _forward(self) -> mlp.Forward:
        return mlp.Forward(*self.network)

    def act(self, observation) -> np.ndarray:
        """Return the actions [..., A] for observations [..., O] without noise, clipped as the environment does."""
        observed, size = np.asarray(observation, dtype=np.float64), self.network.sizes[0]
        if observed.shape[-1:] != (size,):
            raise ValueError(f"observation must have {size} numbers, got shape {observed.shape}")
        is_limited, limits = self.roller.is_action_limited, (self.environment.action_low, self.environment.action_high)
        actions = self._forward(self.theta, observed)
        return np.where(is_limited, np.clip(actions, *limits), actions)

    def evaluate(
        self,
        *,
        num_episodes: int = 20,
        seed: int = 0,
        start_values: Mapping[str, float] | None = None,
        is_stochastic: bool = False,
    ) -> "Evaluation":
        """Run episodes, as the function `evaluate` does."""
        return evaluate(
            self, num_episodes=num_episodes, seed=seed, start_values=start_values, is_stochastic=is_stochastic
        )

    def __getstate__(self) -> dict:
        """Pickle what was loaded; environments and compiled code are made anew."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def load(path: str | Path, *, use_best: bool = False, env: str | Callable | None = None) -> Trained:
    """Load the newest checkpoint of a run folder, or of its folder `best` or `checkpoints`, or a single checkpoint.

    A path may also be an exported policy, FILE.npz, or one of the package: "pretrained:NAME".

    Pass `env` to use another environment than the run's, to allow importing the module that the run names
    (`module:Id`), or to pass the callable again that made the run's.
    """
    if str(path).startswith(PRETRAINED) or str(path).endswith(".npz"):
        if use_best:
            raise ValueError(f"--best chooses among a run's checkpoints, and {path} is a single policy; leave it out")
        return load_file(find_file(path), env)
    path = Path(path).expanduser()
    is_part = checkpoint.is_checkpoint(path) or checkpoint.has_checkpoints(path)
    if use_best and is_part:
        raise ValueError(f"--best chooses among a run's checkpoints, and {path} is not a run; pass the run's folder")
    state = checkpoint.load(path, skip=checkpoint.REPLAY) if checkpoint.is_checkpoint(path) else None
    if state is None:
        folder = RunFolder(path)
        newest = path if is_part else folder.best if use_best else folder.checkpoints
        state = checkpoint.load_newest(newest, skip=checkpoint.REPLAY)
    if state is None:
        folder.read_config()  # raises ValueError if there is no run
        what, why = ("best parameters", "no episode has ended") if use_best else ("checkpoint", "it has just begun")
        wait = "wait for its next checkpoint, or stop it (Ctrl-C or SIGUSR1), which saves one"
        raise ValueError(f"{path} has no {what} yet: {why}; {wait}")
    check_state(state)
    return Trained(RunConfig.from_checkpoint(state), state, env)


def check_state(state: Mapping[str, Any]) -> None:
    """Raise ValueError unless a checkpoint has the parameters of a policy and the number of its iteration."""
    policy, progress = (state.get(component) for component in ("policy", "progress"))
    if not (isinstance(policy, dict) and isinstance(progress, dict)):
        raise ValueError("the checkpoint is not one of a run: it has no policy or no progress")
    theta, iteration = np.asarray(policy.get("theta", "")), np.asarray(progress.get("iteration", ""))
    if theta.dtype != np.float64 or theta.ndim != 1 or not np.isfinite(theta).all():
        raise ValueError("policy/theta of the checkpoint must be a vector of finite numbers in double precision")
    if iteration.dtype.kind != "i" or iteration.ndim or iteration < 0:
        raise ValueError("progress/iteration of the checkpoint must be a whole number of at least 0")


def find_file(path: str | Path) -> Path:
    """Return the file of an exported policy, or of one in the package."""
    name = str(path)
    if not name.startswith(PRETRAINED):
        return Path(path).expanduser()
    name, known = name.removeprefix(PRETRAINED), sorted(file.stem for file in AGENTS.glob("*.npz"))
    if name not in known:
        raise ValueError(f"no policy {name!r} in the package{did_you_mean(name, known)}; it has {', '.join(known)}")
    return AGENTS / f"{name}.npz"


def load_file(path: Path, env: str | Callable | None = None) -> Trained:
    """Load an exported policy."""
    policy, config, iteration = arrays.read(path)
    state = {"policy": {"theta": policy.theta}, "progress": {"iteration": np.asarray(iteration)}, "config": config}
    try:
        return Trained(RunConfig.from_checkpoint(state), state, env, exported=policy)
    except ValueError as error:
        raise ValueError(f"{path} is not an exported policy, or is damaged: {error}; export it again") from error


def require_agreement(exported: Policy, network: Network, environment: Any | None) -> None:
    """Raise ValueError if a file's policy is not the one that its config describes, in its own environment if given."""
    expected = dataclasses.replace(exported, sizes=network.sizes, style=network.style)
    pairs = [(exported.centre, expected.centre), (exported.scale, expected.scale)]
    if environment is not None:
        is_limited = environment.is_action_limited & np.ones(network.sizes[-1], dtype=bool)
        pairs.append((exported.low, np.where(is_limited, environment.action_low, -np.inf)))
        pairs.append((exported.high, np.where(is_limited, environment.action_high, np.inf)))
    is_same = exported.sizes == network.sizes and exported.style[:2] == network.style[:2]
    is_same &= exported.style.has_linear_part == network.style.has_linear_part
    if not (is_same and all(np.allclose(found, wanted, rtol=1e-6) for found, wanted in pairs)):
        raise ValueError(
            "the file's network or action limits are not those of its config; it is damaged, or was exported with an "
            "output limit: export it without"
        )


class Verdict(NamedTuple):
    """The judgement of an evaluation: do the means meet the environment's criterion, and how many episodes do."""

    name: str  # such as "solved"
    is_met: bool
    num_met: int
    num_episodes: int

    def __str__(self) -> str:
        return f"{'' if self.is_met else 'not '}{self.name} ({self.num_met} of {self.num_episodes})"


@dataclass
class Evaluation:
    """Per-episode results [E] by name, and the rollouts from `start_states` [E, S] that gave them, on rank 0."""

    results: dict[str, np.ndarray]
    start_states: np.ndarray
    rollouts: Any
    environment: Any
    verdict: Verdict | None = None  # where the environment has a criterion
    has_noise: bool = False  # True if the policy acted with exploration noise

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, standard deviation, minimum and maximum of each result."""
        names = ("mean", "std", "min", "max")
        return {key: {s: float(getattr(values, s)()) for s in names} for key, values in self.results.items()}


def evaluate(
    trained: Trained,
    *,
    num_episodes: int = 20,
    seed: int = 0,
    start_values: Mapping[str, float] | None = None,
    is_stochastic: bool = False,
    comm: Comm | None = None,
) -> Evaluation:
    """Run episodes from random starts, in which `start_values` replace some quantities. The ranks share them.

    With `is_stochastic` the policy acts with the exploration noise of its algorithm, if that has any. Without noise,
    starts that are all the same are evaluated once.
    """
    comm = comm or Comm()
    environment, roller = trained.environment, comm.warm_up(lambda: trained.roller)
    states = make_starts(environment, roller, num_episodes, seed, start_values or {})
    offsets = draw_noise(trained, seed, num_episodes) if is_stochastic else None
    if offsets is None and (states == states[0]).all():
        states = states[:1]
    mine, num = comm.share(len(states)), len(states)
    own_offsets = None if offsets is None else offsets[mine]
    own = roller.rollouts(trained.theta, states[mine], offsets=own_offsets, num_recorded=environment.horizon)
    parts: list[Any] = [comm.gather_on_root(part, num) for part in own]
    rollouts = Rollouts(*parts)
    results, verdict = comm.on_root(lambda: score(environment, trained.options.gamma, rollouts))
    return Evaluation(results, states, rollouts, environment, verdict, offsets is not None)


def draw_noise(trained: Trained, seed: int, num_episodes: int) -> np.ndarray | None:
    """Return the exploration noise [E, T, A] of the policy's algorithm, or None if it has none."""
    environment = trained.environment
    shape = (num_episodes, environment.horizon, environment.action_size)
    draw = registry.algorithm(trained.config.algorithm).exploration
    return draw(trained.options, environment, trained.state, generator(seed, "actions"), shape)


def score(environment, gamma: float, rollouts: Rollouts) -> tuple[dict[str, np.ndarray], Verdict | None]:
    """Return the results [E] of episodes by name, and the verdict where the environment has a criterion."""
    results = {
        "return": rollouts.rewards.sum(axis=1),
        "discounted_return": rollouts.discounted_returns,
        "payoff": rollouts.discounted_returns / (gamma ** np.arange(environment.horizon)).sum(),
    }
    if environment.measure is not None:
        measured = [environment.measure(environment.params, state) for state in rollouts.final_states]
        results |= {name: np.array([m[name] for m in measured]) for name in measured[0]}
    return results, judge(environment, rollouts.rewards, results)


def judge(environment, rewards: np.ndarray, results: dict[str, np.ndarray]) -> Verdict | None:
    """Return the verdict on episodes with rewards [E, T]; it has its own discount for the payoff."""
    criterion = environment.criterion
    if criterion is None:
        return None
    weights = criterion.gamma ** np.arange(environment.horizon)
    seen = {**results, "payoff": rewards @ weights / weights.sum()}
    met = [criterion.is_met({name: values[e] for name, values in seen.items()}) for e in range(len(rewards))]
    means = {name: values.mean() for name, values in seen.items()}
    return Verdict(criterion.name, bool(criterion.is_met(means)), int(sum(met)), len(met))


def make_starts(environment, roller, num_episodes: int, seed: int, start_values: Mapping[str, float]) -> np.ndarray:
    """Draw the start states [E, S]; raise ValueError if the episodes would not fit into memory."""
    floats_per_step = environment.observation_size + environment.action_size + 1
    floats = num_episodes * (2 * environment.horizon * floats_per_step + 2 * environment.state_size)
    require_memory("--episodes", 8 * floats)
    states = roller.start_states(generator(seed, "evaluation").random((num_episodes, environment.start_size)))
    for state in states if start_values else ():
        environment.place(state, start_values)
    return states
