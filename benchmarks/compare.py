"""Show what became faster or slower between two files of results.

    python benchmarks/compare.py OLD.json NEW.json

Rows with a peer or a limit are compared by their ratio to it, which a busy machine changes less. Exit code 1: something
is more than a tenth worse.
"""

import json
import sys
from pathlib import Path
from typing import Any

WORSE = 0.9
LESS_IS_BETTER = ("%", "us", "ms", "s", "MB")


def gain(old: dict[str, Any], new: dict[str, Any]) -> float:
    """Return how many times better the new row is."""
    before, after = (row["ours"] / (row["other"] or 1.0) for row in (old, new))
    return before / after if new["unit"] in LESS_IS_BETTER else after / before


def compare(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[str], bool]:
    """Return a line for each row of both files, and whether one is much worse."""
    gains = {name: gain(old[name], row) for name, row in new.items() if name in old}
    lines = [f"{value:8.2f} x  {name}{'  WORSE' if value < WORSE else ''}" for name, value in gains.items()]
    missing = [f"{'missing':>10}  {name}" for name in old if name not in new]
    return lines + missing, min(gains.values(), default=1.0) < WORSE


if __name__ == "__main__":
    rows = [json.loads(Path(path).read_text())["rows"] for path in sys.argv[1:3]]
    text, is_worse = compare(*rows)
    print("\n".join(text))
    sys.exit(int(is_worse))
