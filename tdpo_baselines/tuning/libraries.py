"""Libraries that propose points of the unit cube, behind one function.

    propose(points [E, D], values [E], num, seed) -> [num, D]

Values are maximised. A proposal depends on its arguments alone, so a search that was interrupted proposes what it would
have proposed. The points of a batch are proposed one after the other, each as if those before it had come out badly
(constant liar), so that they differ.
"""

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable

import numpy as np

Proposer = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]
NUM_RANDOM = 10  # points at least before a model is fitted


def propose_random(points: np.ndarray, values: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Propose random points, to compare the others with."""
    return np.random.default_rng(seed).random((num, points.shape[1]))


def propose_optuna(points: np.ndarray, values: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Propose by Optuna's tree-structured Parzen estimator."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{d}" for d in range(points.shape[1])]
    space: dict = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=NUM_RANDOM, multivariate=True, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for point, value in zip(points.tolist(), values.tolist()):
        params = dict(zip(names, point))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=value))
    return np.array([[study.ask(space).params[name] for name in names] for _ in range(num)])


def propose_bayesopt(points: np.ndarray, values: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Propose by bayesian-optimization: a Gaussian process with a Matern kernel and upper confidence bounds."""
    from bayes_opt import BayesianOptimization
    from bayes_opt.acquisition import ConstantLiar, UpperConfidenceBound

    if len(points) < NUM_RANDOM:
        return propose_random(points, values, num, seed)
    names = [f"x{d:03d}" for d in range(points.shape[1])]  # it sorts them
    acquisition = ConstantLiar(UpperConfidenceBound(random_state=seed), strategy="min", random_state=seed)
    search = BayesianOptimization(
        None, dict.fromkeys(names, (0.0, 1.0)), acquisition, random_state=seed, verbose=0, allow_duplicate_points=True
    )
    for point, value in zip(points, values):
        search.register(dict(zip(names, point)), value)
    proposed = [search.suggest() for _ in range(num)]
    return np.array([[point[name] for name in names] for point in proposed])


def propose_skopt(points: np.ndarray, values: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Propose by scikit-optimize: a Gaussian process with a hedge of acquisition functions."""
    from skopt import Optimizer

    if len(points) < NUM_RANDOM:
        return propose_random(points, values, num, seed)
    search = Optimizer([(0.0, 1.0)] * points.shape[1], n_initial_points=0, random_state=seed)
    search.tell(points.tolist(), (-values).tolist())
    return np.array(search.ask(num, strategy="cl_max"))


def propose_gpyopt(points: np.ndarray, values: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Propose by GPyOpt: a Gaussian process with lower confidence bounds and noise."""
    from GPyOpt.methods import BayesianOptimization

    if len(points) < NUM_RANDOM:
        return propose_random(points, values, num, seed)
    np.random.seed(seed)  # it uses NumPy's global generator
    domain = [{"name": str(d), "type": "continuous", "domain": (0.0, 1.0)} for d in range(points.shape[1])]
    known, costs = points, -values[:, None]
    for _ in range(num):
        how = {"acquisition_type": "LCB", "exact_feval": False, "normalize_Y": True}
        search = BayesianOptimization(None, domain, X=known, Y=costs, **how)
        known = np.vstack([known, search.suggest_next_locations()])
        costs = np.vstack([costs, costs.max()])
    return known[len(points) :]


LIBRARIES: dict[str, tuple[str, str, Proposer]] = {  # name -> module, what pip installs, function
    "optuna": ("optuna", "tdpo_baselines[tune]", propose_optuna),
    "bayesopt": ("bayes_opt", "bayesian-optimization", propose_bayesopt),
    "skopt": ("skopt", "scikit-optimize", propose_skopt),
    "gpyopt": ("GPyOpt", "GPyOpt", propose_gpyopt),
    "random": ("numpy", "numpy", propose_random),
}


def require(name: str) -> None:
    """Raise ValueError if a library is not installed."""
    module, package, _ = LIBRARIES[name]
    if importlib.util.find_spec(module) is None:
        raise ValueError(f'--library {name} is not installed; pip install "{package}", or pass another --library')


def propose(name: str, points: np.ndarray, values: np.ndarray, *, num: int, seed: int) -> np.ndarray:
    """Return proposals of a library, without what it prints. [num, D]

    Values are standardised by their ranks: returns differ by orders of magnitude, and a diverged run must not
    dominate a model.
    """
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(len(values) - 1, 1)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        proposed = LIBRARIES[name][2](points, ranks, num, seed)
    return np.clip(proposed, 0.0, 1.0)
