"""The actuator: a second-order motor, then a map to the torque at the joint.

The motor's step response has 30 % overshoot and a period of 1.4 ms. It is integrated exactly, for a command that is
constant over a physics step. The torque map is a fit to dynamometer data with saturation and losses. It is
discontinuous: at rest, a command of zero gives -0.248 N m.
"""

import math

from numba import njit

from .params import PHYSICS_RATE_HZ

PERIOD = 0.0014  # s
OVERSHOOT = 0.3
RPM_PER_RATE = 23.3594 * 60 / (2 * math.pi)  # motor rpm per rad/s of the joint

_omega = 2 * math.pi / PERIOD
_zeta = -math.log(OVERSHOOT) / math.hypot(math.pi, math.log(OVERSHOOT))


def _transition() -> tuple[float, float, float, float]:
    """Return exp(A dt) of x'' = -omega^2 x - 2 zeta omega x', where x is the motor's torque minus the command."""
    dt = 1 / PHYSICS_RATE_HZ
    decay, damped = _zeta * _omega, _omega * math.sqrt(1 - _zeta**2)
    c, s = math.exp(-decay * dt) * math.cos(damped * dt), math.exp(-decay * dt) * math.sin(damped * dt) / damped
    return c + decay * s, s, -(_omega**2) * s, c - decay * s


A11, A12, A21, A22 = _transition()


@njit
def advance_motor(torque, torque_rate, command):
    """Return the motor's torque and its rate after one physics step."""
    x = torque - command
    return command + A11 * x + A12 * torque_rate, A21 * x + A22 * torque_rate


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
