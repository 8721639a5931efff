"""Draw a scene with Pillow: links, joints, ground, the way of the free end. Needs no OpenGL."""

from collections.abc import Iterator
from typing import Any

import numpy as np

BACKGROUND, GROUND, RAIL, TARGET, TRAIL, JOINT = "#f7f8fa", "#c9ced6", "#dde1e7", "#2a9d5c", "#d9a37a", "#2b2f36"
LINKS = ("#3366b2", "#d9731a", "#7a4fb3")  # in turn
OVERSAMPLING = 2  # draw larger and shrink, for smooth edges


def draw_frames(scene: Any, size: tuple[int, int], *, left: int, trail: int) -> Iterator[Any]:
    """Yield a Pillow image of `size` (width, height) for every state, with the free end's last `trail` places.

    Nothing moves in the first `left` columns.
    """
    for moment in range(len(scene.chain)):
        yield draw_frame(scene, moment, size, left=left, trail=trail)


def draw_frame(scene: Any, moment: int, size: tuple[int, int], *, left: int, trail: int) -> Any:
    """Return the picture of one state."""
    from PIL import Image, ImageDraw

    width, height = size[0] * OVERSAMPLING, size[1] * OVERSAMPLING
    image = Image.new("RGB", (width, height), BACKGROUND)
    pen = ImageDraw.Draw(image)
    to_pixels = _projection(scene.view, left * OVERSAMPLING, width, height)
    thick = max(int(0.012 * height), 2)
    for name, line in scene.marks.items():
        _draw_mark(pen, name, to_pixels(line), thick)
    places = to_pixels(scene.chain[max(moment - trail, 0) : moment + 1, -1])
    if len(places) > 1:
        pen.line([tuple(place) for place in places], fill=TRAIL, width=max(thick // 3, 2), joint="curve")
    joints = to_pixels(scene.chain[moment])
    for i, (start, end) in enumerate(zip(joints, joints[1:])):
        pen.line([*map(float, start), *map(float, end)], fill=LINKS[i % len(LINKS)], width=2 * thick)
    for joint in joints:
        _draw_dot(pen, joint, 1.3 * thick)
    return image.resize(size, Image.Resampling.LANCZOS)


def _projection(view: tuple[float, float, float, float], margin: int, width: int, height: int):
    """Return a function from metres [..., 2] to pixels; the view is centred to the right of the margin."""
    left, right, bottom, top = view
    scale = min((width - margin) / (right - left), height / (top - bottom))
    middle = np.array([(left + right) / 2, (bottom + top) / 2])
    centre = np.array([(margin + width) / 2, height / 2])
    return lambda points: centre + scale * np.array([1, -1]) * (points - middle)


def _draw_mark(pen: Any, name: str, line: np.ndarray, thick: int) -> None:
    """Draw a line that does not move; the ground fills everything below it."""
    if name == "ground":
        pen.rectangle([0, line[0, 1], pen.im.size[0], pen.im.size[1]], fill=GROUND)
    elif name == "target":
        for share in np.arange(0, 1, 0.05):  # dashes
            dash = [line[0] + part * (line[-1] - line[0]) for part in (share, share + 0.03)]
            pen.line([tuple(end) for end in dash], fill=TARGET, width=thick // 2)
    else:
        pen.line([tuple(point) for point in line], fill=RAIL, width=thick)


def _draw_dot(pen: Any, centre: np.ndarray, radius: float) -> None:
    pen.ellipse([*(centre - radius), *(centre + radius)], fill=JOINT)
