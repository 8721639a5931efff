"""An electric joint: a second-order motor, then a map to the torque at the joint.

The motor is integrated exactly, for a command that is constant over a time step. The torque map is a fit to dynamometer
data of the leg's joints, with saturation and losses. It is discontinuous: at rest, a command of zero gives -0.248 N m.
"""

import math

from numba import njit

RPM_PER_RATE = 23.3594 * 60 / (2 * math.pi)  # motor rpm per rad/s of the joint


def motor_transition(period: float, overshoot: float, time_step: float) -> tuple[float, float, float, float]:
    """Return exp(A dt) of x'' = -omega^2 x - 2 zeta omega x', where x is the motor's torque minus the command.

    The step response has a period (s) and an overshoot as a fraction of the step.
    """
    omega = 2 * math.pi / period
    zeta = -math.log(overshoot) / math.hypot(math.pi, math.log(overshoot))
    decay, damped = zeta * omega, omega * math.sqrt(1 - zeta**2)
    c = math.exp(-decay * time_step) * math.cos(damped * time_step)
    s = math.exp(-decay * time_step) * math.sin(damped * time_step) / damped
    return c + decay * s, s, -(omega**2) * s, c - decay * s


@njit
def advance_motor(transition, torque, torque_rate, command):
    """Return the motor's torque and its rate after one time step."""
    x = torque - command
    return command + transition[0] * x + transition[1] * torque_rate, transition[2] * x + transition[3] * torque_rate


@njit
def joint_torque(torque, joint_rate):
    """Return the torque at the joint (N m) from the motor's torque and the joint's true rate."""
    rpm = RPM_PER_RATE * abs(joint_rate)
    t = abs(torque)
    current = ((0.3518 * t - 1.677) * t + 186.0537) * t
    current = min(current, max(0.0, 2000.0 + min(0.0, -0.368 * (rpm - 4830.0))))
    result = (
        -0.248090029
        + 5.95753139e-3 * current
        + 1.11332764e-4 * rpm
        - 5.66257261e-7 * current * current
        - 1.71874239e-7 * current * rpm
        - 1.17675521e-8 * rpm * rpm
    )
    return -result if torque < 0.0 else result
