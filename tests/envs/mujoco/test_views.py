import mujoco
import numpy as np
import pytest
from cart_task import VIEWS, XML

from envs.mujoco.views import Layout, find


@pytest.fixture
def cart():
    model = mujoco.MjModel.from_xml_string(XML)
    return model, mujoco.MjData(model)


@pytest.mark.parametrize(
    ("text", "array", "index"),
    [("qpos", "qpos", 0), ("qvel:hinge", "qvel", 1), ("site_xpos:tip", "site_xpos", 0), ("xpos:pole", "xpos", 6)],
)
def test_names_are_resolved_to_mujocos_memory(cart, text, array, index):
    found, whole = find(*cart, text), getattr(cart[1], array)
    found[0] = 0.25
    assert whole.flat[index] == 0.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qposs", "no array 'qposs'.*did you mean 'qpos'"),
        ("qpos:hing", "no joint 'hing'.*did you mean 'hinge'.*it has slider, hinge"),
        ("sensordata:foot", "no sensor 'foot'.*it names no sensor"),
    ],
)
def test_unknown_names_suggest_near_ones(cart, text, message):
    with pytest.raises(ValueError, match=message):
        find(*cart, text)


def test_state_holds_previous_values_step_and_memory_behind_mujocos_part(cart):
    layout = Layout(*cart, VIEWS, mujoco_size=10, num_observations=3, memory_size=4)
    view = layout.view(np.arange(layout.state_size, dtype=float))
    assert layout.state_size == 10 + 2 + 3 + 3 + 4
    assert view.step.tolist() == [10] and view.tip_before.tolist() == [15, 16, 17] and view.memory[0] == 18
    assert layout.previous()[:, 0].tolist() == [15, 16, 17]
    assert layout.previous()[1, 1] == cart[1].site("tip").xpos.ctypes.data + 8


@pytest.mark.parametrize(("name", "message"), [("a b", "must be a Python name"), ("qpos", "without being asked")])
def test_names_of_views_are_checked(cart, name, message):
    with pytest.raises(ValueError, match=message):
        Layout(*cart, {name: "qpos"}, 10, 3, 0)


def test_contact_forces_on_bodies_are_asked_for_by_name(cart):
    assert Layout(*cart, {"force": "cfrc_ext:pole"}, 10, 3, 0).needs_late_forces
    assert not Layout(*cart, VIEWS, 10, 3, 0).needs_late_forces
