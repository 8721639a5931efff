import dataclasses
import json

import pytest

from tdpo_baselines import run
from tdpo_baselines.harness.resolve import choose_preset, describe_options, parse_assignment, resolve
from tdpo_baselines.options import registry
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

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


def write_run(path, *arguments: str) -> RunConfig:
    """Write the folder of a run that was stopped; return its config."""
    asked, folder = resolved(*arguments), RunFolder(path)
    made_with = {"preset": asked.preset, "num_timesteps": asked.budget.num_timesteps, "num_iterations": 7}
    config = dataclasses.replace(asked.config, made_with=made_with)
    folder.open(config, is_resumed=False)
    folder.progress_path.write_text("iteration\n")
    folder.unlock()
    return config


ASKED = ("--alg", "tdpo", "--env", "leg-stochastic", "--preset", "basic", "--seed", "5", "--num_timesteps", "3e6",
         "--set", "gamma=0.5", "env.contact=noncompliant", "stage1.env.contact=compliant")  # fmt: skip


def test_resumed_run_needs_its_folder_alone(tmp_path):
    config = write_run(tmp_path / "run", *ASKED)
    resumed = resolved("--resume", "--log_dir", str(tmp_path / "run"))
    assert resumed.config.differences(config) == [] and resumed.preset == "basic"
    assert (resumed.budget.num_timesteps, resumed.budget.num_iterations) == (3_000_000, 7)
    longer = resolved("--resume", "--log_dir", str(tmp_path / "run"), "--num_timesteps", "4e6")
    assert (longer.budget.num_timesteps, longer.budget.num_iterations) == (4_000_000, None)


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        (["--seed", "6"], "seed: 5 here, 6 asked for"),
        (["--gamma", "0.75"], "gamma: 0.5 here, 0.75 asked for"),
        (["--env", "leg", "--alg", "td3"], "algorithm: tdpo here, td3 asked for"),
    ],
)
def test_other_arguments_of_a_resumed_run_ask_for_another_run(tmp_path, arguments, difference):
    config = write_run(tmp_path / "run", *ASKED)
    asked = resolved("--resume", "--log_dir", str(tmp_path / "run"), *arguments).config
    assert config.differences(asked)[0] == difference


def test_resume_without_a_run_says_so(tmp_path):
    with pytest.raises(ValueError, match="--env is missing and .*none holds no run"):
        resolved("--resume", "--log_dir", str(tmp_path / "none"))


def test_config_of_a_run_repeats_it(tmp_path):
    config = write_run(tmp_path / "run", *ASKED)
    file = str(tmp_path / "run" / "config.json")
    repeated = resolved("--config", file)
    assert repeated.config.differences(config) == [] and repeated.budget.num_timesteps == 3_000_000
    assert resolved("--config", file, "--seed", "8", "--gamma", "0.25").config.differences(config) == [
        "seed: 8 here, 5 asked for",
        "gamma: 0.25 here, 0.5 asked for",
    ]
    with pytest.raises(ValueError, match="repeats tdpo on leg-stochastic; leave out --alg and --env"):
        resolved("--config", file, "--env", "leg")


def test_module_that_a_run_names_is_imported_only_on_request(tmp_path, monkeypatch):
    (tmp_path / "harmful_task.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    write_run(tmp_path / "run", "--env", "pendulum-nlr")
    file = tmp_path / "run" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "environment": "harmful_task:Some-v0"}))
    for arguments in (["--resume", "--log_dir", str(tmp_path / "run")], ["--config", str(file)]):
        with pytest.raises(ValueError, match="if you trust it, pass --env harmful_task:Some-v0"):
            resolved(*arguments)
    assert not (tmp_path / "done").exists()


def test_options_in_nested_objects_have_dotted_names(tmp_path):
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"env": {"start_scale": 0.5}, "stage1": {"timesteps": 9, "env": {"offset": 1.0}}}))
    config = resolved("--env", "pendulum-nlr", "--config", str(file)).config
    assert config.env_options["start_scale"] == 0.5 and config.stages == [{"timesteps": 9, "env.offset": 1.0}]


def test_names_of_options_are_arguments_and_override_all_else():
    config = resolved(
        "--env", "pendulum-nlr", "--set", "gamma=0.5", "--gamma", "0.25", "--hidden-sizes=8,8", "--env.start-scale", "1"
    ).config  # fmt: skip
    assert config.options["gamma"] == 0.25 and config.options["hidden_sizes"] == (8, 8)
    assert config.env_options["start_scale"] == 1.0
