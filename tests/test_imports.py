"""The table of docs/architecture.md: who may import whom, and that importing does nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"tensorflow", "mpi4py", "gymnasium", "mujoco"}
ALLOWED = {  # of HEAVY, anywhere in the file
    "envs/__init__.py": {"gymnasium"},
    "envs/gym_env.py": {"gymnasium"},
    "envs/action_delay.py": {"gymnasium"},
    "envs/leg/model.py": {"mujoco"},
    "envs/leg/report.py": {"mujoco"},
    "tdpo_baselines/common/comm.py": {"mpi4py"},
    "tdpo_baselines/common/policy.py": {"tensorflow"},
    "tdpo_baselines/common/tensorflow_setup.py": {"tensorflow"},
    "tdpo_baselines/registry.py": {"gymnasium"},
    "tdpo_baselines/common/classic_gym.py": {"gymnasium"},
    "tdpo_baselines/common/gym_roller.py": {"gymnasium", "mujoco"},
}
FILES = sorted(str(p.relative_to(ROOT)) for folder in ("envs", "tdpo_baselines") for p in (ROOT / folder).rglob("*.py"))


def imported_modules(path: str) -> set[str]:
    """Absolute names of everything imported, relative imports resolved."""
    package = path.split("/")[:-1]
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES)
def test_module_imports_only_what_it_may(path):
    modules = imported_modules(path)
    assert {m.split(".")[0] for m in modules} & HEAVY <= ALLOWED.get(path, set())
    if path.startswith("envs/"):
        assert not any(m.startswith("tdpo_baselines") for m in modules)
    else:
        assert not any(m.split(".")[0] == "envs" for m in modules)
    if path.startswith("tdpo_baselines/common/"):
        assert not any(m.startswith("tdpo_baselines.algos") for m in modules)
    if path.startswith("tdpo_baselines/algos/") and not path.endswith("__init__.py"):
        siblings = {m for m in modules if m.startswith("tdpo_baselines.algos.")}
        assert not siblings


def test_importing_the_programs_loads_neither_tensorflow_nor_mpi_nor_touches_files(tmp_path):
    code = (
        "import sys, envs, tdpo_baselines.algos.tdpo\n"
        "import tdpo_baselines.run, tdpo_baselines.evaluate, tdpo_baselines.plot\n"
        "assert not {'tensorflow', 'mpi4py', 'matplotlib'} & set(sys.modules), set(sys.modules)\n"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert not list(tmp_path.iterdir())
