import json

import numpy as np
import pytest
from controllers import make_controller

from tdpo_baselines.exporting import contract
from tdpo_baselines.options import registry


def make_environment(name: str, **options):
    return registry.make_environment(name, registry.resolve_options(name, options))


def test_contract_of_the_leg_has_names_units_rate_and_delays():
    controller = make_controller("tdpo-paper")
    told = contract.describe(controller, make_environment("leg", torque_delay_steps=8), 4000.0)
    assert (told["control_rate_hz"], told["observation_delay_s"], told["action_delay_s"]) == (4000, 0.001, 0.002)
    assert [(signal["name"], signal["unit"]) for signal in told["observations"]] == [
        ("hip_angle", "rad"), ("knee_angle", "rad"), ("hip_rate", "rad/s"), ("knee_rate", "rad/s"),
    ]  # fmt: skip
    assert told["actions"][0] == {"name": "hip_torque", "unit": "N m", "limits": [None, None], "range": [-10.0, 10.0]}
    seen = np.array([signal["seen"] for signal in told["observations"]]).T
    assert np.array_equal(seen, [controller.observations.min(axis=0), controller.observations.max(axis=0)])
    assert told["parameters_sha256"] == controller.policy.sha256 and told["network"]["sizes"] == [4, 64, 64, 2]
    assert json.loads(json.dumps(told)) == told


def test_signals_of_another_library_have_no_names():
    told = contract.describe(make_controller("ddpg-tanh"), make_environment("Pendulum-v1"), None)
    assert told["observations"][2]["name"] is None and len(told["observations"]) == 3
    assert told["control_rate_hz"] is None and told["action_delay_s"] is None


def test_control_rate_is_the_environments_if_it_has_one():
    leg, other = make_environment("leg"), make_environment("Pendulum-v1")
    assert contract.choose_rate(leg, None) == contract.choose_rate(leg, 4000.0) == 4000
    assert contract.choose_rate(other, None) is None and contract.choose_rate(other, 20.0) == 20
    with pytest.raises(ValueError, match="rate_hz must be positive and finite, got 0"):
        contract.choose_rate(other, 0.0)
    with pytest.raises(ValueError, match="rate_hz must be 4000, at which the policy was trained, got 100"):
        contract.choose_rate(leg, 100.0)
