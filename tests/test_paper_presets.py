"""The `paper` presets hold the numbers of the paper's text and of its appendix, which gives batches per worker."""

import pytest

from tdpo_baselines import run
from tdpo_baselines.harness.resolve import resolve

MILLION = 10**6
WORKERS = {  # and counted steps of a run
    "pendulum-nlr": (48, 500 * MILLION),
    "pendulum-nlr-7": (48, 500 * MILLION),
    "leg": (72, 500 * MILLION),
    "Swimmer-v5": (72, 144 * MILLION),
    "pendulum-20hz": (4, 20_000 * 200),
    "pendulum-100hz": (4, 20_000 * 1000),
    "pendulum-500hz": (4, 20_000 * 5000),
    "leg-100hz": (4, 4 * MILLION),
    "leg-stochastic": (144, 5000 * MILLION),
}
DISCOUNT = {"pendulum-100hz": 0.998, "pendulum-500hz": 0.9996, "leg": 0.99975, "leg-stochastic": 0.99975}
LAMBDA = {
    "trpo": {"pendulum-100hz": 0.996, "pendulum-500hz": 0.9992, "leg": 0.9995, "leg-stochastic": 0.9995},
    "ppo1": {
        "pendulum-100hz": 0.99,
        "pendulum-500hz": 0.998,
        "leg-100hz": 0.98,
        "leg": 0.99875,
        "leg-stochastic": 0.9995,
    },
}
DEFAULT_LAMBDA = {"trpo": 0.98, "ppo1": 0.95}
SAMPLING = {  # steps per update and worker
    "trpo": {"pendulum-100hz": 5120, "pendulum-500hz": 25_600, "leg": 8000, "leg-stochastic": 40_000},
    "ppo1": {"pendulum-100hz": 1280, "pendulum-500hz": 6400, "leg": 8000, "leg-stochastic": 40_000},
}
DEFAULT_SAMPLING = {"trpo": 1024, "ppo1": 256}
OPTIMISATION = {"trpo": {"pendulum-20hz": 128, "pendulum-100hz": 640, "pendulum-500hz": 3200}}  # rows per worker
OPTIMISATION["ppo1"] = {"pendulum-20hz": 64, "pendulum-100hz": 320, "pendulum-500hz": 1600}
REPLAY = {  # buffer, initial random steps, training interval, rows of a minibatch, of a worker
    "pendulum-100hz": (250_000, 500, 500, 640),
    "pendulum-500hz": (1_250_000, 2500, 2500, 3200),
    "leg-stochastic": (2 * MILLION, 4000, 4000, 128),
    "leg": (50_000, 100, 8000, 128),  # all methods: 72 full trajectories between updates
}
DEFAULT_REPLAY = (50_000, 100, 100, 128)
CENTRES = {  # the other rows of the parameter sweeps' tables
    "trpo": {
        "max_kl": 0.01, "cg_iterations": 10, "entropy_coefficient": 0.0, "cg_damping": 0.01,
        "value_learning_rate": 3e-4, "value_epochs": 3, "num_value_minibatches": 8, "hidden_sizes": (64, 64),
    },
    "ppo1": {
        "clip": 0.2, "num_epochs": 4, "num_minibatches": 4, "learning_rate": 1e-3, "adam_epsilon": 1e-5,
        "is_clip_decayed": True, "hidden_sizes": (64, 64),
    },
    "td3": {
        "actor_learning_rate": 3e-4, "critic_learning_rate": 3e-4, "updates_per_round": 100, "target_rate": 0.005,
        "policy_delay": 2, "noise": "ou", "noise_bandwidth": 1.0, "noise_std": 0.1, "target_noise_std": 0.2,
        "target_noise_clip": 0.5, "hidden_sizes": (64, 64),
    },
    "ddpg": {
        "actor_learning_rate": 1e-4, "critic_learning_rate": 1e-3, "updates_per_round": 50, "target_rate": 0.001,
        "noise_std": 0.0, "hidden_sizes": (64, 64),
    },
}  # fmt: skip


def paper(algorithm: str, environment: str):
    return resolve(run.parse(["--alg", algorithm, "--env", environment, "--preset", "paper"]))


def check_common(algorithm: str, environment: str) -> dict:
    """Assert what all methods share; return the options."""
    asked = paper(algorithm, environment)
    options, (workers, num_timesteps) = asked.config.options, WORKERS[environment]
    assert asked.budget.num_timesteps == num_timesteps and options["num_trajectories"] == workers
    assert options["gamma"] == DISCOUNT.get(environment, 0.99) and options["time_limit"] == "terminal"
    assert CENTRES[algorithm].items() <= options.items()
    return options


@pytest.mark.parametrize("environment", WORKERS)
@pytest.mark.parametrize("algorithm", ["trpo", "ppo1"])
def test_on_policy_rivals_have_the_numbers_of_the_paper(algorithm, environment):
    options = check_common(algorithm, environment)
    assert options["lam"] == LAMBDA[algorithm].get(environment, DEFAULT_LAMBDA[algorithm])
    num_steps = SAMPLING[algorithm].get(environment, DEFAULT_SAMPLING[algorithm])
    assert options["steps_per_trajectory"] == num_steps
    assert not options["use_observation_normalisation"] and not options["use_return_normalisation"]
    rows = OPTIMISATION[algorithm].get(environment)
    if rows:
        assert num_steps // rows == options["num_value_minibatches" if algorithm == "trpo" else "num_minibatches"]
    if algorithm == "ppo1":
        assert options["decay_timesteps"] == WORKERS[environment][1]  # linear over the run
        assert options["entropy_coefficient"] == (0.0 if environment in ("leg-100hz", "leg-stochastic") else 0.01)


@pytest.mark.parametrize("environment", WORKERS)
def test_td3_has_the_numbers_of_the_paper(environment):
    options, workers = check_common("td3", environment), WORKERS[environment][0]
    buffer, warm_up, interval, rows = REPLAY.get(environment, DEFAULT_REPLAY)
    found = [options[name] for name in ("buffer_size", "random_timesteps", "batch_size")]
    assert found == [workers * number for number in (buffer, warm_up, rows)] and options["steps_per_round"] == interval
    is_plain = environment in ("leg-100hz", "leg-stochastic")  # the network of the other methods
    assert (options["activation"], options["use_tanh_output"]) == (("tanh", False) if is_plain else ("relu", True))


@pytest.mark.parametrize("environment", ["pendulum-nlr", "leg", "Swimmer-v5"])
def test_ddpg_has_the_defaults_of_stable_baselines_and_the_workers_of_the_paper(environment):
    options, workers = check_common("ddpg", environment), WORKERS[environment][0]
    assert (options["buffer_size"], options["batch_size"]) == (workers * 50_000, workers * 128)
    assert options["steps_per_round"] == (8000 if environment == "leg" else 100)


@pytest.mark.parametrize(
    ("environment", "num_trajectories", "alpha", "beta", "ratio"),
    [("pendulum-nlr", 48, 5, 60, 0), ("leg", 72, 5, 1.5, 1), ("Swimmer-v5", 72, 5, 1, 1)],
)
def test_basic_tdpo_has_the_recipe_of_the_paper(environment, num_trajectories, alpha, beta, ratio):
    """The paper gives no scales for Gym: actions are up to 1. Its beta of 5 and ratio of 1 fail on the pendulum."""
    asked = paper("tdpo", environment)
    options = asked.config.options
    assert (options["variant"], options["num_trajectories"]) == ("basic", num_trajectories)
    found = [options[name] for name in ("c2", "c1_over_c2", "delta_max", "exploration_std")]
    assert found == pytest.approx([3600 * alpha / beta**2, ratio, beta / 600, beta / 60])
    assert options["gamma"] == DISCOUNT.get(environment, 0.99) and options["branch_times"] == "geometric"
    assert asked.budget.num_timesteps == WORKERS[environment][1]


def test_advanced_tdpo_has_the_authors_settings_in_our_units():
    """Their sums over held steps are means here, and their H is half the paper's: damping 2 is 4 / held_steps."""
    long, short = paper("tdpo", "leg-stochastic"), paper("tdpo", "leg-100hz")
    for asked, num_trajectories, gamma, held_steps in ((long, 252, 0.99975, 10), (short, 28, 0.99, 1)):
        options = asked.config.options
        found = [options[name] for name in ("variant", "num_trajectories", "num_branches", "gamma", "held_steps")]
        assert found == ["advanced", num_trajectories, 1, gamma, held_steps]
        assert options["cg_damping"] == pytest.approx(4.0 / held_steps) and options["cg_iterations"] == 11
        assert (options["exploration_std"], options["c1_over_c2"]) == (0.1 * 45, 0)
        assert options["c2"] == pytest.approx(100 * 75 / 45**2 / 1000, rel=1e-4)  # rewards in the paper's units
    assert (long.budget.num_timesteps, short.budget.num_timesteps) == (5000 * MILLION, 4 * MILLION)
