"""The names of algorithms and environments that users type, and the modules they stand for.

Nothing is imported until it is asked for. A new algorithm is one more name in `ALGORITHMS`: a module that fits
`contracts.Algorithm`, with its presets beside it in presets.json if it has any.
"""

import inspect
import re
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.files import read_json
from ..common.parallel import launcher
from . import callables
from .config import did_you_mean, ends_of, parse_like, parse_range, split_prefix

if TYPE_CHECKING:  # loads NumPy, which `run` must not do before it has limited the number of threads
    from ..contracts import Algorithm, Environment, Roller

ALGORITHMS = {name: f"tdpo_baselines.{name}" for name in ("tdpo", "trpo", "ppo1", "ddpg", "td3", "ars", "cma")}

ENVIRONMENTS = {
    "pendulum-nlr": ("envs:tdpo/PendulumNLR-v0", {"variant": 1}),
    **{f"pendulum-nlr-{v}": ("envs:tdpo/PendulumNLR-v0", {"variant": v}) for v in range(2, 10)},
    **{f"pendulum-{rate}hz": ("envs:tdpo/PendulumLong-v0", {"control_rate_hz": rate}) for rate in (20, 100, 500)},
    "leg": ("envs:tdpo/Leg-v0", {}),
    "leg-stochastic": ("envs:tdpo/LegStochastic-v0", {}),
    "leg-100hz": ("envs:tdpo/LegStochastic100Hz-v0", {}),
    "delayed-spring": ("envs:tdpo/DelayedSpring-v0", {}),
    "double-well": ("envs:tdpo/DoubleWell-v0", {}),
    "cart-pole": ("envs:tdpo/CartPole-v0", {}),
    "birotor": ("envs:tdpo/Birotor-v0", {}),
    "dead-time": ("envs:tdpo/DeadTime-v0", {}),
    "step-response": ("envs:tdpo/StepResponse-v0", {}),
    "two-mass": ("envs:tdpo/TwoMass-v0", {}),
    "chain": ("envs:tdpo/Chain-v0", {}),
}
COMPILED_MEANING = "use the compiled equal of this task, if it is equal here; false: go through Gymnasium"
TWINS = {  # modules of compiled environments that equal Gymnasium's
    f"{task}-v5": "envs.mujoco.twins." + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", task).lower()
    for task in (
        *(
            "InvertedPendulum",
            "InvertedDoublePendulum",
            "Swimmer",
            "Hopper",
            "HalfCheetah",
            "Walker2d",
            "Reacher",
            "Ant",
            "Humanoid",
        ),
    )
}
WITH_MODEL = ("leg", "leg-stochastic", "leg-100hz", *TWINS)  # of MuJoCo
DELAY_MEANING = (
    "actions are executed this many control steps late; zeros before that; a range as 0:4 is drawn from at each start"
)
PATHS = ("noise_template",)  # options that name files
MAX_HORIZON, MAX_STATE = 10**6, 10**6  # steps of an episode, and numbers of its state
MAX_OPTIONS = {"max_episode_steps": MAX_HORIZON, "delay_steps": 1000, "frame_skip": 1000}


def algorithm(name: str) -> "Algorithm":
    """Import an algorithm."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}{did_you_mean(name, ALGORITHMS)}; --list shows the algorithms")
    module: Any = import_module(ALGORITHMS[name])
    return module


def check_environment(name: str) -> None:
    """Raise ValueError unless the name is in ENVIRONMENTS, an id of Gymnasium or classic gym, or "module:function".

    Gymnasium's ids are "Id" and "module:Id", those of classic gym "gym:Id" and "gym:module:Id".
    """
    import gymnasium

    if name in ENVIRONMENTS:
        return
    module, colon, _ = name.removeprefix("gym:").rpartition(":")
    if colon and "" in module.split("."):
        raise ValueError(f"unknown environment {name!r}; a module's name has no empty part; --list shows environments")
    try:
        _spec_of_other(name)
    except (ImportError, gymnasium.error.Error) as error:
        if name.startswith(callables.PREFIX):
            raise ValueError(
                f"a callable made the environment {name}, and runs do not hold callables; pass it again from Python: "
                "load(PATH, env=...) or train(env=..., log_dir=PATH, resume=True)"
            ) from error
        module, colon, env_id = name.rpartition(":")
        others = dir(sys.modules.get(module)) if module else ENVIRONMENTS
        near = did_you_mean(env_id, [*others, *gymnasium.registry], module + colon)
        why = "" if near else f" ({error})"
        raise ValueError(f"unknown environment {name!r}{near}; --list shows the environments{why}") from error


def require_trusted(name: str, options: dict) -> None:
    """Raise ValueError if a run's environment would import a module, or read a file that is not a table of ours.

    The run may be someone else's.
    """
    if module := module_of(name):
        raise ValueError(
            f"the run's environment is {name}, which would import and so execute the module {module}; "
            f"if you trust it, pass --env {name}"
        )
    if name in ENVIRONMENTS:
        return
    check_environment(name)
    own = environment_options(name)
    for option, value in options.items():
        if isinstance(value, str) and value != own.get(option) and re.search(r"[/\\]|^[.~]", value):
            raise ValueError(f"env.{option} of the run is the file {value}; if you trust it, pass --env {name}")


def check_limits(options: dict) -> None:
    """Raise ValueError for options with which an episode would never end, or open a window."""
    for name, most in MAX_OPTIONS.items():
        value = options.get(name)
        ends = ends_of(value) if name == "delay_steps" else (value, value)
        if value is not None and not all(isinstance(end, (int, float)) and 0 <= end <= most for end in ends):
            raise ValueError(f"env.{name} must be a number from 0 to {most}, got {value!r}")
    if options.get("render_mode") == "human":
        raise ValueError("env.render_mode must not be human: a run opens no windows; evaluate --video films it")


def module_of(name: str) -> str:
    """Return the module that an environment's name asks to import; '' for our own and the libraries' environments."""
    from ..common.sampling import classic_gym

    module = name.removeprefix(classic_gym.PREFIX).rpartition(":")[0]
    return "" if module == "envs" else module


def _spec_of_other(name: str) -> Any:
    """Return the specification that Gymnasium or classic gym has of an environment that is not ours."""
    import gymnasium

    from ..common.sampling import classic_gym

    if name.startswith(classic_gym.PREFIX):
        return classic_gym.spec(name.removeprefix(classic_gym.PREFIX))
    module, _, env_id = name.rpartition(":")
    imported = callables.import_named(module) if module else None
    if module_of(name) and env_id not in gymnasium.registry and callable(make := getattr(imported, env_id, None)):
        return callables.specify(make, name)
    return gymnasium.spec(env_id)


def make_environment(name: str, options: dict) -> "Environment":
    """Make an environment: a compiled kernel of ours, or another library's behind the same interface."""
    from ..common.sampling.gym_environment import GymEnvironment

    env, delay_steps = _make_undelayed(name, options), ends_of(options.get("delay_steps", 0))
    delays = import_module("envs.action_delay") if delay_steps[1] else None
    environment: Any
    if kernel := _kernel_of(name, env) or _compiled_twin(name, options, env):
        environment = delays.delay_actions(kernel, delay_steps) if delays else kernel
    else:
        environment = GymEnvironment(delays.ActionDelay(env, delay_steps) if delays else env)
    if environment.horizon > MAX_HORIZON or environment.state_size > MAX_STATE:
        raise ValueError(
            f"{name} has episodes of {environment.horizon} steps and {environment.state_size} numbers of state with "
            f"these options, more than {MAX_HORIZON} or {MAX_STATE}; shorten the episodes or the delay"
        )
    return environment


def _compiled_twin(name: str, options: dict, env: Any) -> Any:
    """Return the compiled equal of a Gymnasium environment, or None if it has none with these options."""
    if name not in TWINS or not options.get("compiled", True):
        return None
    own = environment_options(name)
    changed = {option for option, value in options.items() if value != own.get(option)}
    if changed - {"delay_steps", "max_episode_steps", *quantities(name)}:
        return None
    from ..common.sampling.twin import is_twin

    _require_our_envs()
    kernel = import_module(TWINS[name]).kernel(env.spec.max_episode_steps)
    if is_twin(kernel, env):
        return kernel
    if not launcher.rank():
        print(f"{name} differs from its compiled equal here, so it goes through Gymnasium", file=sys.stderr)
    return None


def _kernel_of(name: str, env: Any) -> Any:
    """Return the kernel of an environment; None if it has none, or wrappers that compiled code would leave out."""
    from gymnasium.wrappers import OrderEnforcing, TimeLimit

    kernel, limit = getattr(env.unwrapped, "kernel", None), env.spec.max_episode_steps
    while isinstance(env, (OrderEnforcing, TimeLimit)):
        env = env.env
    if kernel is None or env is not env.unwrapped:
        return None
    if limit not in (None, kernel.horizon):
        raise ValueError(
            f"env.max_episode_steps must be {kernel.horizon}, the horizon of {name}, got {limit}; "
            "give the function that makes it a parameter for the horizon"
        )
    return kernel


def make_gymnasium(name: str, options: dict) -> Any:
    """Make an environment with Gymnasium's interface."""
    env, delay_steps = _make_undelayed(name, options), ends_of(options.get("delay_steps", 0))
    return import_module("envs.action_delay").ActionDelay(env, delay_steps) if delay_steps[1] else env


def _make_undelayed(name: str, options: dict) -> Any:
    """Make an environment of Gymnasium or classic gym without the delay of the actions."""
    env, neutral = _make_plain(name, options), quantities(name)
    ranges = {option: ends_of(options[option]) for option in neutral if option in options}
    if not ranges or (name in WITH_MODEL and all(set(ends) == {neutral[o]} for o, ends in ranges.items())):
        return env
    kernel = _kernel_of(name, env) or _compiled_twin(name, options, env)
    if kernel is None:
        raise ValueError(f"{name} is not compiled here, so it has no option env.{' or env.'.join(ranges)}")
    made = import_module("envs.gym_env").KernelEnv(import_module("envs.ranges").randomise(kernel, ranges))
    made.spec = env.spec
    return made


def _make_plain(name: str, options: dict) -> Any:
    """Make an environment of Gymnasium or classic gym as it is."""
    import gymnasium

    from ..common.sampling import classic_gym
    from ..common.sampling.gym_environment import print_warnings_once

    env_id = ENVIRONMENTS[name][0] if name in ENVIRONMENTS else name
    ours = {"delay_steps", *quantities(name), *(("compiled",) if name in TWINS else ())}
    own_options = {option: value for option, value in options.items() if option not in ours}
    expected: Any = (TypeError, ImportError, gymnasium.error.Error)
    if name not in ENVIRONMENTS:
        print_warnings_once()
        expected = Exception  # others' code may raise anything
    try:
        if env_id.startswith(classic_gym.PREFIX):
            return classic_gym.make(env_id.removeprefix(classic_gym.PREFIX), **own_options)
        target = _spec_of_other(name) if module_of(name) else env_id
        return gymnasium.make(target, disable_env_checker=True, **own_options)
    except ValueError:
        raise
    except expected as error:
        raise ValueError(f"{name} cannot be made with {options or 'no options'}: {callables.explain(error)}") from error


def make_roller(environment: Any, options: Any) -> "Roller":
    """Make the roller of an environment for the policy network of an algorithm's options."""
    from ..common.sampling.gym_roller import GymEnvironment, GymRoller
    from ..common.sampling.kernel_roller import KernelRoller

    roller = GymRoller if isinstance(environment, GymEnvironment) else KernelRoller
    gamma = options.fit(environment).gamma
    return roller(environment, options.hidden_sizes, gamma, options.network_style(environment))


def resolve_values(algorithm_name: str, environment: str, values: dict) -> dict:
    """Return all options of the algorithm, and under names with "env." of the environment; texts are parsed."""
    env_options, options = split_prefix(values, "env.")
    resolved = algorithm(algorithm_name).Config.from_values(options).to_values()
    return resolved | {f"env.{name}": value for name, value in resolve_options(environment, env_options).items()}


def resolve_options(name: str, options: dict) -> dict:
    """Return all options of an environment: the user's, with texts parsed, over the defaults."""
    known, given = environment_options(name), {}
    for option, value in options.items():
        if name in ENVIRONMENTS and option not in known:  # others are checked when they are made
            near = did_you_mean(option, known)
            raise ValueError(f"unknown option 'env.{option}' of {name}{near}; it has {', '.join(known)}")
        is_drawn = option == "delay_steps" or option in quantities(name)
        if is_drawn:
            given[option] = parse_range(f"env.{option}", value, int if option == "delay_steps" else float)
        else:
            given[option] = parse_like(f"env.{option}", value, known.get(option))
        if option in PATHS and value:  # a run may be evaluated from another folder
            given[option] = str(Path(value).expanduser().resolve())
    check_limits(given)
    return known | given


def environment_options(name: str) -> dict:
    """Return the names and defaults of an environment's options; environments of others may have more."""
    check_environment(name)
    if name not in ENVIRONMENTS:
        spec = _spec_of_other(name)
        own = {option: default for option, default in spec.kwargs.items() if option != "kernel"}  # names one of ours
        compiled = {"compiled": True, **quantities(name)} if name in TWINS else {}
        return {"delay_steps": 0, **compiled, **own, "max_episode_steps": spec.max_episode_steps}
    env_id, fixed = ENVIRONMENTS[name]
    maker, registered = _kernel_maker(env_id)
    parameters = inspect.signature(maker).parameters
    own = {p.name: p.default for p in parameters.values()} | {"delay_steps": 0} | registered | fixed
    return own | quantities(name)


def quantities(name: str) -> dict[str, float]:
    """Return the quantities of a MuJoCo model that may be drawn at each start, with the values that change nothing.

    A function of a user's may make an environment without a model, and may have options of the same names.
    """
    taken = {} if name in ENVIRONMENTS or name in TWINS else callables.parameters_of(_spec_of_other(name))
    if taken is None or (name in ENVIRONMENTS and name not in WITH_MODEL):
        return {}
    _require_our_envs()
    return {option: value for option, value in import_module("envs.ranges").NEUTRAL.items() if option not in taken}


def option_meanings(name: str) -> dict[str, str]:
    """Return the meanings of the options of one of our environments, from `OPTIONS` of its module; none of others."""
    if name not in ENVIRONMENTS:
        own = {"compiled": COMPILED_MEANING} if name in TWINS else {}
    else:
        module: Any = import_module(_kernel_maker(ENVIRONMENTS[name][0])[0].__module__)
        own = vars(module).get("OPTIONS", {})
    drawn = import_module("envs.ranges").QUANTITIES if quantities(name) else {}
    return {"delay_steps": DELAY_MEANING} | own | drawn


def _kernel_maker(env_id: str) -> tuple[Callable, dict]:
    """Return the function that makes the kernel of one of our ids, and the options that the id fixes."""
    import gymnasium

    _require_our_envs()
    registered = dict(gymnasium.spec(env_id.partition(":")[2]).kwargs)
    module, function = registered.pop("kernel").split(":")
    return getattr(import_module(module), function), registered


def _require_our_envs() -> None:
    """Raise ValueError if another package hides ours."""
    envs = import_module("envs")
    if not getattr(envs, "IS_TDPO_BASELINES", False):
        folder = Path(envs.__file__).parent if envs.__file__ else next(iter(envs.__path__))
        raise ValueError(
            f"another package named 'envs' hides ours, from {folder}; rename it, or use the `tdpo` command, which "
            "does not look into the working folder, or pip uninstall envs if pip installed it"
        )


def presets(algorithm_name: str, environment: str) -> dict[str, dict]:
    """Return the presets of an algorithm for an environment by name ("tuned", "paper").

    In presets.json an environment may be a pattern as for file names; later entries override earlier ones.
    """
    module: Any = algorithm(algorithm_name)
    path = Path(module.__file__).parent / "presets.json"
    if not path.is_file():
        return {}
    found: dict[str, dict] = {}
    for pattern, settings in read_json(path).items():
        if fnmatchcase(environment, pattern):
            for preset, values in settings.items():
                found[preset] = {**found.get(preset, {}), **values}
    return found


def describe() -> str:
    """Return the list of algorithms and environments, with a line about each from its docstring."""
    lines = ["algorithms (--alg):", *(f"  {name:16} {_first_line(algorithm(name))}" for name in ALGORITHMS)]
    lines += ["environments (--env):"]
    for name, (target, fixed) in ENVIRONMENTS.items():
        maker, registered = _kernel_maker(target)
        options = ", ".join(f"{option}={value}" for option, value in (registered | fixed).items())
        lines.append(f"  {name:16} {_first_line(maker)}{f' ({options})' if options else ''}")
    lines.append("  any id of Gymnasium (Id, module:Id) or of classic gym (gym:Id, gym:module:Id)")
    return "\n".join([*lines, "  module:function, which returns a kernel or an environment of Gymnasium"])


def _first_line(described: Any) -> str:
    """Return the first line of a docstring without the "Return" and the full stop."""
    return (inspect.getdoc(described) or "").partition("\n")[0].removeprefix("Return ").removesuffix(".")
