"""Any Gymnasium environment with a flat state that can be saved and loaded.

A branch must start exactly where its main trajectory was. MuJoCo environments are restored by their integration state,
step count and generator; others are reset with the same seed and replay the actions. A self-test decides which, bit
for bit, and refuses environments that are not reproducible from their seed.

State: step count, observation, then either MuJoCo's state, what it has derived of it, and the generator's, or the seed
and the actions so far.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from ..parallel import launcher
from ..parallel.checks import BadEnvironment, is_finite, require_memory
from . import gym_checks, watchdog

GENERATOR_SIZE = 10  # a PCG64 state in 32-bit pieces
DERIVED = ("xpos", "xipos", "cinert", "cvel", "qfrc_actuator", "cfrc_ext")  # some tasks read them before they step
NOT_REPRODUCIBLE = "so branches cannot be compared; the environment must draw all its randomness from `self.np_random`"


class GymEnvironment:
    """A Gymnasium environment with flat vectors for observations, actions and its whole state.

    A number that is not finite, in or out, ends the episode with a reward that is not a number: every rank learns of
    it with the return, and nothing of it is learned from. Everything else that is wrong raises BadEnvironment.
    """

    start_size = 1  # the seed, as a number in the unit interval
    is_action_limited = True
    is_horizon_terminal = False  # TimeLimit is a mere limit; an environment that ends its task itself says so
    measure = criterion = draw = scene = interface = params = None

    def __init__(self, env: Any):
        self.env = env
        self.horizon = gym_checks.horizon(env)
        self.action_low, self.action_high = gym_checks.action_limits(env)
        self.action_size = len(self.action_low)
        self.observation_size = gym_checks.observation_size(env)
        self._seed, self._num_steps, self._observation = 0, 0, np.zeros(self.observation_size)
        self._fault = ""  # the first number that was not finite
        require_memory("actions of env.max_episode_steps", 8.0 * self.horizon * self.action_size)
        self._actions = np.zeros((self.horizon, self.action_size))
        self._mujoco_size, self._derived = 0, tuple[str, ...]()
        self._saved: np.ndarray | None = None  # the present state, if it was saved already
        self.is_restored = self._is_tested = False
        self._test()
        self._is_tested = True

    @property
    def state_size(self) -> int:
        rest = self._mujoco_size + GENERATOR_SIZE if self.is_restored else 1 + self._actions.size
        return 1 + self.observation_size + rest

    @property
    def _name(self) -> str:
        return self.env.spec.id

    @property
    def how_branches_start(self) -> str:
        if self.is_restored:
            return "from the restored state"
        why = "its restored state does not go on to the bit" if self._mujoco_size else "it has no state to restore"
        return f"by replaying the actions from the start, because {why}; replayed steps count as timesteps"

    @property
    def poses(self) -> Callable | None:
        """Return poses(params, states) if MuJoCo's positions are known, else None."""
        from gymnasium.envs.mujoco import MujocoEnv

        base = self.env.unwrapped
        return (lambda params, states: (base.model, states)) if isinstance(base, MujocoEnv) else None

    @property
    def control_rate_hz(self) -> float:
        """The number of steps per second of a MuJoCo task."""
        return 1 / self.env.unwrapped.dt

    def replay(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return MuJoCo's positions [T + 1, Q] when `actions` [T, A] are taken from `state`."""
        data = self.env.unwrapped.data
        self.load(state)
        visited = [data.qpos.copy()]
        for action in actions:
            self.step(action.copy())
            visited.append(data.qpos.copy())
        return np.array(visited)

    def reset(self, seed: int) -> np.ndarray:
        """Start an episode; return the observation [O]."""
        self._saved = None
        self._seed, self._num_steps = seed, 0
        result = self._call(self.env.reset, seed=seed)
        self._observation = gym_checks.read_reset(result, self.observation_size)
        return self._observation

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        """Clip `action` in place and take it; return observation, reward, is_terminal, is_truncated."""
        np.minimum(np.maximum(action, self.action_low, out=action), self.action_high, out=action)  # faster than clip
        if not (is_finite(action) and is_finite(self._observation)):
            return self._end_episode(action, 0.0)
        self._actions[self._num_steps] = action
        self._num_steps += 1
        self._saved = None
        result = self._call(self.env.step, action.copy())  # it may write into it
        self._observation, reward, terminated, truncated = gym_checks.read_step(result, self.observation_size)
        if not (math.isfinite(reward) and is_finite(self._observation)):
            return self._end_episode(action, reward)
        return self._observation, reward, terminated, truncated

    def _call(self, function: Callable, *arguments, **keywords) -> Any:
        """Call the environment, watched."""
        watchdog.inside = self._name, self._num_steps
        try:
            return function(*arguments, **keywords)
        finally:
            watchdog.inside = None

    def _end_episode(self, action: np.ndarray, reward: float) -> tuple[np.ndarray, float, bool, bool]:
        """Note and tell what is not finite; return the results of a last step whose reward is not a number."""
        if not self._fault:
            what = gym_checks.describe_fault(action, self._observation, reward)
            self._fault = f"{what} after {self._num_steps} step(s) of an episode"
            if self._is_tested:
                print(f"[rank {launcher.rank() or 0}] {self._name}: {self._fault}", file=sys.stderr, flush=True)
        return self._observation, math.nan, True, False

    def save(self) -> np.ndarray:
        """Return the state [S]."""
        parts = [np.array([self._num_steps]), self._observation]
        if self.is_restored:
            parts += [self._mujoco_state(), _generator_pieces(self.env)]
        else:
            parts += [np.array([self._seed]), self._actions.ravel()]
        self._saved = np.concatenate(parts)
        return self._saved.copy()

    def load(self, state: np.ndarray) -> int:
        """Return to a saved state; return the number of steps that were replayed for it."""
        if self._saved is not None and np.array_equal(state, self._saved):
            return 0 if self.is_restored else int(state[0])  # as if replayed: the same on any number of ranks
        self._saved = None
        num_steps, rest = int(state[0]), state[1 + self.observation_size :]
        if not self.is_restored:
            self.reset(int(rest[0]))
            for action in rest[1:].reshape(self._actions.shape)[:num_steps]:
                self.step(action.copy())
            if not np.array_equal(self._observation, state[1 : 1 + self.observation_size], equal_nan=True):
                raise BadEnvironment(f"{self._name}: {num_steps} step(s) again lead elsewhere, {NOT_REPRODUCIBLE}")
            return num_steps
        self._set_mujoco_state(rest[: self._mujoco_size])
        _set_generator(self.env, rest[self._mujoco_size :])
        _set_elapsed_steps(self.env, num_steps)
        self._num_steps, self._observation = num_steps, state[1 : 1 + self.observation_size].copy()
        return 0

    def place(self, state: np.ndarray, values: dict) -> None:
        """Raise ValueError: only the seed decides where an episode starts."""
        raise ValueError(
            f"unknown start value {next(iter(values))!r}; starts of this environment are drawn from its seed"
        )

    def _test(self) -> None:
        """Find out how states are loaded; raise BadEnvironment for an environment that cannot be trained on."""
        try:
            self.is_restored = self._can_restore()
            is_sound = self.is_restored or self._is_reproducible()
        except BadEnvironment:
            raise
        except (Exception, SystemExit) as error:  # others' code may raise anything
            raise BadEnvironment(f"a test of the environment failed with {type(error).__name__}: {error}") from error
        if not is_sound:
            raise BadEnvironment(f"two episodes with the same seed and actions differ, {NOT_REPRODUCIBLE}")

    def _can_restore(self) -> bool:
        """Return True if episodes continue bit for bit from MuJoCo's restored state, alone or with derived arrays."""
        base = self.env.unwrapped
        if not hasattr(base, "data") or not hasattr(base, "model"):
            return False
        import mujoco

        self._mujoco, self._kind = mujoco, mujoco.mjtState.mjSTATE_INTEGRATION
        self._own_size = mujoco.mj_stateSize(base.model, self._kind)
        return any(self._continues_with(derived) for derived in ((), DERIVED))

    def _continues_with(self, derived: tuple[str, ...]) -> bool:
        """Return True if episodes continue as before from a state that has these derived arrays too."""
        self._derived, self.is_restored = derived, True
        self._mujoco_size = self._own_size + sum(array.size for array in self._derived_arrays())
        actions = self._test_actions()
        for first in (0, len(actions) // 3, 2 * len(actions) // 3):
            self.reset(1)
            self._play(actions[:first])
            saved = self.save()
            expected = self._play(actions[first:])
            self.reset(2)
            self._play(actions[: len(actions) // 2])
            self.load(saved)
            if not np.array_equal(expected, self._play(actions[first:])):
                return False
        return True

    def _is_reproducible(self) -> bool:
        """Return True if two episodes with the same seed and actions are equal, with another one between them."""
        played = []
        for seed in (1, 2, 1):
            self.reset(seed)
            played.append(np.append(self._observation, self._play(self._test_actions())))
        return np.array_equal(played[0], played[2])

    def _test_actions(self, num: int = 60) -> np.ndarray:
        low, high = np.maximum(self.action_low, -1.0), np.minimum(self.action_high, 1.0)
        return np.random.default_rng(0).uniform(low, high, (min(num, self.horizon), self.action_size))

    def _play(self, actions: np.ndarray) -> np.ndarray:
        """Return the observations, rewards and endings of the actions, flat."""
        played: list = []
        for action in actions:
            observation, reward, is_terminal, is_truncated = self.step(action.copy())
            played += [*observation, reward, float(is_terminal), float(is_truncated)]
            if is_terminal or is_truncated:
                break
        if self._fault:
            raise BadEnvironment(self._fault)
        return np.array(played)

    def _mujoco_state(self) -> np.ndarray:
        state = np.empty(self._own_size)
        base = self.env.unwrapped
        self._mujoco.mj_getState(base.model, base.data, state, self._kind)
        return np.concatenate([state, *(array.ravel() for array in self._derived_arrays())])

    def _set_mujoco_state(self, state: np.ndarray) -> None:
        base, end = self.env.unwrapped, self._own_size
        self._mujoco.mj_setState(base.model, base.data, np.ascontiguousarray(state[:end]), self._kind)
        for array in self._derived_arrays():
            array[...] = state[end : end + array.size].reshape(array.shape)
            end += array.size

    def _derived_arrays(self) -> list[np.ndarray]:
        return [getattr(self.env.unwrapped.data, name) for name in self._derived]


def print_warnings_once() -> None:
    """Print MuJoCo's warnings to standard error, each kind once, on rank 0.

    By default every rank appends them to a file in the working directory.
    """
    import mujoco

    printed = set()

    def show(text: str) -> None:
        kind = text.partition("Time =")[0]
        if kind not in printed and not launcher.rank():
            print(f"MuJoCo warns: {text}", file=sys.stderr, flush=True)
        printed.add(kind)

    mujoco.set_mju_user_warning(show)


def _generator_pieces(env: Any) -> np.ndarray:
    """Return the state of the environment's generator as numbers that a float holds exactly."""
    state = env.unwrapped.np_random.bit_generator.state
    words = [state["state"]["state"], state["state"]["inc"]]
    pieces = [word >> shift & 0xFFFFFFFF for word in words for shift in (0, 32, 64, 96)]
    return np.array([*pieces, state["has_uint32"], state["uinteger"]], dtype=np.float64)


def _set_generator(env: Any, pieces: np.ndarray) -> None:
    whole = [int(piece) for piece in pieces]
    words = [sum(whole[4 * w + i] << 32 * i for i in range(4)) for w in range(2)]
    bit_generator = env.unwrapped.np_random.bit_generator
    state = {**bit_generator.state, "state": {"state": words[0], "inc": words[1]}}
    bit_generator.state = {**state, "has_uint32": whole[8], "uinteger": whole[9]}


def _set_elapsed_steps(env: Any, num_steps: int) -> None:
    """Set the step count of the TimeLimit wrapper."""
    layer: Any = env
    while layer is not env.unwrapped:
        if isinstance(layer, gymnasium.wrappers.TimeLimit):
            setattr(layer, "_elapsed_steps", num_steps)  # noqa: B010
        layer = layer.env
