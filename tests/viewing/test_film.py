"""Films of both kinds of pictures, in all formats."""

import sys

import numpy as np
import pytest
from PIL import Image
from untrained import untrained, write_run

from tdpo_baselines import evaluate as command
from tdpo_baselines.evaluating.trained import evaluate
from tdpo_baselines.viewing import film
from tdpo_baselines.viewing.film import check_file, make_film
from tdpo_baselines.viewing.mujoco_frames import NoOpenGL


@pytest.fixture(scope="module")
def swing():
    return evaluate(untrained("pendulum-20hz"), num_episodes=1)


@pytest.fixture(scope="module")
def drop():
    return evaluate(untrained("leg-100hz"), num_episodes=1)


@pytest.mark.parametrize("slow", [0.1, 0.3])
def test_gif_has_25_frames_a_second_for_as_long_as_the_episode_times_slow(swing, tmp_path, slow):
    path = tmp_path / "swing.gif"
    assert make_film(swing, str(path), slow) == "schematic"
    with Image.open(path) as picture:
        assert (picture.size, picture.n_frames, picture.info["duration"]) == (film.SIZE, int(250 * slow) + 1, 40)
        first = np.asarray(picture.convert("RGB"))
        picture.seek(picture.n_frames - 1)
        assert (first != np.asarray(picture.convert("RGB"))).mean() > 0.01


def test_mp4_has_50_frames_a_second(swing, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "swing.mp4"
    make_film(swing, str(path), 0.1)
    assert ffmpeg.count_frames_and_secs(str(path)) == (51, pytest.approx(1.02))


def test_png_is_a_sheet_of_frames_without_opengl_too(drop, tmp_path, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    path = tmp_path / "drop.png"
    assert make_film(drop, str(path)).startswith("schematic: MuJoCo cannot render here")
    with Image.open(path) as sheet:
        assert sheet.size == (1276, 716)
        tiles = [
            np.asarray(sheet)[240 * row : 240 * row + 236, 320 * c : 320 * c + 316]
            for row in range(3)
            for c in range(4)
        ]
    assert all((a[100:] != b[100:]).any() for a, b in zip(tiles, tiles[1:]))  # the leg falls


def test_leg_is_filmed_by_mujoco_where_opengl_is(drop, tmp_path, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    path = tmp_path / "drop.png"
    how = make_film(drop, str(path))
    if "cannot render" in how:
        pytest.skip(how)
    assert how in ("MuJoCo, egl", "MuJoCo, osmesa") and Image.open(path).size == (1276, 716)


def test_gymnasium_task_needs_opengl(tmp_path, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    with pytest.raises(NoOpenGL, match="cannot render here: the variable MUJOCO_GL is 'off'"):
        make_film(evaluate(untrained("InvertedPendulum-v5"), num_episodes=1), str(tmp_path / "a.png"))


def test_numbers_are_in_the_picture(swing):
    moments = film.Episode(swing, 0).at(np.array([0.0, 5.0]))
    _, pictures = film.make_pictures(moments, trail=0)
    plain = next(iter(pictures))
    shown = [np.asarray(film.write_numbers(plain, moments, i))[:110, : film.PANEL_WIDTH] for i in range(2)]
    assert (shown[0] != shown[1]).any() and (shown[0] < 60).any()


@pytest.mark.parametrize(
    ("name", "slow", "message"),
    [
        ("a.avi", 1, "--video must end in .mp4, .gif or .png"),
        ("a.gif", 0, "--slow must be above 0 and at most 1000, got 0"),
        ("a.gif", float("nan"), "--slow must be above 0"),
        ("nowhere/a.gif", 1, "there is no folder"),
    ],
)
def test_file_that_cannot_be_written_is_refused_before_anything_is_computed(tmp_path, name, slow, message):
    with pytest.raises(ValueError, match=message):
        check_file(str(tmp_path / name), slow)


def test_mp4_without_its_library_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ValueError, match="pip install imageio-ffmpeg"):
        check_file(str(tmp_path / "a.mp4"), 1)


def test_evaluate_films(tmp_path, capsys):
    run = write_run(tmp_path / "run", untrained("pendulum-20hz"))
    path = tmp_path / "swing.gif"
    assert command.main([str(run.path), "--episodes", "1", "--video", str(path), "--slow", "0.1"]) == 0
    assert f"-> {path} (schematic)" in capsys.readouterr().out and path.read_bytes().startswith(b"GIF89a")
    assert command.main([str(run.path), "--video", "swing.avi"]) == 2
    assert capsys.readouterr().err.startswith("error: --video must end in")
