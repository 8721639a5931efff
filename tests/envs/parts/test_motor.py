import numpy as np
import pytest
from leg_states import REFERENCE

from envs.leg.params import MOTOR_TRANSITION
from envs.parts import motor


def test_motor_answers_a_unit_step_as_specified():
    torque, torque_rate, response = 0.0, 0.0, []
    for _ in REFERENCE["motor_unit_step_response"]:
        response.append(torque)
        torque, torque_rate = motor.advance_motor(MOTOR_TRANSITION, torque, torque_rate, 1.0)
    np.testing.assert_allclose(response, REFERENCE["motor_unit_step_response"], atol=1e-10)


def test_torque_map_equals_the_reference():
    for speed, torques in REFERENCE["torque_map_by_joint_speed"].items():
        for torque, expected in torques.items():
            for direction in (1, -1):
                rate = direction * float(speed.removeprefix("w="))
                assert motor.joint_torque(float(torque), rate) == pytest.approx(expected, rel=1e-12)


def test_torque_map_is_discontinuous_at_zero_and_zero_counts_as_positive():
    assert motor.joint_torque(0.0, 0.0) == -0.248090029
    assert motor.joint_torque(-1e-12, 0.0) - motor.joint_torque(0.0, 0.0) == pytest.approx(0.496, abs=1e-3)
