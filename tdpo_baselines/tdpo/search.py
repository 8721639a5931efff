"""The search: the adaptive variant where the reward is paid along the way.

No perturbation size, branch length or step length suits all tasks, or even all of a run. So every update draws the
size of its perturbations and the length of its branches log-uniformly, and tries the step that they give at several
radii.

Glossary, beside that of adaptive.py
  name                shape                meaning
  trial_theta         [P]                  parameters after a step of radius 1
  radii               [7]                  radii that are tried, zero among them
"""

import numpy as np

from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from .adaptive import HELD_FRACTION, AdaptiveLearner, Choice, Sample, Scales, log_uniform
from .config import Config
from .devine import Plan
from .line_search import LineSearch, search_line
from .tdpo import Step

MEMORY = 0.3  # weight per update of age: the directions of successive updates should differ
RADII, NUM_RADII = (1e-4, 0.5), 6  # in half ranges of the action, and how many are tried
PERTURBATIONS = (0.003, 0.1)  # in half ranges
BRANCHES = (1 / 160, 1 / 8)  # of the horizon
BRANCH_STEPS = 100  # upper limit of the branches if that is more
HELD_PART = 1 / 3  # of a branch: longest perturbation


def draw_scales(rng: np.random.Generator, horizon: int, longest_branch: int | None = None) -> Scales:
    """Draw the scales of an update; the length of the branches may be given."""
    shortest, longest = (max(1.0, fraction * horizon) for fraction in BRANCHES)
    longest = max(longest, min(BRANCH_STEPS, horizon))
    perturbation, branch = log_uniform(rng.random(2), np.array([PERTURBATIONS, (shortest, longest)]).T)
    branch = longest_branch or branch
    hold = min(HELD_FRACTION * horizon, HELD_PART * branch)
    return Scales(perturbation, max(1, round(hold)), round(branch))


class SearchLearner(AdaptiveLearner):
    """The adaptive variant with a search for every step."""

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self.trial_theta = self.theta

    def _choose_scales(self, rng: np.random.Generator) -> Scales:
        return draw_scales(rng, self.roller.horizon, self.config.max_branch_steps)

    def _choose_policy(self, plan: Plan, iteration: int) -> Choice:
        search = self._search_line(plan.starts, iteration)
        (mains,), _, num_steps = self._roll_mains((self.theta,), plan)
        gain = search.gain * self._discounts[0]
        return Choice(mains, num_steps + search.num_steps, gain, radius=search.coefficient)

    def _search_line(self, starts: np.ndarray, iteration: int) -> LineSearch:
        """Try the last step at several radii, zero among them, from the same starts; take the best."""
        step = self.trial_theta - self.theta  # of radius 1
        if not step.any():
            return LineSearch(coefficient=0.0)
        offset = generator(self.seed, "line_search", iteration).random()
        radii = np.append(0.0, log_uniform((np.arange(NUM_RADII) + offset) / NUM_RADII, RADII))
        starts = starts if self.roller.start_size > 0 else starts[:1]
        search = search_line(self.roller, self.comm, radii, self.theta, step, starts)
        self.theta = self.theta + search.coefficient * step
        return search

    def _choose_step(self, sample: Sample, choice: Choice) -> Step:
        step = self._find_step(MEMORY, radius=1.0)
        self.trial_theta = self.theta + step.delta_theta
        return step._replace(step_w=choice.radius)  # of the step before, which was taken

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        return {**super().state(), "trial": {"theta": self.trial_theta}}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        super().load_state(state)
        self.trial_theta = state["trial"]["theta"]

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before."""
        super().begin_from(state)
        self.trial_theta = self.theta
