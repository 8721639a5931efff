import hashlib

import numpy as np
import pytest
from controllers import NETWORKS, make_controller

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.exporting.policy import make_policy, record_observations
from tdpo_baselines.options import registry


def make_roller(environment: str, algorithm: str = "tdpo", **options):
    made = registry.make_environment(environment, registry.resolve_options(environment, {}))
    return registry.make_roller(
        made, registry.algorithm(algorithm).Config.from_values({"hidden_sizes": [8], **options})
    )


@pytest.mark.parametrize("network", NETWORKS)
def test_parts_are_those_of_theta_in_order(network):
    policy = make_controller(network).policy
    parts = [array.ravel() for layer in policy.layers for array in layer]
    parts += [] if policy.linear is None else [policy.linear.ravel()]
    assert np.array_equal(np.concatenate(parts), policy.theta)
    assert policy.sha256 == hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


@pytest.mark.parametrize("network", NETWORKS)
def test_single_precision_differs_from_double_by_rounding_only(network):
    policy, rows = make_controller(network).policy, np.random.default_rng(0).standard_normal((50, 20))
    rows = rows[:, : policy.sizes[0]]
    single = policy.act_in_single_precision(rows)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, policy.act(rows), rtol=1e-4, atol=1e-4)


def test_actions_are_those_of_rollouts_with_the_environments_limits():
    roller = make_roller("pendulum-20hz")
    theta = 2 * np.random.default_rng(0).standard_normal(roller.num_parameters)
    policy = make_policy(theta, roller)
    rollouts = roller.rollouts(theta, roller.start_states(np.full((1, 2), 0.3)))
    assert np.array_equal(policy.act(rollouts.observations[0]), rollouts.actions[0])
    assert policy.low == -2 and policy.high == 2 and np.abs(rollouts.actions).max() == 2


def test_range_that_the_environment_does_not_enforce_is_no_limit():
    roller = make_roller("leg")
    policy = make_policy(np.zeros(roller.num_parameters), roller)
    assert np.isinf(policy.low).all() and np.isinf(policy.high).all()


def test_observations_are_those_of_an_episode():
    roller = make_roller("delayed-spring")
    observations = record_observations(np.zeros(roller.num_parameters), roller)
    assert observations.shape == (100, 2) and abs(observations[0, 0]) <= 1 and observations[0, 1] == 0


def test_parameters_that_do_not_fit_or_are_not_finite_are_refused():
    roller = make_roller("pendulum-20hz")
    num = mlp.num_parameters(roller.layer_sizes, roller.style)
    with pytest.raises(ValueError, match=rf"parameters of shape \({num - 1},\), its config asks for \({num},\)"):
        make_policy(np.zeros(num - 1), roller)
    with pytest.raises(ValueError, match="not finite"):
        make_policy(np.full(num, np.nan), roller)
