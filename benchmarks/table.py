"""One table of all benchmarks: ours, a peer or a limit, their ratio, the goal, and what bounds it.

    python benchmarks/table.py benchmarks/results.json

Benchmarks that are started with BENCH_RESULTS=FILE add their rows to that file.
"""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

VARIABLE = "BENCH_RESULTS"


def add_row(name: str, ours: float, unit: str, *, other: float | None = None, goal: str = "", bound: str = "") -> None:
    """Put a row into the file that BENCH_RESULTS names, in place of the one of the same name; do nothing without it.

    `other` is the peer or the limit in the same unit, `goal` is for their ratio (for a share: for the share itself).
    """
    if VARIABLE not in os.environ:
        return
    path = Path(os.environ[VARIABLE])
    results = json.loads(path.read_text()) if path.exists() else {"machine": machine(), "rows": {}}
    results["rows"][name] = {"ours": ours, "unit": unit, "other": other, "goal": goal, "bound": bound}
    path.write_text(json.dumps(results, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """Return facts about this machine on which the numbers depend."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def rounded(number: float) -> str:
    """Return a number with at most three digits, or as a whole number."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def markdown(results: dict[str, Any]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| benchmark | ours | peer or limit | ratio | goal | bounded by |", "|---|---|---|---|---|---|"]
    for name, row in results["rows"].items():
        other = row["other"]
        cells = [f"{rounded(row['ours'])} {row['unit']}", "", ""]
        if other is not None:
            cells[1:] = [f"{rounded(other)} {row['unit']}", f"{row['ours'] / other:.3g}"]
        lines.append("| " + " | ".join([name, *cells, row["goal"], row["bound"]]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())
    print(", ".join(f"{name} {value}" for name, value in found["machine"].items()), markdown(found), sep="\n\n")
