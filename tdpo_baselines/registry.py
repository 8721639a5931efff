"""Names that users type, and where what they name lives. Nothing is imported until it is asked for."""

import inspect
from fnmatch import fnmatchcase
from importlib import import_module, resources
from types import ModuleType

from .config import nearest, parse_like, read_json

ALGORITHMS = {"tdpo": "tdpo_baselines.algos.tdpo"}

ENVIRONMENTS = {
    "pendulum-nlr": ("envs:tdpo/PendulumNLR-v0", {"variant": 1}),
    **{f"pendulum-nlr-{v}": ("envs:tdpo/PendulumNLR-v0", {"variant": v}) for v in range(2, 10)},
    **{f"pendulum-{rate}hz": ("envs:tdpo/PendulumLong-v0", {"control_rate_hz": rate}) for rate in (20, 100, 500)},
    "leg": ("envs:tdpo/Leg-v0", {}),
    "leg-stochastic": ("envs:tdpo/LegStochastic-v0", {}),
    "leg-100hz": ("envs:tdpo/LegStochastic100Hz-v0", {}),
}


def algorithm(name: str) -> ModuleType:
    """The module of an algorithm: it has `Config` and `Learner`."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}{nearest(name, ALGORITHMS)}; --list shows what there is")
    return import_module(ALGORITHMS[name])


def check_environment(name: str) -> None:
    if name not in ENVIRONMENTS:
        raise ValueError(f"unknown environment {name!r}{nearest(name, ENVIRONMENTS)}; --list shows what there is")


def make_kernel(name: str, options: dict):
    """The compiled environment of that name with these options."""
    import gymnasium

    env = gymnasium.make(ENVIRONMENTS[name][0], **options).unwrapped
    return getattr(env, "kernel")  # noqa: B009


def resolve_options(name: str, options: dict) -> dict:
    """All options of an environment: the user's (text is parsed) over the name's own."""
    known = environment_options(name)
    for option in options:
        if option not in known:
            raise ValueError(
                f"unknown option 'env.{option}' of {name}{nearest(option, known)}; it has {', '.join(known)}"
            )
    return known | {option: parse_like(f"env.{option}", value, known[option]) for option, value in options.items()}


def environment_options(name: str) -> dict:
    """Names and defaults of what `--set env.NAME=VALUE` can set."""
    import gymnasium

    check_environment(name)
    env_id, fixed = ENVIRONMENTS[name]
    if not getattr(import_module("envs"), "IS_TDPO_BASELINES", False):
        raise ValueError("another package named 'envs' comes first on the path; pip uninstall envs")
    registered = dict(gymnasium.spec(env_id.partition(":")[2]).kwargs)
    module, function = registered.pop("kernel").split(":")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters
    return {p.name: p.default for p in parameters.values()} | registered | fixed


def presets(algorithm_name: str, environment: str) -> dict[str, dict]:
    """Shipped settings for an environment by name ("tuned", "paper"); an entry's key may end in "*"."""
    path = resources.files("tdpo_baselines") / "presets" / f"{algorithm_name}.json"
    if not path.is_file():
        return {}
    found: dict[str, dict] = {}
    for pattern, settings in read_json(str(path)).items():
        if fnmatchcase(environment, pattern):
            for preset, values in settings.items():
                found[preset] = {**found.get(preset, {}), **values}
    return found
