"""Exports of real runs, from the command line to compiled code, and what is refused."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from controllers import compile_c
from small_run import OPTIONS

from tdpo_baselines import run as run_program
from tdpo_baselines.evaluate import load
from tdpo_baselines.export import FILES, export, main
from tdpo_baselines.options import registry
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunFolder


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    """Return a function that trains a tiny run of an algorithm."""
    made: dict = {}

    def make(algorithm: str):
        if algorithm not in made:
            made[algorithm] = tmp_path_factory.mktemp(algorithm) / "run"
            arguments = ["--alg", algorithm, "--env", "pendulum-20hz", "--num_iterations", "2", "--quiet"]
            arguments += ["--log_dir", str(made[algorithm]), "--set", "gamma=0.9", *OPTIONS[algorithm].split()]
            arguments += ["action_inputs=0,2"] * (algorithm == "cma")
            assert run_program.main(arguments) == 0
        return made[algorithm]

    return make


@pytest.fixture(scope="module")
def run(make_run):
    return make_run("tdpo")


def read_contract(folder) -> dict:
    return json.loads((folder / "contract.json").read_text())


@pytest.mark.parametrize(
    "algorithm", ["tdpo", *(pytest.param(name, marks=pytest.mark.slow) for name in [*registry.ALGORITHMS][1:])]
)
def test_check_passes_for_a_run_of_every_algorithm(make_run, algorithm, tmp_path, capsys):
    safety = ["--output_limit", "1.5", "--rate_limit", "30", "--low_pass", "4"]
    out = tmp_path / "new" / "controller"
    assert main([str(make_run(algorithm)), "--format", "c", "--out", str(out), *safety]) == 0
    files = ["policy.h", "policy_check.c", "contract.json"]
    assert capsys.readouterr().out.splitlines() == [f"-> {out / file}" for file in files]
    assert sorted(path.name for path in out.parent.rglob("*") if path.is_file()) == sorted(files)
    done = subprocess.run([compile_c(out / "policy_check.c", "-O2")], capture_output=True, text=True)
    assert done.returncode == 0 and "largest difference 0, tolerance 0: passed" in done.stdout
    told = read_contract(out)
    assert told["algorithm"] == algorithm and told["control_rate_hz"] == 20 and told["iteration"] == 2
    assert told["safety"] == {"output_limit": [1.5], "rate_limit_per_s": [30.0], "low_pass_hz": 4.0}
    assert told["actions"] == [{"name": "torque", "unit": "N m", "limits": [-1.5, 1.5], "range": [-2.0, 2.0]}]


@pytest.mark.parametrize("format", FILES)
def test_every_format_writes_its_files_and_replaces_an_earlier_export(run, format, tmp_path):
    for _ in range(2):
        assert main([str(run), "--format", format, "--out", str(tmp_path / "out"), "--name", "swing"]) == 0
    told = read_contract(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*told["files"], "contract.json"])
    assert told["files"] == [file.format("swing") for file in FILES[format]] and told["format"] == format
    assert told["precision"] == ("float" if format == "tflite" else "double")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_newest_best_or_a_single_checkpoint_is_exported(run, tmp_path):
    (single,) = (run / "checkpoints").iterdir()
    for number, arguments in enumerate([[str(run)], [str(single)], [str(run), "--best"]]):
        assert main([*arguments, "--format", "npz", "--out", str(tmp_path / str(number))]) == 0
    hashes = [read_contract(tmp_path / str(number))["parameters_sha256"] for number in range(3)]
    assert hashes[0] == hashes[1]
    with np.load(tmp_path / "2/policy.npz") as model:
        assert np.array_equal(model["weights_0"].ravel(), load(run, use_best=True).theta[: model["weights_0"].size])
        assert json.loads(str(model["config"]))["environment"] == "pendulum-20hz"


def test_environment_of_another_library_is_exported_without_names(tmp_path):
    arguments = ["--alg", "ars", "--env", "Pendulum-v1", "--num_iterations", "1", "--quiet"]
    assert run_program.main([*arguments, "--log_dir", str(tmp_path / "run")]) == 0
    command = [str(tmp_path / "run"), "--format", "c", "--out", str(tmp_path / "out"), "--rate_limit", "5"]
    assert main(command) == 2
    assert main([*command, "--rate_hz", "20"]) == 0
    told = read_contract(tmp_path / "out")
    assert told["actions"][0]["name"] is None and told["control_rate_hz"] == 20
    assert subprocess.run([compile_c(tmp_path / "out/policy_check.c")]).returncode == 0


def refuse(capsys, *arguments: str) -> str:
    """Return the message of a command that must fail with one line and exit code 2."""
    assert main(list(arguments)) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1
    return message


def test_folders_without_a_policy_are_refused(run, tmp_path, capsys):
    out = ["--format", "c", "--out", str(tmp_path / "out")]
    assert "is not a run folder: there is no such folder" in refuse(capsys, str(tmp_path / "missing"), *out)
    RunFolder(tmp_path / "empty").open(load(run).config, is_resumed=False)
    assert "has no checkpoint yet" in refuse(capsys, str(tmp_path / "empty"), *out)
    assert "no best parameters yet" in refuse(capsys, str(tmp_path / "empty"), *out, "--best")
    assert not (tmp_path / "out").exists()


def test_parameters_of_another_shape_are_refused(run, tmp_path, capsys):
    state = checkpoint.load_newest(run / "checkpoints")
    state["policy"]["theta"] = state["policy"]["theta"][:-1]
    checkpoint.save(tmp_path, 2, state, keep=1)
    folder = str(tmp_path / "iteration-000000002")
    assert "its config asks for" in refuse(capsys, folder, "--format", "npz", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_folder_with_other_files_is_refused(run, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert "has other files already (notes.txt)" in refuse(capsys, str(run), "--format", "c", "--out", str(tmp_path))
    assert "is a file" in refuse(capsys, str(run), "--format", "c", "--out", str(tmp_path / "notes.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_missing_package_leaves_nothing_behind(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = refuse(capsys, str(run), "--format", "onnx", "--out", str(tmp_path / "out"))
    assert 'pip install ".[export]"' in message and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "onnx", "--low_pass", "5"], "pass --format c"),
        (["--format", "tflite", "--precision", "double"], "precision of format tflite must be float"),
        (["--format", "c", "--rate_limit", "0"], "rate_limit must be positive and finite, got 0.0"),
        (["--format", "c", "--name", "2nd"], "name must be letters"),
        (["--format", "c", "--rate_hz", "50"], "rate_hz must be 20"),
        (["--format", "c", "--low_pass", "10"], "low_pass must be below half the control rate, 10 Hz, got 10"),
        (["--format", "c", "--output_limit", "1,2"], "output_limit must be one number, or one for each of 1 action"),
    ],
)
def test_options_that_do_not_fit_are_refused(run, arguments, message, tmp_path, capsys):
    assert message in refuse(capsys, str(run), "--out", str(tmp_path / "out"), *arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [["--format", "rust"], ["--format", "c", "--rate_limit", "1,"], ["--format", "c", "--low_pass", "x"], []],
)
def test_words_that_cannot_be_parsed_are_refused(run, arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(run), "--out", str(tmp_path / "out"), *arguments])
    assert ended.value.code == 2 and "error: " in capsys.readouterr().err


def test_module_that_a_run_names_is_imported_only_on_request(run, tmp_path, monkeypatch):
    (tmp_path / "harmful.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    trained = load(run)
    trained.config = replace(trained.config, environment="harmful:Some-v0")
    with pytest.raises(ValueError, match="if you trust it, pass --env harmful:Some-v0"):
        export(trained, tmp_path / "out", format="c")
    assert not (tmp_path / "done").exists()


def test_exported_policy_has_the_parameters_of_the_run(run, tmp_path):
    trained = load(run)
    paths = export(trained, tmp_path / "out", format="npz")
    with np.load(paths[0]) as model:
        parts = [model[f"{kind}_{k}"].ravel() for k in range(3) for kind in ("weights", "biases")]
        assert np.array_equal(np.concatenate([*parts, model["linear"].ravel()]), trained.theta)
