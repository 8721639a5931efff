"""Whatever is wrong with the cache of compiled code, functions are compiled, and one line warns."""

import hashlib
import os
import pickle
import resource
import shutil
import subprocess
import sys

import pytest
from programs import ROOT

pytestmark = pytest.mark.slow  # every case starts several processes

PROGRAM = """
from tdpo_baselines.common.networks.code_cache import cached_jit

@cached_jit()
def double(x):
    return 2 * x

print(double(21.0), sum(double.stats.cache_hits.values()))
"""
COMPILED, FOUND = "42.0 0", "42.0 1"


class Malicious:
    """An object whose pickle writes a file when it is loaded."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the program with the cache in `tmp_path`."""
    (tmp_path / "program.py").write_text(PROGRAM)
    folders = {"NUMBA_CACHE_DIR": "cache", "HOME": "home", "XDG_CACHE_HOME": "home"}
    environment = {**os.environ, **{name: str(tmp_path / folder) for name, folder in folders.items()}}

    def start(**options):
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py")], env={**environment, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    return start


def finish(process):
    """Return output and warnings of a program that must have succeeded."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.strip(), errors.strip()


def only_file(tmp_path):
    (path,) = (tmp_path / "cache").rglob("*.nbc")
    return path


def empty(path):
    path.write_bytes(b"")


def tear(path):
    path.write_bytes(path.read_bytes()[:-100])


def zero(path):
    path.write_bytes(bytes(path.stat().st_size))


def replace_by_fifo(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def let_others_write(path):
    path.chmod(0o666)


def replace_by_unrelated_pickle(path):
    contents = pickle.dumps(("another function", b"its code"))
    path.write_bytes(hashlib.sha256(contents).digest() + contents)


@pytest.mark.parametrize("damage", [empty, tear, zero, replace_by_fifo, replace_by_link, let_others_write])
def test_damaged_file_is_reported_in_one_line_and_replaced(start, tmp_path, damage):
    assert finish(start()) == (COMPILED, "")
    assert finish(start()) == (FOUND, "")
    damage(only_file(tmp_path))
    output, errors = finish(start())
    assert output == COMPILED
    assert errors.startswith(f"warning: compiled code cannot be cached in {tmp_path}/cache/") and "\n" not in errors
    assert "set NUMBA_CACHE_DIR to a folder of your own" in errors
    assert finish(start()) == (FOUND, "")


def test_code_of_another_function_is_not_used(start, tmp_path):
    finish(start())
    replace_by_unrelated_pickle(only_file(tmp_path))
    assert finish(start()) == (COMPILED, "")
    assert finish(start()) == (FOUND, "")


def test_folder_in_place_of_a_file_does_not_end_the_program(start, tmp_path):
    finish(start())
    path = only_file(tmp_path)
    path.unlink()
    path.mkdir()
    for _ in range(2):
        output, errors = finish(start())
        assert output == COMPILED and errors.count("warning") == 1


def test_full_disk_costs_only_time_and_leaves_nothing(start, tmp_path):
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    output, errors = finish(start(preexec_fn=limit_files))
    assert output == COMPILED and errors.count("warning") == 1 and "File too large" in errors
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_no_writable_folder_costs_only_time(start, tmp_path):
    for name in ("cache", "home", "__pycache__"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        (tmp_path / name).write_text("a file, in which no folder can be made")
    output, errors = finish(start())
    assert output == COMPILED
    assert errors.startswith("warning: compiled code cannot be cached anywhere") and "\n" not in errors


def test_processes_that_start_together_do_not_disturb_each_other(start, tmp_path):
    for _ in range(2):
        for output, errors in [finish(process) for process in [start() for _ in range(5)]]:
            assert output in (COMPILED, FOUND) and errors == ""
    assert only_file(tmp_path).suffix == ".nbc" and len(list(only_file(tmp_path).parent.iterdir())) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_pickle_of_another_user_is_never_loaded(start, tmp_path):
    finish(start())
    path = only_file(tmp_path)
    contents = pickle.dumps(Malicious(tmp_path / "executed"))
    path.write_bytes(hashlib.sha256(contents).digest() + contents)
    os.chown(path, 12345, 12345)
    output, errors = finish(start())
    assert output == COMPILED and f"others may write to {path.name}" in errors
    assert not (tmp_path / "executed").exists()


def test_files_of_numbas_own_cache_are_never_loaded(start, tmp_path):
    finish(start())
    path = only_file(tmp_path)
    for name in (f"{path.name[:-37]}.nbi", f"{path.name[:-37]}.1.nbc"):
        (path.parent / name).write_bytes(pickle.dumps(Malicious(tmp_path / "executed")))
    assert finish(start()) == (FOUND, "")
    assert not (tmp_path / "executed").exists()
