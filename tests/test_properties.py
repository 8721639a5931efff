"""Random options, configs and logs end in a value or in a ValueError of one line. `make fuzz` tries many more."""

import dataclasses
import json
import shutil

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
