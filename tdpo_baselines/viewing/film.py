"""Film an episode: MuJoCo's pictures or a schematic drawing, with time and signals, as MP4, GIF or contact sheet."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .episode import Episode, Moments, median_episode
from .mujoco_frames import NoOpenGL, render
from .schematic import draw_frames

SIZE = (640, 480)  # width, height
FRAMES_PER_SECOND = {".mp4": 50, ".gif": 25}
PANEL_WIDTH = 204  # of the numbers
SHEET = (4, 3)  # columns and rows of a contact sheet
SHEET_GAP = 4  # pixels
MAX_SLOW = 1000
TRAIL_FRAMES = 12


def check_file(path: str | Path, slow: float) -> None:
    """Raise ValueError if the film cannot be written to a file of that name, or so slowly."""
    suffix = Path(path).suffix.lower()
    if suffix not in (*FRAMES_PER_SECOND, ".png"):
        raise ValueError(f"--video must end in .mp4, .gif or .png (a sheet of frames), got {str(path)!r}")
    if not 0 < slow <= MAX_SLOW:
        raise ValueError(f"--slow must be above 0 and at most {MAX_SLOW}, got {slow}")
    if not Path(path).absolute().parent.is_dir():
        raise ValueError(f"--video: there is no folder {Path(path).absolute().parent}; create it")
    if suffix == ".mp4":
        _ffmpeg()


def make_film(evaluation: Any, path: str | Path, slow: float = 1.0) -> str:
    """Film the episode with the median return, `slow` times slower than it was; return how the pictures were made."""
    check_file(path, slow)
    episode, suffix = Episode(evaluation, median_episode(evaluation)), Path(path).suffix.lower()
    num = SHEET[0] * SHEET[1] if suffix == ".png" else int(episode.duration * slow * FRAMES_PER_SECOND[suffix]) + 1
    moments = episode.at(np.linspace(0, episode.duration, num))
    how, pictures = make_pictures(moments, trail=0 if suffix == ".png" else TRAIL_FRAMES)
    frames = (write_numbers(picture, moments, i) for i, picture in enumerate(pictures))
    {".mp4": _write_mp4, ".gif": _write_gif, ".png": _write_sheet}[suffix](path, frames)
    return how


def make_pictures(moments: Moments, trail: int) -> tuple[str, Iterable[Any]]:
    """Return how they are made, and a Pillow image for every moment."""
    from PIL import Image

    reason = "schematic"
    if moments.model is not None:
        try:
            backend, frames = render(moments.model, moments.positions, SIZE)
            return f"MuJoCo, {backend}", map(Image.fromarray, frames)
        except NoOpenGL as error:
            if moments.scene is None:
                raise
            reason = f"schematic: {error}"
    return reason, draw_frames(moments.scene, SIZE, left=PANEL_WIDTH, trail=trail)


def write_numbers(picture: Any, moments: Moments, moment: int) -> Any:
    """Return the picture with a panel of time and signals in its corner."""
    from PIL import Image, ImageDraw, ImageFont

    font, line_height = ImageFont.load_default(14), 18
    rows = {"time (s)": f"{moments.seconds[moment]:.3f}"}
    rows |= {name: f"{values[moment]:.4g}" for name, values in moments.signals.items()}
    panel = Image.new("RGBA", SIZE)
    pen = ImageDraw.Draw(panel)
    pen.rounded_rectangle((8, 8, PANEL_WIDTH, 20 + line_height * len(rows)), 6, fill=(255, 255, 255, 190))
    for i, (name, text) in enumerate(rows.items()):
        pen.text((16, 14 + line_height * i), name, font=font, fill=(70, 76, 86, 255))
        pen.text((PANEL_WIDTH - 8, 14 + line_height * i), text, font=font, fill=(20, 24, 30, 255), anchor="ra")
    return Image.alpha_composite(picture.convert("RGBA"), panel).convert("RGB")


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ValueError("--video to .mp4 needs pip install imageio-ffmpeg; .gif and .png need nothing") from error
    return imageio_ffmpeg


def _write_mp4(path: str | Path, frames: Iterator[Any]) -> None:
    writer = _ffmpeg().write_frames(str(path), SIZE, fps=FRAMES_PER_SECOND[".mp4"], quality=7)
    writer.send(None)
    for frame in frames:
        writer.send(frame.tobytes())
    writer.close()


def _write_gif(path: str | Path, frames: Iterator[Any]) -> None:
    from PIL import Image

    first = next(frames).quantize(128, dither=Image.Dither.NONE)
    rest = (frame.quantize(palette=first, dither=Image.Dither.NONE) for frame in frames)  # only changes are stored
    first.save(path, save_all=True, append_images=rest, duration=1000 // FRAMES_PER_SECOND[".gif"], loop=0)


def _write_sheet(path: str | Path, frames: Iterator[Any]) -> None:
    from PIL import Image

    (columns, rows), (width, height) = SHEET, (SIZE[0] // 2, SIZE[1] // 2)
    sheet = Image.new("RGB", (columns * width - SHEET_GAP, rows * height - SHEET_GAP), "white")
    for (row, column), frame in zip(itertools.product(range(rows), range(columns)), frames):
        small = frame.resize((width - SHEET_GAP, height - SHEET_GAP), Image.Resampling.LANCZOS)
        sheet.paste(small, (column * width, row * height))
    sheet.save(path)
