"""The site builds with checked links, documents every name and option, and shows commands and code that work."""

import ast
import dataclasses
import html
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from pages import read_blocks, read_commands
from programs import ROOT

from hpc import submit
from tdpo_baselines import evaluate, export, plot, report, run, sweep, tune, watch
from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.options import registry
from tdpo_baselines.storage.run_folder import RunFolder
from tdpo_baselines.sweeping.definition import make_runs
from tdpo_baselines.tuning.space import make_space

spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/hooks.py")
hooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hooks)

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
READABLE = [page for page in PAGES if "howto" not in page]  # test_howto.py follows the others
ONLY_STOCHASTIC = {"hip_start", "start_scale", "reward_kind"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text_of(page) -> str:
    """Return the text of a built page without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text()))


def test_every_page_is_built_and_fetches_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        assert not re.search(r'<(link|script|img)[^>]*(href|src)="https?:', page.read_text()), page


@pytest.mark.parametrize("name", registry.ALGORITHMS)
def test_page_of_an_algorithm_has_all_of_its_options_and_presets(site, name):
    page = (site / f"algorithms/{name}.html").read_text()
    for field in dataclasses.fields(registry.algorithm(name).Config):
        assert f"<td><code>{field.name}</code></td>" in page, field.name
        assert field.metadata["meaning"] in html.unescape(page), field.name
    presets = json.loads((ROOT / f"tdpo_baselines/{name}/presets.json").read_text())
    assert all(f"<code>{pattern}</code>, preset" in page for pattern in presets)


def test_every_environment_is_listed(site):
    page = (site / "environments.html").read_text()
    assert all(f"<td><code>{name}</code></td>" in page for name in registry.ENVIRONMENTS)


@pytest.mark.parametrize("name", ["pendulum-nlr", "pendulum-20hz", "leg-stochastic"])
def test_page_has_all_options_of_an_environment_with_their_meanings(site, name):
    page = html.unescape((site / "environments.html").read_text())
    for option, meaning in registry.option_meanings(name).items():
        if option in registry.environment_options(name):
            assert f"<td><code>{option}</code></td>" in page and f"<td>{meaning}</td>" in page


def test_simple_leg_has_the_options_of_the_stochastic_one_but_three():
    simple, stochastic = (registry.environment_options(name) for name in ("leg", "leg-stochastic"))
    shared = {name: value for name, value in stochastic.items() if name not in ONLY_STOCHASTIC}
    assert simple == {**shared, "sensor_noise": False}


@pytest.mark.parametrize(
    ("page", "names"), [("algorithm", ["Algorithm", "Learner", "Row", "Roller"]), ("environment", ["Environment"])]
)
def test_how_to_pages_quote_the_contracts(site, page, names):
    code = (ROOT / "tdpo_baselines/contracts.py").read_text()
    text = text_of(site / f"howto/{page}.html")
    for node in ast.parse(code).body:
        if getattr(node, "name", "") in names:
            assert ast.get_source_segment(code, node).strip() in text, node.name


def test_code_that_the_page_of_tdpo_names_exists():
    page = (ROOT / "docs/algorithms/tdpo.md").read_text()
    section = page.partition("## Where it is in the code")[2].partition("<!--")[0]
    code = "".join(path.read_text() for path in (ROOT / "tdpo_baselines/tdpo").glob("*.py"))
    names = re.findall(r"`([\w.]+)`", section)
    functions = [name.rpartition(".")[2] for name in names if not name.endswith(".py")]
    assert len(functions) > 8 and all(f"def {name}(" in code for name in functions)


def test_unknown_directive_is_an_error():
    with pytest.raises(ValueError, match="unknown directive 'option'"):
        hooks.on_page_markdown("<!-- option: tdpo -->")


def test_readme_has_the_scores_of_the_tables():
    readme = (ROOT / "README.md").read_text()
    assert hooks.fill_readme(readme) == readme, "run `python docs/hooks.py`"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "hpc/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        assert target.startswith("https://") or (ROOT / page).parent.joinpath(target).exists(), target


def test_readme_cites_the_paper_as_the_citation_file_does():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    readme = (ROOT / "README.md").read_text()
    authors = " and ".join(f"{author['family-names']}, {author['given-names']}" for author in cited["authors"])
    assert authors in readme and cited["title"] in readme and cited["journal"] in readme


def commands_of(module: str) -> list[tuple[str, str]]:
    """Return the arguments of every command `python -m MODULE ...` that a page shows, with the page."""
    pattern = re.compile(rf"(?:mpirun -np \d+ )?python -m {re.escape(module)} (.*)")
    matches = [(page, pattern.fullmatch(command)) for page in READABLE for command in read_commands(page)]
    return [(page, match[1]) for page, match in matches if match]


@pytest.mark.parametrize("page", READABLE)
def test_training_commands_are_accepted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (arguments for source, arguments in commands_of("tdpo_baselines.run") if source == page):
        parsed = run.parse(shlex.split(arguments))
        if not (parsed.help or parsed.list):
            begun = RunFolder(parsed.log_dir or "runs/unnamed")  # later commands of the page may continue it
            begun.open(resolve(parsed).config, is_resumed=True)
            begun.progress_path.touch()
            begun.unlock()
            if not parsed.log_dir:
                shutil.rmtree(begun.path)


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.evaluate"))
def test_evaluation_command_is_accepted(page, arguments):
    assert evaluate.parse(shlex.split(arguments)).paths


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.export"))
def test_export_command_is_accepted(page, arguments):
    assert export.parse(shlex.split(arguments)).path


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.report"))
def test_report_command_is_accepted(page, arguments):
    assert report.parse(shlex.split(arguments)).paths


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.watch"))
def test_watch_command_is_accepted(page, arguments):
    assert watch.parse(shlex.split(arguments)).runs


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.plot"))
def test_plot_command_is_accepted(page, arguments):
    assert plot.parse(shlex.split(arguments)).runs


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.sweep"))
def test_sweep_command_is_accepted(page, arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert make_runs(sweep.define(sweep.parse(shlex.split(arguments))), tmp_path)


@pytest.mark.parametrize(("page", "arguments"), commands_of("tdpo_baselines.tune"))
def test_tuning_command_is_accepted(page, arguments):
    assert make_space(tune.find_definition(tune.parse(shlex.split(arguments))))


@pytest.mark.parametrize(("page", "arguments"), commands_of("hpc.submit"))
def test_submission_command_is_accepted(page, arguments):
    assert submit.parse(shlex.split(arguments)).scheduler


def test_make_targets_and_extras_that_pages_name_exist():
    makefile, setup = (ROOT / "Makefile").read_text(), (ROOT / "setup.py").read_text()
    text = "".join((ROOT / page).read_text() for page in READABLE)
    targets = set(re.findall(r"`make (\w+)`|^make (\w+)", text, flags=re.MULTILINE))
    assert all(f"\n{code or line}:" in makefile for code, line in targets)
    extras = {extra for match in re.findall(r"\.\[([\w,-]+)\]", text) for extra in match.split(",")}
    assert extras and all(f'"{extra}": ' in setup for extra in extras)


@pytest.mark.slow
def test_python_code_of_the_pages_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.main(["--env", "pendulum-nlr", "--num_iterations", "2", "--log_dir", "runs/first", "--quiet"]) == 0
    num_run = 0
    for page in READABLE:
        for block in read_blocks(page):
            if block.language == "python":
                exec(compile(block.text, page, "exec"), {})
                num_run += 1
    assert num_run > 6
