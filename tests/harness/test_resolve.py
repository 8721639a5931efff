import json

import pytest

from tdpo_baselines import run
from tdpo_baselines.harness import registry
from tdpo_baselines.harness.resolve import choose_preset, describe_options, parse_assignment, resolve

ENVIRONMENTS = [*registry.ENVIRONMENTS, "Pendulum-v1", "Swimmer-v5"]


def resolved(*arguments: str):
    return resolve(run.parse(list(arguments)))


def test_options_override_one_another_in_order(tmp_path):
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"gamma": 0.5, "delta_max": 0.5, "env.start_scale": 0.5}))
    config = resolved(
        "--env", "pendulum-nlr", "--preset", "paper", "--config", str(file), "--set", "gamma=0.25",
        "--set", "cg_damping=7", "c2=3", "--num_trajectories", "5", "--seed", "11",
    ).config  # fmt: skip
    found = {name: config.options[name] for name in ("gamma", "delta_max", "cg_damping", "c2", "num_trajectories")}
    assert found == {"gamma": 0.25, "delta_max": 0.5, "cg_damping": 7.0, "c2": 3.0, "num_trajectories": 5}
    assert config.options["num_branches"] == registry.presets("tdpo", "pendulum-nlr")["paper"]["num_branches"]
    assert config.env_options["start_scale"] == 0.5 and config.seed == 11


def test_run_has_its_budget_preset_and_stages():
    asked = resolved(
        "--env", "leg-stochastic", "--preset", "basic", "--num_iterations", "3", "--set", "stage1.timesteps=5"
    )
    assert (asked.preset, asked.budget.num_iterations) == ("basic", 3)
    assert asked.config.stages[0]["timesteps"] == 5 and asked.config.stages[0]["env.reward_kind"] == "simple"
    assert len(asked.stages) == 2 and asked.stages[-1].options.to_values() == asked.config.options


def test_budget_is_that_of_the_command_line_else_of_the_file_else_of_the_preset(tmp_path):
    leg = ("--env", "leg-stochastic", "--preset", "basic")
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"num_timesteps": 3e6, "delta_decay_steps": "num_timesteps"}))
    assert resolved(*leg).budget.num_timesteps == 2 * 10**8
    asked = resolved(*leg, "--config", str(file))
    assert asked.budget.num_timesteps == asked.config.options["delta_decay_steps"] == 3 * 10**6
    asked = resolved(*leg, "--config", str(file), "--num_timesteps", "4e6")
    assert asked.budget.num_timesteps == asked.config.options["delta_decay_steps"] == 4 * 10**6
    assert resolved("--env", "leg", "--preset", "none").budget.num_timesteps == 5 * 10**7
    file.write_text(json.dumps({"num_timesteps": -3}))
    with pytest.raises(ValueError, match="num_timesteps must be at least 1 and at most 10.*, got -3"):
        resolved(*leg, "--config", str(file))


def test_config_holds_every_option_resolved():
    config = resolved("--env", "leg", "--preset", "none").config
    assert set(config.options) == set(registry.algorithm("tdpo").Config().to_values())
    assert set(config.env_options) == set(registry.environment_options("leg"))


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
def test_every_preset_resolves_and_its_options_are_explained(algorithm):
    for environment in ENVIRONMENTS:
        for preset in ("none", *registry.presets(algorithm, environment)):
            config = resolved("--alg", algorithm, "--env", environment, "--preset", preset).config
            text = describe_options(algorithm, environment, preset)
            assert f"budget for {environment}, preset {preset}: --num_timesteps " in text
            assert f"options of {algorithm} for --set (for {environment}, preset {preset}):" in text
            for name in config.options:
                assert f"\n  {name}=" in text
            for name in config.env_options:
                assert f"\n  env.{name}=" in text
            for number in range(1, len(config.stages) + 1):
                assert f"\n  stage{number}.timesteps=" in text


def test_help_without_an_environment_shows_the_defaults():
    text = describe_options("td3", None, None)
    assert "options of td3 for --set (defaults; add --env NAME" in text and "\n  policy_delay=2" in text


def test_preset_is_tuned_where_it_exists_and_none_elsewhere():
    assert choose_preset("tdpo", "leg", None)[0] == "tuned"
    assert choose_preset("tdpo", "chain", None) == ("none", {})
    assert choose_preset("tdpo", "leg", "none") == ("none", {})


def test_unknown_preset_is_named_with_those_that_exist():
    with pytest.raises(ValueError, match="no preset 'papper' .* did you mean 'paper'.* choose one of paper, none"):
        choose_preset("tdpo", "pendulum-nlr", "papper")


def test_choosing_a_preset_leaves_it_unchanged():
    choose_preset("tdpo", "leg", None)[1]["gamma"] = 0
    assert choose_preset("tdpo", "leg", None)[1].get("gamma") != 0


def test_assignment_may_have_equals_signs_in_its_value():
    assert parse_assignment("env.noise_template=a=b") == ("env.noise_template", "a=b")
    for text in ("gamma", "=3"):
        with pytest.raises(ValueError, match="--set takes KEY=VALUE"):
            parse_assignment(text)
