"""Fill the template of the report. A run may be someone else's: everything that comes from it is escaped."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("report.html")


def make_page(title: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a page of runs, each with what `report.collect` returns."""
    template = TEMPLATE.read_text(encoding="utf-8")
    script = template.partition("<script>")[2].partition("</script>")[0]
    parts = {
        "SCRIPT HASH": "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "TITLE": escape(title),
        "RUNS": "".join(map(_run_line, runs)),
        "EVALUATION": evaluation_table(runs),
        "CONFIGURATION": configuration_table(runs),
        "DATA": json_for_script([{key: run[key] for key in ("name", "curves", "replay")} for run in runs]),
    }
    for name, text in parts.items():  # no text holds a marker: "<" is escaped in all of them but our own tags
        template = template.replace(f"<!-- {name} -->", text)
    return template


def json_for_script(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _run_line(run: Mapping[str, Any]) -> str:
    problem = f' <span class="problem">{escape(run["problem"])}</span>' if run["problem"] else ""
    label = ": ".join(filter(None, (run["label"], run["verdict"])))
    return f'<li><span class="swatch"></span><b>{escape(run["name"])}</b> {escape(label)}{problem}</li>'


def evaluation_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with a row for every result of a run; cells hold the exact number as `data-value`."""
    lines = ["<table><tr><th>run</th><th>result</th>"]
    lines += [f'<th class="number">{name}</th>' for name in ("mean", "std", "min", "max")]
    for run in runs:
        name = run["name"]
        for result, statistics in (run["evaluation"] or {"summary": {}})["summary"].items():
            lines.append(f"</tr><tr><td>{escape(name)}</td><td>{escape(result)}</td>")
            name = ""  # once is enough
            lines += map(_number_cell, statistics.values())
    return "".join([*lines, "</tr></table>"])


def _number_cell(value: float | None) -> str:
    text, shown = ("", "-") if value is None else (repr(value), f"{value:.5g}")
    return f'<td class="number" data-value="{text}">{shown}</td>'


def configuration_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of all options, a column for every run; rows in which the runs differ are marked."""
    header = "".join(f"<th>{escape(run['name'])}</th>" for run in runs)
    lines = [f"<table><tr><th>option</th>{header}</tr>"]
    for option in dict.fromkeys(name for run in runs for name in run["options"]):
        texts = [str(run["options"].get(option, "")) for run in runs]
        mark = ' class="differs"' if len(set(texts)) > 1 else ""
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        lines.append(f"<tr{mark}><td>{escape(option)}</td>{cells}</tr>")
    return "".join([*lines, "</table>"])
