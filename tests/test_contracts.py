"""The package's own classes fit the Protocols."""

import inspect

import numpy as np
import pytest

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.contracts import Algorithm, Environment, Learner, Roller
from tdpo_baselines.options import registry

SMALL = {"hidden_sizes": (4,), "num_trajectories": 4}


def make_environment(name: str) -> Environment:
    return registry.make_environment(name, registry.resolve_options(name, {}))


def parameters_of(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_algorithm_fits(name):
    algorithm = registry.algorithm(name)
    assert isinstance(algorithm, Algorithm)
    for method in ("check", "exploration"):
        assert parameters_of(getattr(algorithm, method)) == parameters_of(getattr(Algorithm, method))
    assert parameters_of(algorithm.Learner) == ["config", "roller", "comm", "seed"]


@pytest.mark.parametrize("name", [*registry.ENVIRONMENTS, "Pendulum-v1", "Swimmer-v5"])
def test_environment_fits(name):
    assert isinstance(make_environment(name), Environment)


@pytest.mark.parametrize("name", ["pendulum-20hz", "Pendulum-v1"])
def test_roller_fits(name):
    roller = registry.make_roller(make_environment(name), registry.algorithm("tdpo").Config.from_values(SMALL))
    assert isinstance(roller, Roller)
    for method in ("start_states", "rollouts", "observe"):
        assert parameters_of(getattr(roller, method)) == parameters_of(getattr(Roller, method))


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_learner_fits_and_its_state_has_components_of_arrays(name):
    algorithm = registry.algorithm(name)
    environment = make_environment("pendulum-20hz")
    config = algorithm.Config.from_values(SMALL).fit(environment)
    learner = algorithm.Learner(config, registry.make_roller(environment, config), Comm(), 0)
    assert isinstance(learner, Learner)
    for method in ("iterate", "state", "replicated", "load_state", "begin_from"):
        assert parameters_of(getattr(learner, method)) == parameters_of(getattr(Learner, method))
    state = learner.state()
    assert state["policy"]["theta"].shape == learner.theta.shape
    for component, arrays in learner.replicated().items():
        assert set(arrays) <= set(state[component])
    kinds = {np.asarray(array).dtype.kind for arrays in state.values() for array in arrays.values()}
    assert kinds <= set("fiu")  # numbers
