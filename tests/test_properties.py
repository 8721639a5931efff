"""Random options, configs, logs and environments lead to a value or to one line of text; `make fuzz` tries more."""

import contextlib
import dataclasses
import io
import json
import shutil
import tempfile

import gymnasium
import numpy as np
import odd
import pytest
from hostile_folders import EXAMPLE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tdpo_baselines import plot, run, watch
from tdpo_baselines.common import files
from tdpo_baselines.evaluating.trained import Trained
from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.options import registry
from tdpo_baselines.options.config import parse_like
from tdpo_baselines.storage.logger import COLUMNS_OF_RUNS, ProgressReader
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

CONFIG = json.loads((EXAMPLE / "config.json").read_text())
LINES = (EXAMPLE / "progress.csv").read_text().splitlines()
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -1, 0, 1, 2**63, 1e308, 5e-324]))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=20), st.sampled_from(["num_timesteps", "none"]))
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
fewer = settings(max_examples=settings.default.max_examples // 4)
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def is_accepted(function, *arguments) -> bool:
    """Return whether a function returns; raise what it raises unless that is a ValueError of one line."""
    try:
        function(*arguments)
        return True
    except ValueError as error:
        assert str(error).count("\n") == 0
        return False


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
@given(data=st.data())
def test_options_are_valid_or_explained(algorithm, data):
    names = [field.name for field in dataclasses.fields(registry.algorithm(algorithm).Config)]
    values = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=3))
    config_class = registry.algorithm(algorithm).Config
    if is_accepted(config_class.from_values, values):
        again = config_class.from_values(config_class.from_values(values).to_values())
        assert again == config_class.from_values(values)


OPTIONS = ["gamma", "seed", "num_timesteps", "hidden_sizes", "env.offset", "env.delay_steps", "max_walltime"]
OPTIONS += ["stage1.timesteps", "alg", "env", "preset", "x"]


@given(words=st.lists(st.tuples(st.sampled_from(OPTIONS), st.text(max_size=12))))
def test_command_line_is_resolved_or_explained(words):
    arguments = ["--env=pendulum-nlr", "--log_dir=/nonexistent/run", *(f"--{name}={value}" for name, value in words)]
    is_accepted(lambda: resolve(run.parse(arguments)))


@given(value=JSON, example=st.sampled_from([None, True, 3, 0.5, "a"]))
def test_values_are_parsed_like_an_example_or_explained(value, example):
    is_accepted(parse_like, "x", value, example)


@given(content=st.one_of(st.binary(max_size=200), JSON.map(json.dumps)))
def test_json_is_an_object_or_explained(content):
    if is_accepted(files.parse_json, content, "x"):
        assert isinstance(files.parse_json(content, "x"), dict)


@given(data=st.data())
def test_config_is_sound_or_explained(data):
    values = json.loads(json.dumps(CONFIG))
    group = data.draw(st.sampled_from([values, values["options"], values["env_options"], values["made_with"]]))
    group[data.draw(st.sampled_from(sorted(group)))] = data.draw(JSON)
    text = json.dumps(values)

    def use():
        config = RunConfig.from_values(files.parse_json(text, "x"), "x")
        trained = Trained(config, {})
        return trained.environment_options, trained.options, config.differences(config)

    is_accepted(use)


@same_folder
@given(data=st.data())
def test_log_is_read_or_explained_by_every_reader(tmp_path, data):
    path = tmp_path / "run"
    if not path.exists():
        shutil.copytree(EXAMPLE, path)
    cells = [line.split(",") for line in LINES]
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.integers(0, len(cells) - 1))
        column = data.draw(st.integers(0, len(cells[row]) - 1))
        cells[row][column] = data.draw(st.one_of(NUMBERS.map(str), st.text(max_size=6)))
    text = "\n".join(",".join(row) for row in cells) + data.draw(st.sampled_from(["", "\n", "\n1,2\n", "\0"]))
    RunFolder(path).progress_path.write_bytes(text.encode(errors="replace"))
    is_accepted(plot.read_progress, path)
    is_accepted(ProgressReader(path / "progress.csv", COLUMNS_OF_RUNS).read)
    assert watch.main([str(path), "--once"]) in (0, 2)


RUN = "--num_trajectories 2 --hidden_sizes 4 --num_iterations 2 --quiet"
REPLAY = "--steps_per_round 10 --updates_per_round 1 --rounds_per_iteration 2 --random_timesteps 20 --batch_size 4"
ALGORITHMS = {"tdpo": "--num_branches 1", "ars": "--num_top 1", "td3": REPLAY}
DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex128, object, "U3"])
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
ARRAYS = st.builds(lambda shape, dtype: np.ones(shape).astype(dtype), SHAPES, DTYPES)
VECTORS = st.lists(st.sampled_from([0.0, 1.0, -1e300, 1e39, np.nan, np.inf]), min_size=3, max_size=3).map(np.array)
RETURNED = st.one_of(JSON, ARRAYS, VECTORS, st.tuples(), st.complex_numbers(), st.builds(object))
BOXES = st.builds(
    lambda shape, high: gymnasium.spaces.Box(-high, high, shape), SHAPES, st.sampled_from([0.0, 1.0, np.inf])
)
SPACES = st.one_of(BOXES, st.integers(1, 3).map(gymnasium.spaces.Discrete), st.none(), st.builds(gymnasium.spaces.Dict))
STEPS = st.integers(0, odd.HORIZON)
FAULT = st.one_of(
    st.tuples(st.sampled_from([*odd.PARTS, "result"]), STEPS, RETURNED),
    st.tuples(st.sampled_from(["observation_space", "action_space"]), STEPS, SPACES),
    st.tuples(st.just("action"), STEPS, st.sampled_from([0.5, -9.0, np.nan])),
    st.tuples(st.just("randomness"), STEPS, st.none()),
)


def train(environment: str, algorithm: str) -> bool:
    """Return whether a run is trained to its end; if it is not, it must say why in one line."""
    said, arguments = io.StringIO(), f"--alg {algorithm} --env {environment} {RUN} {ALGORITHMS[algorithm]} --log_dir"
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
        try:
            code = run.main([*arguments.split(), f"{folder}/run"])
        except SystemExit as end:
            code = end.code
    lines = [line for line in said.getvalue().splitlines() if not line.startswith(f"[rank 0] {environment}: ")]
    assert code == 0 or (code in (1, 2) and len(lines) == 1 and "error: " in lines[0]), said.getvalue()
    return code == 0


@pytest.mark.parametrize("algorithm", ["tdpo", "ars", pytest.param("td3", marks=pytest.mark.slow)])
@fewer
@given(faults=st.lists(FAULT, max_size=2))
def test_gymnasium_environment_is_trained_or_refused(algorithm, faults):
    odd.Odd.faults = tuple(faults)
    assert train("Odd-v0", algorithm) or faults


@pytest.mark.slow  # compiles
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@fewer
@given(fault=st.integers(0, odd.NUM_FAULTS), first=STEPS, value=st.floats())
def test_kernel_is_trained_or_refused(algorithm, fault, first, value):
    odd.OddKernel.params = odd.Params(fault, first, value)
    assert train("OddKernel-v0", algorithm) or fault
