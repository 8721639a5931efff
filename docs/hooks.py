"""MkDocs hooks: tables made from the code and from results, quoted source, and equations that render offline.

A line `<!-- NAME: ARGUMENT -->` of a page is replaced by what the function NAME of `DIRECTIVES` returns, and a fenced
block of `math` by MathML. `python docs/hooks.py` writes the table of scores into README.md.
"""

import ast
import dataclasses
import json
import re
import statistics
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"
sys.path.insert(0, str(ROOT))


def on_page_markdown(markdown: str, **_) -> str:
    """Return the page with its directives and equations filled in."""
    markdown = re.sub(r"^```math\n(.*?)^```$", _mathml, markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^<!-- (\w+):(.*?)-->$", _fill_in, markdown, flags=re.MULTILINE)


def _mathml(match: re.Match) -> str:
    from latex2mathml.converter import convert

    return f'<div class="math">{convert(match[1].strip(), display="block")}</div>'


def _fill_in(match: re.Match) -> str:
    name, arguments = match[1], match[2].split()
    if name not in DIRECTIVES:
        raise ValueError(f"unknown directive {name!r}; docs/hooks.py has {', '.join(DIRECTIVES)}")
    return DIRECTIVES[name](*arguments)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    cells = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def options(algorithm: str) -> str:
    """Return the options of an algorithm with defaults, ranges and meanings, a table per group."""
    from tdpo_baselines.options import registry

    groups: dict[str, list] = {}
    for field in dataclasses.fields(registry.algorithm(algorithm).Config):
        row = [f"`{field.name}`", f"`{text(field.default)}`", limits(field.metadata), field.metadata["meaning"]]
        groups.setdefault(field.metadata["group"] or "Options", []).append(row)
    header = ["option", "default", "range", "meaning"]
    return "\n\n".join(f"**{group}**\n\n{table(header, rows)}" for group, rows in groups.items())


def text(value) -> str:
    """Return a value as it is typed on the command line."""
    from tdpo_baselines.options.config import to_text

    return to_text(value)


def limits(metadata) -> str:
    """Return the range of an option."""
    if metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in metadata["choices"])
    signs = {"low": "≥", "above": ">", "high": "≤"}
    return ", ".join(f"{sign} {metadata[name]:g}" for name, sign in signs.items() if metadata[name] is not None)


def presets(algorithm: str) -> str:
    """Return the presets of an algorithm, folded away."""
    path = ROOT / "tdpo_baselines" / algorithm / "presets.json"
    blocks = []
    for pattern, by_name in json.loads(path.read_text()).items():
        for name, values in by_name.items():
            words = textwrap.fill(" ".join(f"{key}={text(value)}" for key, value in values.items()), 96)
            block = f"```text\n{words}\n```"
            blocks.append(f'??? note "`{pattern}`, preset `{name}`"\n\n{textwrap.indent(block, "    ")}')
    return "\n\n".join(blocks)


def environments() -> str:
    """Return the names of our environments with their Gymnasium ids, fixed options and sizes."""
    from tdpo_baselines.options import registry

    rows = []
    for name, (env_id, fixed) in registry.ENVIRONMENTS.items():
        made = registry.make_environment(name, registry.resolve_options(name, {}))
        with_options = ", ".join(f"`{key}={value}`" for key, value in fixed.items())
        sizes = [str(size) for size in (made.observation_size, made.action_size, made.horizon)]
        rows.append([f"`{name}`", f"`{env_id}`", with_options, *sizes])
    return table(["`--env`", "Gymnasium id", "with", "observation", "action", "steps"], rows)


def environment_options(name: str) -> str:
    """Return the options of an environment with defaults and meanings, without those that have a table of their own."""
    from tdpo_baselines.options import registry

    defaults, meanings = registry.environment_options(name), registry.option_meanings(name)
    others = {"delay_steps", *registry.quantities(name)}
    rows = [
        [f"`{key}`", text(default) or "empty", meanings[key]] for key, default in defaults.items() if key not in others
    ]
    return table(["option", "default", "meaning"], rows)


def quantities() -> str:
    """Return the quantities of MuJoCo models that may be drawn at each start."""
    from envs.ranges import NEUTRAL, QUANTITIES

    rows = [[f"`{name}`", f"{NEUTRAL[name]:g}", meaning] for name, meaning in QUANTITIES.items()]
    return table(["option", "default", "meaning"], rows)


def agents() -> str:
    """Return the trained agents of the package with their scores."""
    rows = []
    for path in sorted((ROOT / "tdpo_baselines/agents").glob("*.json")):
        card = json.loads(path.read_text())
        found = card["evaluation"]
        scores = [f"{found['return'][name]:,.4g}" for name in ("mean", "std", "min")]
        steps = f"{card['num_timesteps'] / 1e6:.3g}"
        rows.append([f"`{path.stem}`", card["algorithm"], str(card["seed"]), steps, *scores, found["verdict"] or ""])
    header = ["agent", "algorithm", "seed", "steps (M)", "return", "std", "worst", "verdict"]
    return table(header, rows)


def variants() -> str:
    """Return the targets of the pendulum's variants."""
    from envs.pendulum.nlr import VARIANTS

    rows = [[str(v), f"{low} to {high}", *map(str, rest)] for v, (low, high, *rest) in VARIANTS.items()]
    return table(["variant", "band (Hz)", "offset (rad)", "amplitude (rad)"], rows)


def source(path: str, *names: str) -> str:
    """Return classes, functions or assignments of a file as code."""
    found = _definitions((ROOT / path).read_text())
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{path} has no {missing[0]}; change the page that quotes it")
    return "\n".join([f'```python title="{path}"', "\n\n\n".join(found[name] for name in names), "```"])


def _definitions(code: str) -> dict[str, str]:
    """Return the source of what a module defines, by name: with decorators, or with the text below an assignment."""
    found, lines, statements = {}, code.splitlines(), ast.parse(code).body
    for node, after in zip(statements, [*statements[1:], None]):
        first, last = node.lineno, node.end_lineno
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first, name = min([first, *(decorator.lineno for decorator in node.decorator_list)]), node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            last = after.end_lineno if isinstance(after, ast.Expr) else last
        else:
            continue
        found[name] = "\n".join(lines[first - 1 : last])
    return found


def differences(path: str) -> str:
    """Return the list of differences from the paper in a module's docstring."""
    paragraph = _paragraph(path, "Differences")
    return textwrap.dedent(paragraph.partition("\n")[2])


def glossary(path: str) -> str:
    """Return the glossary of a module's docstring."""
    return f"```text\n{_paragraph(path, 'Glossary')}\n```"


def _paragraph(path: str, first_word: str) -> str:
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text())) or ""
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(first_word):
            return paragraph
    raise ValueError(f"the docstring of {path} has no paragraph that begins with {first_word!r}")


def scores() -> str:
    """Return TDPO beside its rivals: medians and worst seeds at equal steps, from the tables of results."""
    names, rows = ("tdpo", "trpo", "ppo1", "ars", "cma"), []
    for task, steps, found in [*_suite_returns(), *_gym_returns()]:
        best = max(statistics.median(returns) for returns in found.values())
        rows.append([f"`{task}`", steps, *(_score(found.get(name), best) for name in names)])
    (solved, solved_steps), (landed, landed_steps) = (_met(name) for name in ("pendulum-nlr", "leg"))
    budget = (
        f"On the paper's problems TDPO without options solves `pendulum-nlr` on {solved} seeds ({solved_steps} million "
        f"steps) and lands the leg on {landed} ({landed_steps} million)."
    )
    header = ["task", "steps (M)", *(name.upper() for name in names)]
    return f"{table(header, rows)}\n\n{textwrap.fill(budget, 116)}"


def _score(returns: list[float] | None, best: float) -> str:
    """Return a cell of the table of scores."""
    if returns is None:
        return ""
    digits = 0 if abs(best) >= 100 else 1
    median, top, worst = (f"{value:,.{digits}f}" for value in (statistics.median(returns), best, min(returns)))
    bold = "**" if median == top else ""  # also if the digits that are shown are the best
    return f"{bold}{median}{bold} ({worst})"


def _suite_returns() -> list[tuple[str, str, dict[str, list[float]]]]:
    """Return task, millions of steps and the returns of each algorithm, of tasks that several algorithms have run."""
    found = []
    for name in ("suite-develop-table.md", "suite-final-table.md"):
        header, _, *rows = _rows(name)
        for task, steps, _, *cells in rows:
            texts = {name.lower().split("-")[0]: re.search(r"\((.*?)\)", cell) for name, cell in zip(header[3:], cells)}
            returns = {
                a: [float(value.replace(",", "")) for value in text[1].split(", ")] for a, text in texts.items() if text
            }
            found += [(task, steps, returns)] if len(returns) > 1 else []
    return found


def _gym_returns() -> list[tuple[str, str, dict[str, list[float]]]]:
    """Return the same of MuJoCo tasks, with tuned options."""
    found = []
    for task in ("Swimmer-v5", "HalfCheetah-v5"):
        places = {"tdpo": ("gym-table.md", [task, "tuned"], 2)}
        places |= {name: ("baselines-scores.md", [name, task], 3) for name in ("trpo", "ppo1")}
        returns = {
            algorithm: [float(value.replace(",", "")) for value in cells[column].split(", ")]
            for algorithm, (name, key, column) in places.items()
            for cells in _rows(name)
            if cells[:2] == key
        }
        found.append((task, "1", returns))
    return found


def _rows(name: str) -> list[list[str]]:
    """Return the cells of a table of results."""
    lines = (RESULTS / name).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def _met(name: str) -> tuple[str, str]:
    """Return on how many seeds TDPO meets the criterion of a result, and with how many million steps."""
    row = next(row for row in json.loads((RESULTS / f"{name}.json").read_text())["rows"] if row["label"] == "TDPO")
    scores = list(row["seeds"].values())
    steps = statistics.median(score["steps"] for score in scores)
    return f"{sum(score['is_met'] for score in scores)} of {len(scores)}", f"{steps / 1e6:.0f}"


def fill_readme(readme: str) -> str:
    """Return README.md with the present scores between their marks."""
    filled = f"<!-- scores -->\n{scores()}\n<!-- end -->"
    return re.sub(r"<!-- scores -->.*?<!-- end -->", lambda _: filled, readme, flags=re.DOTALL)


DIRECTIVES = {
    function.__name__: function
    for function in (
        options,
        presets,
        environments,
        environment_options,
        quantities,
        agents,
        variants,
        source,
        differences,
        glossary,
        scores,
    )
}

if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(fill_readme(path.read_text()))
