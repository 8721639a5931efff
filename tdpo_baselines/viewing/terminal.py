"""Curves and texts for a terminal."""

import numpy as np

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # of a braille character, [4, 2]


def draw_curve(
    values: np.ndarray, width: int, height: int, *, is_ascii: bool = False
) -> tuple[list[str], float, float]:
    """Return lines of a curve over equally long parts of the values, and the values at its bottom and top.

    The lowest twentieth may lie below the bottom: the first rows of a run are often far from all others.
    """
    edges = np.linspace(0, len(values), min(2 * width, len(values)) + 1).round().astype(int)
    means = np.array([values[start:end].mean() for start, end in zip(edges, edges[1:])])
    low, high = float(np.quantile(means, 0.05)), float(means.max())
    num_rows, columns = 4 * height, np.linspace(0, 2 * width - 1, 2 * width)
    curve = np.interp(columns, np.linspace(0, 2 * width - 1, len(means)), means)
    rows = (num_rows - 1) * (1 - np.clip((curve - low) / ((high - low) or 1.0), 0, 1))  # [2 width], 0 is the top
    grid = np.zeros((num_rows, 2 * width), dtype=bool)
    for column, (here, before) in enumerate(zip(rows.round().astype(int), [rows[0], *rows[:-1]])):
        grid[min(here, round(before)) : max(here, round(before)) + 1, column] = True
    cells = (grid.reshape(height, 4, width, 2) * DOTS[:, None]).sum(axis=(1, 3))  # [height, width]
    lines = ["".join(("*" if cell else " ") if is_ascii else chr(0x2800 + cell) for cell in row) for row in cells]
    return lines, low, high


def printable(text: str) -> str:
    """Return the text without control characters: a name in a run folder must not steer the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
