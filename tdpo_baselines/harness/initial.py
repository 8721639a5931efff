"""Begin a run from another policy: that of a run or a file, if its network fits.

Only the policy is taken over. `RunConfig.init` has the name it came from and the hash of its parameters.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..common.networks import mlp
from ..common.networks.normalisation import RunningStats
from ..common.parallel.seeding import generator
from ..contracts import Learner
from ..evaluating.trained import PRETRAINED, Network, Trained, load
from ..storage import checkpoint
from ..storage.run_folder import RunConfig, RunFolder
from .stages import Stage


def name_source(source: str) -> str:
    """Return the name of a policy as config.json holds it: a path that does not depend on the working folder."""
    return source if source.startswith(PRETRAINED) else str(Path(source).expanduser().resolve())


def take_over(
    config: RunConfig, stage: Stage, folder: RunFolder, *, is_resumed: bool
) -> tuple[RunConfig, np.ndarray | None]:
    """Return the config with the hash of the policy that the run begins from, and its parameters [P] if it begins now.

    A run that is resumed has them in its checkpoints.
    """
    if not config.init:
        return config, None
    if is_resumed and checkpoint.has_checkpoints(folder.checkpoints):
        here = folder.find_config().init
        return (replace(config, init=here) if here.get("from") == config.init["from"] else config), None
    source = config.init["from"]
    try:
        trained = load(source, env=config.environment)
        theta = fit(trained, network_of(stage), config.seed)
    except (ValueError, OSError) as error:
        raise ValueError(f"--init {source}: {error}") from error
    if config.init.get("sha256", trained.sha256) != trained.sha256:
        raise ValueError(f"--init {source} has other parameters than the run that --config repeats; pass the same")
    return replace(config, init={"from": source, "sha256": trained.sha256}), theta


def network_of(stage: Stage) -> Network:
    """Return the shape of a stage's policy."""
    options, environment = stage
    sizes = (environment.observation_size, *options.hidden_sizes, environment.action_size)
    return Network(sizes, options.network_style(environment))


def fit(trained: Trained, network: Network, seed: int) -> np.ndarray:
    """Return the parameters [P] of a network that acts like a trained policy; raise ValueError if it cannot.

    A linear policy becomes the linear part of a network, whose layers begin with random weights and zero outputs.
    """
    source, (sizes, style) = trained.network, network
    if source == network:
        return trained.theta
    is_linear = len(source.sizes) == 2 and not source.style.has_linear_part
    fits = (source.sizes[0], source.sizes[-1]) == (sizes[0], sizes[-1])
    fits &= source.style._replace(has_linear_part=True, hidden=style.hidden) == style
    if not (is_linear and fits):
        raise ValueError(
            f"the policy has layers {describe(source)}, the run asks for {describe(network)}; "
            "pass the hidden_sizes and the algorithm's options of the policy"
        )
    theta = mlp.init_parameters(sizes, generator(seed, "weights"), 0.0, style)
    ((weights, biases),) = mlp.split_layers(trained.theta, source.sizes)
    mlp.split_layers(theta, sizes)[-1][1][:] = biases
    mlp.linear_part(theta, sizes)[:] = weights.ravel()
    return theta


def describe(network: Network) -> str:
    """Return sizes and style in words."""
    sizes, style = network
    words = ["-".join(map(str, sizes)), style.hidden]
    words += ["tanh output"] * style.is_squashed + ["output in half ranges"] * bool(style.scale)
    return ", ".join(words + ["linear part"] * style.has_linear_part)


def begin_with(learner: Learner, theta: np.ndarray) -> None:
    """Let a learner that has not begun yet continue from a policy, as if a stage before had learned it.

    One observation of mean 0 and deviation 1 stands for those of that stage: without any, the learner would take theta
    for parameters that see normalised observations, and change the policy.
    """
    state = {component: dict(values) for component, values in learner.replicated().items()}
    state["policy"]["theta"] = theta.copy()
    if "targets" in state:
        state["targets"]["actor"] = theta.copy()
    if "observation_stats" in state:
        size = len(state["observation_stats"]["sum"])
        state["observation_stats"] = RunningStats(1.0, np.zeros(size), np.ones(size))._asdict()
    learner.begin_from(state)
