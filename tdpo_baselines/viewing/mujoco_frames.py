"""Render positions of a MuJoCo model in a process of its own: software OpenGL may crash beside TensorFlow.

`render` starts `python -m tdpo_baselines.viewing.mujoco_frames`, which has the pictures written to its output. EGL
is tried first, then OSMesa, unless the variable MUJOCO_GL names one (or "off").
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

BACKENDS = ("egl", "osmesa")
OFF = ("off", "disable", "disabled", "false", "0")  # values of MUJOCO_GL with which MuJoCo renders nothing
REMEDY = "on Debian, apt-get install libegl1 libgl1-mesa-dri, or libosmesa6"


SET_ASIDE = "TDPO_MUJOCO_GL"  # holds MUJOCO_GL for the rendering process


def set_opengl_aside() -> None:
    """Hide MUJOCO_GL from MuJoCo in this process, which is going to load TensorFlow. Call before it is imported."""
    if "MUJOCO_GL" in os.environ:
        os.environ[SET_ASIDE] = os.environ.pop("MUJOCO_GL")


class NoOpenGL(ValueError):
    """No way of rendering works on this machine."""


def render(model: Any, positions: np.ndarray, size: tuple[int, int]) -> tuple[str, Iterator[np.ndarray]]:
    """Return the name of the OpenGL in use, and pictures [height, width, 3] of `positions` [M, Q].

    Raise NoOpenGL if none works. `size` is (width, height).
    """
    import mujoco

    reasons, chosen = [], os.environ.get("MUJOCO_GL", os.environ.get(SET_ASIDE))
    if chosen in OFF:
        raise NoOpenGL(f"MuJoCo cannot render here: the variable MUJOCO_GL is {chosen!r}")
    folder = tempfile.TemporaryDirectory(prefix="film-")
    mujoco.mj_saveModel(model, f"{folder.name}/model.mjb")
    np.save(f"{folder.name}/positions.npy", positions)
    for backend in [chosen] if chosen else BACKENDS:
        frames = _frames(folder, backend, size)
        try:
            next(frames)  # starts it, and waits until it can render
            return backend, frames
        except NoOpenGL as error:
            reasons.append(f"{backend}: {error}")
    raise NoOpenGL(f"MuJoCo cannot render here ({'; '.join(reasons)}); {REMEDY}")


def _frames(folder: tempfile.TemporaryDirectory, backend: str, size: tuple[int, int]) -> Iterator[Any]:
    """Yield None once the process is ready, then its pictures."""
    width, height = size
    command = [sys.executable, "-m", "tdpo_baselines.viewing.mujoco_frames", folder.name, str(width), str(height)]
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    variables = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": paths}
    with open(f"{folder.name}/{backend}.log", "w+") as log:
        process: Any = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=variables)
        try:
            if process.stdout.read(1) != b"+":
                process.wait()
                lines = Path(log.name).read_text().split("\n")
                raise NoOpenGL(next((line for line in reversed(lines) if line), f"exit code {process.returncode}"))
            yield None
            while len(picture := process.stdout.read(3 * width * height)) == 3 * width * height:
                yield np.frombuffer(picture, dtype=np.uint8).reshape(height, width, 3)
            if process.wait():
                raise RuntimeError(f"rendering failed: {Path(log.name).read_text()}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def choose_camera(model: Any) -> Any:
    """Return the model's camera "track", or its first one, or one that follows its first body."""
    import mujoco

    names = [model.camera(i).name for i in range(model.ncam)]
    if names:
        return names.index("track") if "track" in names else 0
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    return camera


def main(arguments: list[str]) -> int:
    """Write "+" and then every picture to the standard output; print the error and return 1 if there is no OpenGL."""
    pictures = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries may print
    folder, width, height = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    try:
        import mujoco

        model = mujoco.MjModel.from_binary_path(str(folder / "model.mjb"))
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        renderer = mujoco.Renderer(model, height, width)
    except Exception as error:  # OpenGL libraries raise anything
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return 1
    data, camera = mujoco.MjData(model), choose_camera(model)
    pictures.write(b"+")
    for position in np.load(folder / "positions.npy"):
        data.qpos[:] = position
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera)
        pictures.write(renderer.render().tobytes())
        pictures.flush()
    renderer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
