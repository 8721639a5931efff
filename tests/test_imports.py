"""The table "Who may import whom" of docs/architecture.md, and that importing does nothing."""

import ast
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARIES = {"tensorflow", "mpi4py", "gymnasium", "gym", "mujoco", "matplotlib", "onnx"}
FILES = sorted(str(p.relative_to(ROOT)) for folder in ("envs", "tdpo_baselines") for p in (ROOT / folder).rglob("*.py"))


def declared_table() -> list[tuple[list[str], list[str]]]:
    """Return the patterns of files and the names they may import, row by row."""
    text = (ROOT / "docs/architecture.md").read_text().partition("| files | may import |")[2]
    rows = [line.split("|")[1:3] for line in text.splitlines()[2:] if line.startswith("|")]
    return [(re.findall(r"`([^`]+)`", files), re.findall(r"`([^`]+)`", names)) for files, names in rows]


def is_allowed(path: str, module: str) -> bool:
    """Return whether the last matching row allows a file to import a module. Files beside it are always allowed."""
    matching = [names for patterns, names in declared_table() if any(matches(path, p) for p in patterns)]
    assert matching, f"docs/architecture.md has no row for {path}"
    is_beside = module.rpartition(".")[0] == path.rpartition("/")[0].replace("/", ".") and is_file(module)
    return is_beside or any(module == name or module.startswith(f"{name}.") for name in matching[-1])


def matches(path: str, pattern: str) -> bool:
    """Match like fnmatch, but *.py only directly in its folder."""
    return fnmatchcase(path, pattern) and not (pattern.endswith("*.py") and path.count("/") != pattern.count("/"))


def imported_modules(path: str) -> set[str]:
    """Return the absolute names of all imported modules, relative imports resolved."""
    package, found = path.split("/")[:-1], set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {name if is_module(name := f"{module}.{alias.name}") else module for alias in node.names}
    return found


def is_module(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).is_dir() or is_file(name)


def is_file(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()


@pytest.mark.parametrize("path", FILES)
def test_module_imports_only_what_the_table_allows(path):
    for module in imported_modules(path):
        if module.split(".")[0] in {*LIBRARIES, "envs", "tdpo_baselines"} and module != "tdpo_baselines":
            assert is_allowed(path, module), module


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("tdpo_baselines/tdpo/tdpo.py", "tdpo_baselines.trpo.trpo"),
        ("tdpo_baselines/tdpo/tdpo.py", "tdpo_baselines.harness.training"),
        ("tdpo_baselines/common/optim/cg.py", "tensorflow"),
        ("tdpo_baselines/run.py", "envs.kernel"),
        ("tdpo_baselines/run.py", "tdpo_baselines.tdpo.tdpo"),
        ("envs/kernel.py", "tdpo_baselines.common.parallel.comm"),
        ("tdpo_baselines/common/networks/mlp.py", "tdpo_baselines.common.sampling.streams"),
    ],
)
def test_table_forbids(path, module):
    assert not is_allowed(path, module)


def test_every_row_matches_a_file():
    for patterns, _ in declared_table():
        for pattern in patterns:
            assert any(matches(path, pattern) for path in FILES), pattern


def test_every_module_has_its_test_file():
    support = {"__init__.py"}
    tested = [path for path in FILES if Path(path).name not in support]
    for path in tested:
        inside = Path(path).relative_to("tdpo_baselines") if path.startswith("tdpo_baselines") else Path(path)
        mirrored = ROOT / "tests" / inside.parent / f"test_{inside.name}"
        assert mirrored.is_file(), f"{path} has no {mirrored.relative_to(ROOT)}"


def test_importing_the_programs_loads_neither_tensorflow_nor_mpi_nor_touches_files(tmp_path):
    code = (
        "import sys, envs, tdpo_baselines.tdpo, tdpo_baselines.td3, tdpo_baselines.trpo\n"
        "import tdpo_baselines.run, tdpo_baselines.evaluate, tdpo_baselines.plot, tdpo_baselines.export\n"
        "import tdpo_baselines.report, tdpo_baselines.watch\n"
        "import tdpo_baselines.sweep, tdpo_baselines.tune\n"
        "import tdpo_baselines.api, tdpo_baselines.worker, tdpo_baselines.__main__\n"
        "assert not {'tensorflow', 'mpi4py', 'matplotlib', 'onnx'} & set(sys.modules), set(sys.modules)\n"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert not list(tmp_path.iterdir())
