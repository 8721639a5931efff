import math

import mujoco
import numpy as np
import pytest
from leg_states import place

from envs.leg import kernels, model, report
from envs.leg.params import POSITION
from envs.mujoco.memory import memory


def test_mass_matrix_and_kinematics_are_those_specified():
    loaded, _ = model.load("compliant")
    data = mujoco.MjData(loaded)
    hip, knee, height = -0.6981, -1.2, 0.5
    data.qpos[:] = height, hip, knee
    mujoco.mj_forward(loaded, data)
    mass = np.zeros((3, 3))
    for column, unit in zip(mass, np.eye(3)):
        mujoco.mj_mulM(loaded, data, column, unit)
    m3, lever, i2, i3 = 0.034, 0.14, 1.0888e-3, 8.888e-4
    coupling = m3 * lever * math.cos(hip)
    expected = [
        [0.8205, coupling, 0],
        [coupling, i2 + i3 + m3 * lever**2 + 2.2e-6, i3],
        [0, i3, i3 + 1.157e-5],
    ]
    np.testing.assert_allclose(mass, expected, atol=1e-12)
    x, z = report.foot_position(np.array([height, hip, knee]))
    np.testing.assert_allclose(data.site("foot").xpos[[0, 2]], [x, z], atol=1e-12)


@pytest.mark.parametrize(("name", "size"), [("qpos", 3), ("qvel", 3), ("ctrl", 2), ("sensordata", 4), ("site_xpos", 6)])
def test_addresses_are_those_of_mujocos_arrays(name, size):
    _, data = model.load("compliant")
    view = memory(getattr(model.find_addresses("compliant"), name), size)
    getattr(data, name).flat[:] = np.arange(size) + 0.5
    assert np.array_equal(view, np.arange(size) + 0.5)


def test_kinds_of_ground_differ():
    finals = {}
    for contact in model.CONTACTS:
        kernel = kernels.simple_kernel(contact=contact)
        state = place(kernel)
        for _ in range(1500):
            kernel.step(kernel.params, state, np.array([0.5, 0.5]))
        finals[contact] = state[POSITION]
    assert len(set(finals.values())) == 3
