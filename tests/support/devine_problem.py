"""A kernel, a policy and the DeVine gradient, for the tests of TDPO."""

import linear_quadratic
import numpy as np

from envs.pendulum import nlr as pendulum
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks.jacobian import Jacobian
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.tdpo import Config, devine
from tdpo_baselines.tdpo.tdpo import make_rows


class Problem:
    """A kernel, a policy, and the DeVine gradient of a plan."""

    def __init__(self, kernel, hidden_sizes, *, output_gain, **options):
        self.config = Config(hidden_sizes=hidden_sizes, **{"variant": "basic", **options})
        self.kernel = kernel
        self.roller = KernelRoller(kernel, hidden_sizes, self.config.gamma)
        self.sizes = self.roller.layer_sizes
        self.theta = mlp.init_parameters(self.sizes, np.random.default_rng(1), output_gain)
        self.std = np.full(kernel.action_size, self.config.exploration_std)
        self.nu = devine.TimeDistribution(self.config, kernel.horizon)

    def plan(self, iteration=0):
        return devine.draw_plan(
            self.config,
            generator(0, "plan", iteration),
            self.std,
            horizon=self.roller.horizon,
            start_size=self.kernel.start_size,
        )

    def vines(self, plan):
        return devine.roll_vines(self.config, self.roller, self.nu, self.theta, plan)

    def times(self, plan):
        return np.array([self.nu.times_and_weights(quantiles, self.roller.horizon)[0] for quantiles in plan.quantiles])

    def gradient(self, plan):
        rows = make_rows(self.vines(plan), self.std, self.config.gamma, 1.0)
        return Jacobian(self.theta, rows.observations, self.sizes).vjp(rows.gradients)[0]

    def payoff(self, theta, starts):
        rewards = self.roller.rollouts(theta, self.roller.start_states(starts)).rewards
        return (rewards @ devine.discounts(self.config.gamma, self.roller.horizon)).mean()

    def finite_difference_gradient(self, starts, size=1e-5):
        steps = size * np.eye(len(self.theta))
        return np.array(
            [(self.payoff(self.theta + s, starts) - self.payoff(self.theta - s, starts)) / (2 * size) for s in steps]
        )


def swinging_pendulum(**options):
    """Return a pendulum that swings smoothly about the hanging position: the start is near theta = 0.9 pi."""
    kernel = pendulum.nlr_kernel(1, start_scale=1.0)
    return Problem(kernel, (6, 5), output_gain=2.0, num_trajectories=1, branch_times="all", **options)


def toy(**options):
    return Problem(linear_quadratic.kernel(), (4,), output_gain=1.0, **{"gamma": 0.95, **options})


def relative_error(estimate, expected):
    return np.linalg.norm(estimate - expected) / np.linalg.norm(expected)
