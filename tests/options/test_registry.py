import json
import sys
import types

import gymnasium
import pytest

from envs.kernel import Kernel
from tdpo_baselines.options import registry


def test_unknown_algorithm_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="unknown algorithm 'tdop', did you mean 'tdpo'"):
        registry.algorithm("tdop")


@pytest.mark.parametrize("name", ["pendulum-nrl", "no_such_module:Id-v0", "gym:NoSuch-v0"])
def test_unknown_environment_is_refused(name):
    with pytest.raises(ValueError, match=f"unknown environment '{name}'"):
        registry.check_environment(name)


@pytest.mark.parametrize("name", ["leg", "Pendulum-v1", "envs:tdpo/Leg-v0"])
def test_names_of_ours_and_ids_of_gymnasium_are_known(name):
    registry.check_environment(name)


@pytest.mark.parametrize(
    ("name", "module"),
    [("leg", ""), ("Pendulum-v1", ""), ("envs:tdpo/Leg-v0", ""), ("my.tasks:A-v0", "my.tasks"), ("gym:b:A-v0", "b")],
)
def test_module_is_what_the_name_asks_to_import(name, module):
    assert registry.module_of(name) == module


def test_options_of_ours_are_checked_and_parsed():
    options = registry.resolve_options("pendulum-nlr-3", {"start_scale": "0.5"})
    assert options["start_scale"] == 0.5 and options["variant"] == 3 and options["delay_steps"] == 0
    with pytest.raises(
        ValueError, match=r"unknown option 'env.start_scal' of pendulum-nlr-3, did you mean 'start_scale'"
    ):
        registry.resolve_options("pendulum-nlr-3", {"start_scal": 1})


def test_options_of_others_are_parsed_by_their_looks():
    options = registry.resolve_options("Pendulum-v1", {"g": "9.5", "render_mode": "none", "max_episode_steps": "50"})
    assert options["g"] == 9.5 and options["render_mode"] is None and options["max_episode_steps"] == 50


def test_file_option_becomes_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert registry.resolve_options("leg", {"noise_template": "a.csv"})["noise_template"] == str(tmp_path / "a.csv")
    assert registry.resolve_options("leg", {})["noise_template"] == ""


def test_values_are_those_of_the_algorithm_and_with_a_prefix_of_the_environment():
    values = registry.resolve_values("tdpo", "pendulum-nlr", {"gamma": "0.5", "env.start_scale": "0.25"})
    assert values["gamma"] == 0.5 and values["env.start_scale"] == 0.25 and values["env.variant"] == 1


@pytest.mark.parametrize("name", registry.ENVIRONMENTS)
def test_every_option_of_our_environments_has_a_meaning(name):
    assert registry.environment_options(name).keys() <= registry.option_meanings(name).keys()


def test_environment_that_cannot_be_made_is_explained():
    with pytest.raises(ValueError, match=r"Pendulum-v1 cannot be made with {'gravity': 1}: TypeError"):
        registry.make_environment("Pendulum-v1", {"gravity": 1})


@pytest.mark.parametrize("name", ["pendulum-20hz", "Pendulum-v1"])
def test_any_environment_can_delay_its_actions(name):
    plain, delayed = (
        registry.make_environment(name, registry.resolve_options(name, {"delay_steps": steps})) for steps in (0, 2)
    )
    assert delayed.observation_size == plain.observation_size and delayed.horizon == plain.horizon
    if name == "pendulum-20hz":
        assert delayed.state_size > plain.state_size  # the queue


def test_environment_without_presets_has_none():
    assert registry.presets("tdpo", "chain") == {}


def test_algorithm_may_be_a_module_elsewhere_with_its_presets_beside_it(tmp_path, monkeypatch):
    (tmp_path / "my_search.py").write_text("Config = None\n")
    presets = {"leg*": {"tuned": {"gamma": 1, "num_branches": 2}}, "leg-[1s]*": {"tuned": {"gamma": 0.5}}}
    (tmp_path / "presets.json").write_text(json.dumps(presets))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.ALGORITHMS, "search", "my_search")
    assert registry.algorithm("search").Config is None
    assert registry.presets("search", "leg") == {"tuned": {"gamma": 1, "num_branches": 2}}
    assert registry.presets("search", "leg-100hz") == {"tuned": {"gamma": 0.5, "num_branches": 2}}  # the later wins
    assert registry.presets("search", "a") == {}


def test_list_describes_every_name_in_a_line():
    lines = {line.split()[0]: line.split()[1:] for line in registry.describe().splitlines()}
    assert all(len(lines[name]) > 4 for name in (*registry.ALGORITHMS, *registry.ENVIRONMENTS))
    assert lines["leg-100hz"][-1] == "(control_rate_hz=100)" and max(map(len, registry.describe().splitlines())) <= 140


def test_other_package_named_envs_is_located_and_the_remedy_named(tmp_path, monkeypatch):
    other = types.ModuleType("envs")
    other.__file__ = str(tmp_path / "envs" / "__init__.py")
    monkeypatch.setitem(sys.modules, "envs", other)
    with pytest.raises(ValueError, match=f"hides ours, from {tmp_path}/envs; rename it"):
        registry.environment_options("leg")


def test_kernel_of_another_module_can_delay_its_actions():
    import gymnasium

    from envs.gym_env import KernelEnv
    from envs.pendulum.nlr import nlr_kernel

    gymnasium.register("KernelElsewhere-v0", entry_point=lambda: KernelEnv(nlr_kernel()), max_episode_steps=200)
    try:
        plain, delayed = (registry.make_environment("KernelElsewhere-v0", {"delay_steps": n}) for n in (0, 2))
        assert delayed.state_size > plain.state_size  # the queue
    finally:
        gymnasium.registry.pop("KernelElsewhere-v0")


def test_mujoco_task_is_compiled_unless_refused_or_changed_in_a_way_that_its_compiled_equal_does_not_know():
    def is_compiled(**options):
        made = registry.make_environment("Swimmer-v5", registry.resolve_options("Swimmer-v5", options))
        return hasattr(made, "step") and not hasattr(made, "env"), made.horizon

    assert is_compiled(max_episode_steps="30", delay_steps="1") == (True, 30)
    assert is_compiled(compiled="false") == (False, 1000)
    assert is_compiled(reset_noise_scale="0.2") == (False, 1000)


def test_quantities_of_a_model_are_options_of_environments_that_have_one():
    assert registry.environment_options("leg")["mass"] == registry.environment_options("Swimmer-v5")["mass"] == 1.0
    assert "mass" not in registry.environment_options("cart-pole") and not registry.quantities("Pendulum-v1")
    plain, drawn = (make_environment("leg", **options) for options in ({"mass": "1"}, {"mass": "0.8:1.2", "push": 2}))
    assert (plain.start_size, drawn.start_size) == (0, 2)  # mass and the time of the push
    assert make_environment("leg", delay_steps="0:3").start_size == 1
    assert make_environment("leg", mass=0.9).params.inner.mujoco == plain.params.mujoco
    env = registry.make_gymnasium("leg", registry.resolve_options("leg", {"mass": "0.8:1.2"}))
    assert 0.8 <= env.reset(seed=0)[1]["mass"] <= 1.2


def test_compiled_mujoco_task_is_randomised_and_another_one_refuses():
    made = make_environment("Swimmer-v5", friction="0.5:1")
    assert made.start_size == make_environment("Swimmer-v5").start_size + 1
    env = registry.make_gymnasium("Swimmer-v5", registry.resolve_options("Swimmer-v5", {"mass": "0.8:1.2"}))
    env.reset(seed=0)
    assert len(env.step([0.0, 0.0])) == 5
    for refused in ({"compiled": "false"}, {"reset_noise_scale": "0.2"}):
        with pytest.raises(ValueError, match="Swimmer-v5 is not compiled here, so it has no option env.mass"):
            make_environment("Swimmer-v5", mass="0.8:1.2", **refused)
    with pytest.raises(ValueError, match="env.mass must be a number or a range LOW:HIGH"):
        make_environment("Swimmer-v5", mass="1.2:0.8")


MODULE = """
import gymnasium
from gymnasium.wrappers import TransformReward
from envs.gym_env import KernelEnv
from envs.pendulum.nlr import nlr_kernel

def make(variant: int = 1):
    return nlr_kernel(variant=variant)

def make_own_gravity(gravity: int = 1):
    assert gravity == 3
    return nlr_kernel()

def make_wrapped():
    return TransformReward(KernelEnv(nlr_kernel()), lambda reward: 2 * reward)

def make_other(g: float = 10.0):
    return gymnasium.make("Pendulum-v1", g=g)

def make_nothing():
    return 1 / 0
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return the name of a module with functions that make environments."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def make_environment(name: str, **options):
    return registry.make_environment(name, registry.resolve_options(name, options))


def test_function_of_a_module_makes_a_compiled_environment_with_its_parameters_as_options(own_module):
    name = f"{own_module}:make"
    assert registry.resolve_options(name, {"variant": "3"}) == {
        "delay_steps": 0, "variant": 3, "max_episode_steps": None,
    }  # fmt: skip
    assert isinstance(make_environment(name, variant="3"), Kernel)
    assert make_environment(name, delay_steps="2").state_size > make_environment(name).state_size
    kernels = [registry.make_gymnasium(name, {"variant": v}).unwrapped.kernel for v in (1, 3)]
    assert kernels[0].params != kernels[1].params
    assert registry.module_of(name) == own_module


def test_function_of_a_module_keeps_parameters_that_are_named_as_quantities_and_refuses_others_without_a_model(
    own_module,
):
    name = f"{own_module}:make"
    with pytest.raises(ValueError, match="mass: only environments with a MuJoCo model have such quantities"):
        make_environment(name, mass="0.8:1.2")
    assert "gravity" not in registry.quantities(f"{own_module}:make_own_gravity")
    assert make_environment(f"{own_module}:make_own_gravity", gravity="3").params == make_environment(name).params


def test_function_of_a_module_may_make_an_environment_of_gymnasium(own_module):
    environment = make_environment(f"{own_module}:make_other", g="3")
    assert environment.env.unwrapped.g == 3 and environment.horizon == 200


def test_wrapped_kernel_keeps_its_wrappers(own_module):
    name = f"{own_module}:make_wrapped"
    wrapped = make_environment(name, max_episode_steps="200")
    assert not isinstance(wrapped, Kernel) and isinstance(wrapped.env.env.env, gymnasium.wrappers.TransformReward)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("mke", {}, "did you mean '.*:make'"),
        ("make", {"max_episode_steps": 50}, "env.max_episode_steps must be 200, the horizon of .*, got 50"),
        ("make", {"vairant": 2}, "cannot be made with .*vairant"),
        ("make_nothing", {}, r"ZeroDivisionError: division by zero \(own_.*.py, line 21\)"),
    ],
)
def test_what_a_function_cannot_make_is_explained(own_module, function, options, message):
    with pytest.raises(ValueError, match=message):
        make_environment(f"{own_module}:{function}", **options)


def test_run_whose_environment_is_a_function_of_a_module_is_not_trusted_and_nothing_is_imported(own_module):
    with pytest.raises(ValueError, match="would import and so execute the module own_.*; if you trust it, pass --env"):
        registry.require_trusted(f"{own_module}:make", {})
    assert own_module not in sys.modules


def test_functions_of_our_own_package_are_no_environments():
    with pytest.raises(ValueError, match="unknown environment 'envs:register'"):
        registry.check_environment("envs:register")
