"""Options of TDPO: those of all variants, the paper's, those of its advanced variant, and ours."""

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from ..common.learners.settings import action_range
from ..common.networks import mlp
from ..common.parallel.checks import require_memory, require_trajectories
from ..common.parallel.execution import ROWS_PER_GROUP
from ..options.config import Settings, option, ours, paper

SMALLEST = 1e-100  # value of a schedule that decays
EVERY = "Options of all variants"
ADAPTIVE_VALUES = ("uniform",)  # what the adaptive variant fills in for options that are not its own
every = partial(option, group=EVERY)
advanced = partial(option, group="Options of the advanced variant")


@dataclass(frozen=True)
class Config(Settings):
    variant: str = every(
        "adaptive",
        "adaptive: finds all scales by itself; basic and advanced: the paper's, with the options below (advanced: line "
        "search in the environment, adaptive exploration scale)",
        choices=("adaptive", "basic", "advanced"),
    )
    num_trajectories: int = every(
        None,
        "main trajectories per update, over all ranks; none: 8, basic and advanced 48 (paper: 48 or 72)",
        low=1,
        high=10**6,
    )
    num_branches: int = every(4, "branches per main trajectory; ignored if branch_times=all", low=1, high=10**6)
    gamma: float = every(
        None,
        "discount per step; 1 averages over the horizon; none: 1 - 2 / horizon, basic and advanced 0.99 (paper, leg: "
        "0.99975)",
        above=0,
        high=1,
    )
    hidden_sizes: tuple[int, ...] = every((64, 64), "hidden layers, tanh (paper: 64,64)", low=1, high=4096, longest=8)
    output_gain: float = every(0.001, "scale of the initial output weights (authors' code: 0.001)", low=0, high=10)
    max_branch_steps: int | None = every(
        None,
        "end branches after this many steps: less variance of g, some bias; none: at the horizon; adaptive: drawn anew "
        "at every update, at the horizon if the task is paid at its end",
        low=1,
        high=10**9,
    )
    cg_iterations: int = every(10, "conjugate gradient iterations at most (authors' code: 11)", low=1, high=10**4)
    cg_tolerance: float = every(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)

    branch_times: str = paper(
        None,
        "distribution nu of the branch times; all: every step and coordinate (Theorem 4.1); none: geometric, adaptive "
        "uniform",
        choices=("geometric", "uniform", "all"),
    )
    reward_scale: float = paper(
        5.0, "alpha of the paper's recipe: per-step reward between a null and an optimal policy", low=1e-12, high=1e12
    )
    action_scale: float = paper(5.0, "beta of the paper's recipe: size of the actions", low=1e-9, high=1e9)
    exploration_std: float = paper(None, "sigma of the perturbations; none: beta / 60", above=0, high=1e12)
    c2: float = paper(
        None, "penalty on E[W^2]; 0 always steps to the trust region; none: 3600 alpha / beta^2", low=0, high=1e18
    )
    c1_over_c2: float = paper(
        1.0, "penalty on the policy's sensitivity relative to c2 (paper: 1, authors' advanced run: 0)", low=0, high=1e12
    )
    delta_max: float = paper(
        None, "trust region: largest r.m.s. change of the action per update; none: beta / 600", above=0, high=1e12
    )
    cg_damping: float = paper(
        1e-2, "multiple of the identity added to H in the solver (authors' default: 0.01)", low=0, high=1e12
    )

    line_search_size: int = advanced(9, "step coefficients tried, zero among them (authors' code: 9)", low=2, high=1000)
    line_search_span: float = advanced(
        1e-5, "smallest coefficient but zero; the largest is 1 (authors' code: 1e-5)", above=0, high=1
    )
    line_search_replicates: int = advanced(
        24, "trajectories that try each coefficient, from the same starts (authors' code: 24)", low=1, high=10**6
    )
    exploration_learning_rate: float = advanced(
        1e-2, "Adam's step of log sigma per update (authors' code: 0.01)", low=0, high=1
    )

    is_stratified: bool = ours(True, "draw branch times and starts systematically instead of independently")
    is_two_sided: bool = ours(True, "antithetic pairs: roll each branch out with +delta and -delta")
    directions: str = ours(
        None,
        "perturb one action coordinate per branch, or all at once; none: coordinate, advanced variant: gaussian",
        choices=("coordinate", "gaussian"),
    )
    held_steps: int = ours(
        1,
        "steps for which a perturbation is held; g averages over as many neighbouring steps (paper: 1; authors' "
        "advanced run: 10)",
        low=1,
        high=10**6,
    )
    early_branch_steps: int | None = ours(
        None,
        "draw three quarters of the branch times from this many first steps, with weights that keep g unbiased: for "
        "tasks that are decided early; none: all follow branch_times; ignored if branch_times=all",
        low=1,
        high=10**9,
    )
    branch_growth_steps: float | None = ours(
        None,
        "timesteps after which max_branch_steps has doubled: max_branch_steps * (1 + steps / this); none: constant",
        above=0,
        high=1e18,
    )
    advantage_clip: float | None = ours(
        None, "clip advantages to this multiple of the median size of the nonzero ones; none: never", above=0, high=1e12
    )
    use_observation_normalisation: bool = ours(
        False, "take derivatives of a network that sees observations of mean 0 and standard deviation 1"
    )
    delta_decay_steps: float | None = ours(
        None,
        "timesteps after which delta_max has halved: delta_max / (1 + steps / this); none: constant",
        above=0,
        high=1e18,
    )
    exploration_decay_steps: float | None = ours(
        None,
        "timesteps after which exploration_std has halved; none: constant; ignored in the advanced variant",
        above=0,
        high=1e18,
    )
    max_drop: float | None = ours(
        None,
        "if the payoff falls below the best so far by this multiple of the best's size, go back to the best parameters "
        "and halve the trust region, which then recovers by a tenth per update; after three times in a row, discard "
        "the best; none: never go back",
        above=0,
        high=1e12,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.is_adaptive:
            self._refuse_unused()
            defaults: dict[str, Any] = {"num_trajectories": 8, "branch_times": "uniform"}
        else:
            alpha, beta = self.reward_scale, self.action_scale
            defaults = {
                "num_trajectories": 48,
                "branch_times": "geometric",
                "gamma": 0.99,
                "exploration_std": beta / 60,
                "c2": 3600 * alpha / beta**2,
                "delta_max": beta / 600,
                "directions": "gaussian" if self.is_advanced else "coordinate",
            }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def _refuse_unused(self) -> None:
        """Raise ValueError if an option is given that the adaptive variant does not have."""
        for field in fields(self):
            if field.metadata["group"] != EVERY and getattr(self, field.name) not in (field.default, *ADAPTIVE_VALUES):
                raise ValueError(
                    f"{field.name} is no option of the adaptive variant, which chooses it by itself; leave it out, or "
                    f"pass variant=basic too"
                )

    def fit(self, environment) -> "Config":
        """Return the config with the discount that suits an environment's horizon, if none was given."""
        return self if self.gamma is not None else self.with_values(gamma=1 - 2 / max(environment.horizon, 4))

    def network_style(self, environment) -> mlp.Style:
        """Return the paper's plain network, or one with a linear part and outputs in half ranges of the action."""
        if not self.is_adaptive:
            return mlp.PLAIN
        centre, scale = (tuple(part.tolist()) for part in action_range(environment))
        return mlp.Style(centre=centre, scale=scale, has_linear_part=bool(self.hidden_sizes))

    @property
    def is_adaptive(self) -> bool:
        return self.variant == "adaptive"

    @property
    def is_advanced(self) -> bool:
        return self.variant == "advanced"

    @property
    def solver(self) -> dict[str, Any]:
        """Options of conjugate gradient."""
        return {
            "max_iterations": self.cg_iterations,
            "tolerance": self.cg_tolerance,
            "damping": self.cg_damping,
        }

    def branches_per_trajectory(self, horizon: int, action_size: int) -> int:
        """Return K, which branch_times=all makes the number of steps times coordinates."""
        return horizon * action_size if self.branch_times == "all" else self.num_branches

    def at(self, total_timesteps: int, horizon: int) -> "Config":
        """Return the config with its schedules evaluated after `total_timesteps`."""

        def growth(steps: float | None) -> float:
            return 1 + total_timesteps / (steps or math.inf)

        longest = self.max_branch_steps
        return self.with_values(
            delta_max=max(self.delta_max / growth(self.delta_decay_steps), SMALLEST),
            exploration_std=max(self.exploration_std / growth(self.exploration_decay_steps), SMALLEST),
            max_branch_steps=longest and round(min(longest * growth(self.branch_growth_steps), max(longest, horizon))),
        )

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        how = environment.how_branches_start
        lines = [f"branches start {how}"] if how else []
        if self.is_adaptive:
            lines.append(
                f"adaptive variant: discount {self.gamma:.6g} for {environment.horizon} steps, actions in units "
                f"of half their range; column step_w shows the size of the steps as it adapts"
            )
        return lines


def check(config: Config, environment, num_ranks: int) -> None:
    """Raise ValueError if the options cannot run: too few trajectories, too long a window, too much memory."""
    N, D = config.num_trajectories, config.held_steps
    require_trajectories(N, num_ranks)
    if D > environment.horizon:
        raise ValueError(f"held_steps must be at most the horizon ({environment.horizon}), got {D}")
    if config.max_branch_steps is not None and config.max_branch_steps < D:
        raise ValueError(f"max_branch_steps must be at least held_steps ({D}), got {config.max_branch_steps}")
    if config.is_advanced and config.directions != "gaussian":
        raise ValueError("directions must be gaussian in the advanced variant, whose exploration scale adapts to them")
    O, A = environment.observation_size, environment.action_size
    K = config.branches_per_trajectory(environment.horizon, A)
    P = mlp.num_parameters((O, *config.hidden_sizes, A), config.network_style(environment))
    main = N / num_ranks * (environment.horizon * (O + A + 2) + 5 * K * environment.state_size)
    units = (A + 1) * (sum(config.hidden_sizes) + O) * (1 + 2 * O * (config.c1_over_c2 > 0))  # of the Jacobians
    rows = N * K * D * (4 * (O + 2 * A + 4) + units / num_ranks + P / ROWS_PER_GROUP) + 20 * P
    require_memory("num_trajectories, num_branches, held_steps and hidden_sizes", 8 * (main + rows))
