"""Which runs a sweep has."""

import json

import pytest
from programs import ROOT

from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.run import parse as parse_run
from tdpo_baselines.sweeping.definition import Definition, make_runs, parse_list, read, rescale, settings

FILES = sorted((ROOT / "run_scripts/sweeps").glob("*.json"))
PAPER = ("ppo1", "trpo", "td3")  # algorithms of the paper's sweeps


def test_modes_are_joined_with_the_centre_first():
    definition = Definition(cartesian={"a": [1, 2]}, ovat={"b": [0, 5, 6], "c": [0, 7]}, zip={"d": [1, 2], "e": [3, 4]})
    found = settings(definition)
    assert len(found) == 2 * (1 + 2 + 1) * 2
    assert found[0] == {"a": 1, "b": 0, "c": 0, "d": 1, "e": 3}
    assert [(row["b"], row["c"]) for row in found[:8:2]] == [(0, 0), (5, 0), (6, 0), (0, 7)]
    assert {(row["d"], row["e"]) for row in found} == {(1, 3), (2, 4)}


def test_sweep_of_nothing_is_one_setting():
    assert settings(Definition()) == [{}]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cartesian": {"gamma": []}}, "at least one value for 'gamma', got []"),
        ({"ovat": {"gamma": 0.9}}, "got 0.9"),
        ({"cartesian": {"gamma": [0.9, 0.9]}}, "a value of 'gamma' twice"),
        ({"cartesian": {"gamma": [0.9]}, "ovat": {"gamma": [0.9]}}, "'gamma' is both in cartesian and in ovat"),
        ({"fixed": {"lam": 0.9}, "ovat": {"gamma,lam": [0.9]}}, "'lam' is both in fixed and in ovat"),
        ({"zip": {"gamma": [0.9], "lam": [0.8, 0.9]}}, "gamma has 1, lam has 2"),
        ({"cartesian": {"seed": [1]}}, "--seeds"),
        ({"fixed": [1]}, "fixed must be an object"),
        ({"scale": {"horizons": ["gamma"]}}, "reference_hz above 0"),
        ({"scale": {"reference_hz": "20"}}, "reference_hz above 0"),
        ({"scale": {"reference_hz": 20, "horizon": ["gamma"]}}, "horizons and counts, got"),
        ({"scale": {"reference_hz": 20, "horizons": ["gamma"]}}, "gives no value"),
        ({"sedes": "0-2"}, "did you mean 'seeds'?"),
        ({"seeds": "2-0"}, "the last is before the first"),
        ({"fixed": {"env": "pendulum-nlr", "gama": 0.9}}, "did you mean '--gamma'?"),
        ({"fixed": {"env": "pendulum-nlr"}, "cartesian": {"gamma": [0.9, 2]}}, "setting 'gamma=2': gamma must be"),
        ({"fixed": {"env": "pendulum-nlr", "num_iterations": 0}}, "num_iterations must be at least 1"),
        ({"fixed": {"env": "pendulum-nlr", "gamma": 1}, "scale": {"reference_hz": 20, "horizons": ["gamma"]}}, "none"),
    ],
)
def test_invalid_definition_is_refused(tmp_path, values, message):
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"[^\n]*") as caught:
        make_runs(read(path), tmp_path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["gamma", "gamma=", "=1,2", "gamma=,"])
def test_list_without_key_or_values_is_refused(text):
    with pytest.raises(ValueError, match="KEY=V1,V2"):
        parse_list(text)


def test_settings_that_are_the_same_run_are_refused(tmp_path):
    definition = Definition(fixed={"env": "pendulum-nlr"}, zip={"gamma": [0.9, 0.9]})
    with pytest.raises(ValueError, match="'gamma=0.9' and 'gamma=0.9' are the same run"):
        make_runs(definition, tmp_path)


def test_labels_show_what_differs_from_the_centre(tmp_path):
    definition = Definition(
        fixed={"env": "pendulum-nlr"}, cartesian={"hidden_sizes": [[8, 8]]}, ovat={"gamma": [0.9, 1.0]}
    )
    assert [run.label for run in make_runs(definition, tmp_path)] == ["hidden_sizes=8,8", "hidden_sizes=8,8,gamma=1.0"]
    definition = Definition(fixed={"env": "pendulum-nlr"}, ovat={"gamma": [0.9, 1.0]})
    assert [run.label for run in make_runs(definition, tmp_path)] == ["centre", "gamma=1.0"]


def test_folder_of_a_run_does_not_change_when_the_sweep_grows(tmp_path):
    small = Definition(fixed={"env": "pendulum-nlr"}, cartesian={"gamma": ["0.9"]})
    large = Definition(fixed={"env": "pendulum-nlr"}, cartesian={"gamma": ["0.8", "0.9"]}, seeds=(0, 1))
    assert make_runs(small, tmp_path)[0].name in {run.name for run in make_runs(large, tmp_path)}


def test_one_key_may_set_several_options(tmp_path):
    definition = Definition(
        fixed={"env": "leg-100hz", "alg": "td3"}, ovat={"actor_learning_rate,critic_learning_rate": [1e-3, 1e-4]}
    )
    options = make_runs(definition, tmp_path)[1].resolved.config.options
    assert options["actor_learning_rate"] == options["critic_learning_rate"] == 1e-4


@pytest.mark.parametrize("algorithm", ["ppo1", "trpo", "td3"])
def test_scaling_rules_give_the_papers_table_of_control_rates(tmp_path, algorithm):
    """The presets hold the table itself."""
    for run in make_runs(read(ROOT / f"run_scripts/sweeps/{algorithm}_pendulum_rates.json"), tmp_path)[::17]:
        environment = run.resolved.config.environment
        preset = resolve(parse_run(["--alg", algorithm, "--env", environment, "--preset", "paper"]))
        assert run.resolved.config.options == preset.config.options
        assert run.resolved.budget == preset.budget


def test_discounts_are_scaled_by_their_horizons():
    values = {"env": "leg-stochastic", "gamma": 0.99, "lam": 1, "steps": 10}
    scale = {"reference_hz": 100, "horizons": ["gamma", "lam"], "counts": ["steps"]}
    assert rescale(values, scale) == {"env": "leg-stochastic", "gamma": 0.99975, "lam": 1.0, "steps": 400}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_sweep_is_valid_and_its_centre_is_the_shipped_preset(tmp_path, path):
    """Sweeps of the paper's algorithms are about its settings, search spaces of others about those that a run has."""
    runs = make_runs(read(path), tmp_path)
    config = runs[0].resolved.config
    preset = ["--preset", "paper"] if config.algorithm in PAPER else []
    words = ["--alg", config.algorithm, "--env", config.environment, *preset]
    assert config.options == resolve(parse_run(words)).config.options


@pytest.mark.parametrize(
    ("name", "num_runs"),
    [("ppo1_leg_100hz", 222), ("trpo_leg_100hz", 213), ("td3_leg_100hz", 303), ("td3_leg_stochastic", 300)],
)
def test_shipped_sweep_has_as_many_runs_as_the_authors(tmp_path, name, num_runs):
    assert len(make_runs(read(ROOT / f"run_scripts/sweeps/{name}.json"), tmp_path)) == num_runs
