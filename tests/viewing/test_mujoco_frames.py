"""MuJoCo's pictures from a process of their own. Skipped where there is no OpenGL."""

import os

import mujoco
import numpy as np
import pytest

from tdpo_baselines.viewing import mujoco_frames
from tdpo_baselines.viewing.mujoco_frames import NoOpenGL, choose_camera, render, set_opengl_aside

XML = """
<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <body>
      <joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size=".1" rgba="1 0 0 1"/>
    </body>
    {camera}
  </worldbody>
</mujoco>
"""
SIDE = '<camera name="side" pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>'
TRACK = '<camera name="track" pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>'


def model(camera: str = SIDE):
    return mujoco.MjModel.from_xml_string(XML.format(camera=camera))


def rendered(*arguments):
    try:
        backend, frames = render(*arguments)
    except NoOpenGL as error:
        pytest.skip(str(error))
    return backend, list(frames)


@pytest.mark.parametrize("wanted", ["egl", "osmesa"])
def test_ball_is_where_its_position_says(wanted, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", wanted)
    backend, pictures = rendered(model(), np.array([[-0.5], [0.5]]), (64, 48))
    assert backend == wanted and [picture.shape for picture in pictures] == [(48, 64, 3)] * 2
    columns = [
        picture[..., 0].astype(float).sum(axis=0) @ np.arange(64) / picture[..., 0].sum() for picture in pictures
    ]
    assert columns[0] < 24 and columns[1] > 40


def test_first_way_that_works_is_chosen(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(mujoco_frames, "BACKENDS", ("off", "egl", "osmesa"))
    backend, pictures = rendered(model(), np.zeros((1, 1)), (64, 48))
    assert backend in ("egl", "osmesa") and len(pictures) == 1


@pytest.mark.parametrize(
    ("chosen", "why"), [("glfw", r"\(glfw: .*apt-get install libegl1"), ("off", ": the variable MUJOCO_GL is 'off'")]
)
def test_no_opengl_is_named_with_the_remedy(monkeypatch, chosen, why):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(NoOpenGL, match=f"cannot render here ?{why}"):
        render(model(), np.zeros((1, 1)), (64, 48))


def test_choice_of_the_user_is_set_aside_before_mujoco_is_imported(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv(mujoco_frames.SET_ASIDE, "")
    set_opengl_aside()
    assert "MUJOCO_GL" not in os.environ and os.environ[mujoco_frames.SET_ASIDE] == "osmesa"


def test_camera_that_tracks_is_preferred_and_without_any_the_body_is_followed():
    assert choose_camera(model(SIDE + TRACK)) == 1 and choose_camera(model(SIDE)) == 0
    camera = choose_camera(model(""))
    assert camera.type == mujoco.mjtCamera.mjCAMERA_TRACKING and camera.trackbodyid == 1
