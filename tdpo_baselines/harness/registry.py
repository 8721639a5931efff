"""Names that users type, and where what they name lives. Nothing is imported until it is asked for."""

import inspect
from fnmatch import fnmatchcase
from importlib import import_module, resources
from pathlib import Path
from types import ModuleType
from typing import Any

from .config import did_you_mean, parse_like, read_json

ALGORITHMS = {name: f"tdpo_baselines.{name}" for name in ("tdpo", "trpo", "ppo1", "ddpg", "td3")}

ENVIRONMENTS = {
    "pendulum-nlr": ("envs:tdpo/PendulumNLR-v0", {"variant": 1}),
    **{f"pendulum-nlr-{v}": ("envs:tdpo/PendulumNLR-v0", {"variant": v}) for v in range(2, 10)},
    **{f"pendulum-{rate}hz": ("envs:tdpo/PendulumLong-v0", {"control_rate_hz": rate}) for rate in (20, 100, 500)},
    "leg": ("envs:tdpo/Leg-v0", {}),
    "leg-stochastic": ("envs:tdpo/LegStochastic-v0", {}),
    "leg-100hz": ("envs:tdpo/LegStochastic100Hz-v0", {}),
}
PATHS = ("noise_template",)  # options that name files


def algorithm(name: str) -> ModuleType:
    """The module of an algorithm: it has `Config`, `check`, `exploration` and `Learner`."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}{did_you_mean(name, ALGORITHMS)}; --list shows what there is")
    return import_module(ALGORITHMS[name])


def check_environment(name: str) -> None:
    """A name of ours, or an id of Gymnasium ("Id", "module:Id") or of classic gym ("gym:Id", "gym:module:Id")."""
    import gymnasium

    if name in ENVIRONMENTS:
        return
    try:
        _spec_of_other(name)
    except (ImportError, gymnasium.error.Error) as error:
        near = did_you_mean(name, [*ENVIRONMENTS, *gymnasium.registry])
        raise ValueError(f"unknown environment {name!r}{near}; --list shows what there is ({error})") from error


def module_of(name: str) -> str:
    """What must be imported before an environment of that name is known; nothing for ours and the libraries' own."""
    from ..common.sampling import classic_gym

    module = name.removeprefix(classic_gym.PREFIX).rpartition(":")[0]
    return "" if module == "envs" else module


def _spec_of_other(name: str) -> Any:
    """What Gymnasium or classic gym knows of an environment that is not ours."""
    import gymnasium

    from ..common.sampling import classic_gym

    if name.startswith(classic_gym.PREFIX):
        return classic_gym.spec(name.removeprefix(classic_gym.PREFIX))
    module, _, env_id = name.rpartition(":")
    if module:
        import_module(module)
    return gymnasium.spec(env_id)


def make_environment(name: str, options: dict):
    """The compiled environment of that name with these options, or any other behind the same face."""
    import gymnasium

    from ..common.sampling import classic_gym
    from ..common.sampling.gym_roller import GymEnvironment, say_warnings_once

    env_id = ENVIRONMENTS[name][0] if name in ENVIRONMENTS else name
    made_with = _without_delay(env_id, options)
    expected: Any = (TypeError, ImportError, gymnasium.error.Error)
    if name not in ENVIRONMENTS:
        say_warnings_once()
        expected = Exception  # others' code may raise anything
    try:
        if env_id.startswith(classic_gym.PREFIX):
            env: Any = classic_gym.make(env_id.removeprefix(classic_gym.PREFIX), **made_with)
        else:
            env = gymnasium.make(env_id, disable_env_checker=True, **made_with)
    except ValueError:
        raise
    except expected as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"{name} cannot be made with {options or 'no options'}: {why}") from error
    if hasattr(env.unwrapped, "kernel"):
        return env.unwrapped.kernel
    if options.get("delay_steps"):
        env = import_module("envs.action_delay").ActionDelay(env, options["delay_steps"])
    return GymEnvironment(env)


def _without_delay(env_id: str, options: dict) -> dict:
    """Our own environments delay by themselves, others in a wrapper."""
    is_ours = env_id.rpartition(":")[2].startswith("tdpo/")
    return options if is_ours else {name: value for name, value in options.items() if name != "delay_steps"}


def make_roller(environment, options):
    """What rolls that environment out, with the policy of an algorithm's options."""
    from ..common.sampling.gym_roller import GymEnvironment, GymRoller
    from ..common.sampling.kernel_roller import KernelRoller

    roller = GymRoller if isinstance(environment, GymEnvironment) else KernelRoller
    return roller(environment, options.hidden_sizes, options.gamma, options.network_style(environment))


def resolve_options(name: str, options: dict) -> dict:
    """All options of an environment: the user's (text is parsed) over the name's own."""
    known = environment_options(name)
    if name not in ENVIRONMENTS:  # Gymnasium knows the rest of their options, and refuses them if they are wrong
        return known | {option: parse_like(f"env.{option}", v, known.get(option)) for option, v in options.items()}
    for option in options:
        if option not in known:
            raise ValueError(
                f"unknown option 'env.{option}' of {name}{did_you_mean(option, known)}; it has {', '.join(known)}"
            )
    given = {option: parse_like(f"env.{option}", value, known[option]) for option, value in options.items()}
    return known | {option: _absolute(value) if option in PATHS else value for option, value in given.items()}


def _absolute(path: str) -> str:
    """A run is evaluated from other folders than it was trained in."""
    return path and str(Path(path).expanduser().resolve())


def environment_options(name: str) -> dict:
    """Names and defaults of what `--set env.NAME=VALUE` can set; others' environments may have more."""
    import gymnasium

    check_environment(name)
    if name not in ENVIRONMENTS:
        spec = _spec_of_other(name)
        own = {option: default for option, default in spec.kwargs.items() if option != "kernel"}  # says which of ours
        return {"delay_steps": 0, **own, "max_episode_steps": spec.max_episode_steps}
    env_id, fixed = ENVIRONMENTS[name]
    if not getattr(import_module("envs"), "IS_TDPO_BASELINES", False):
        raise ValueError("another package named 'envs' comes first on the path; pip uninstall envs")
    registered = dict(gymnasium.spec(env_id.partition(":")[2]).kwargs)
    module, function = registered.pop("kernel").split(":")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters
    return {p.name: p.default for p in parameters.values()} | {"delay_steps": 0} | registered | fixed


def presets(algorithm_name: str, environment: str) -> dict[str, dict]:
    """Shipped settings for an environment by name ("tuned", "paper"); a key may be a pattern, as of files."""
    path = resources.files("tdpo_baselines") / algorithm_name / "presets.json"
    if not path.is_file():
        return {}
    found: dict[str, dict] = {}
    for pattern, settings in read_json(str(path)).items():
        if fnmatchcase(environment, pattern):
            for preset, values in settings.items():
                found[preset] = {**found.get(preset, {}), **values}
    return found
