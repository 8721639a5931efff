"""Streams of episodes, of which every update sees a segment.

A stream is an environment that continues from update to update and begins a new episode when one ends. Ranks share
the streams; what happens in a stream does not depend on the rank that has it.

Shapes: N streams, n of them on this rank, L steps per update, O observation, A action, S state.
"""

from typing import Any, NamedTuple

import numpy as np

from ..parallel.checks import require_finite
from ..parallel.comm import Comm
from ..parallel.seeding import generator

TIME_LIMITS = ("auto", "terminal", "bootstrap")  # auto: as the environment says


class Segments(NamedTuple):
    """The steps of this rank's streams in one update."""

    observations: np.ndarray  # [n, L, O]
    next_observations: np.ndarray  # [n, L, O] after the step, of the same episode
    offsets: np.ndarray  # [n, L, A] noise added to the policy's action
    actions: np.ndarray  # [n, L, A] as executed
    rewards: np.ndarray  # [n, L]
    is_last: np.ndarray  # [n, L] of its episode
    is_terminal: np.ndarray  # [n, L] nothing follows: the task ended, not a mere time limit

    def largest(self) -> np.ndarray:
        """Return the largest observation or reward of each stream, as networks and replay see it. [n]"""
        arrays = self.observations, self.next_observations, self.rewards[..., None]
        with np.errstate(over="ignore"):
            return np.max([np.abs(array).max(axis=(1, 2)) for array in arrays], axis=0).astype(np.float32)

    @classmethod
    def empty(cls, offsets: np.ndarray, observation_size: int) -> "Segments":
        """Return segments for offsets [n, L, A] with zeros everywhere else."""
        n, L, _ = offsets.shape
        before, after = np.zeros((2, n, L, observation_size))
        is_last, is_terminal = np.zeros((2, n, L), dtype=bool)
        return cls(before, after, offsets, np.zeros_like(offsets), np.zeros((n, L)), is_last, is_terminal)


class Episodes(NamedTuple):
    """The present episode of every stream, and sums over the episodes that ended since the last row of the log."""

    states: np.ndarray  # [N, S]
    steps: np.ndarray  # [N] into the present episode, -1 before the first
    returns: np.ndarray  # [N] of the present episode so far
    discounted: np.ndarray  # [N]
    num_ended: np.ndarray  # [N]
    ended_returns: np.ndarray  # [N]
    ended_discounted: np.ndarray  # [N]


class Streams:
    """N streams that advance by L steps per update."""

    def __init__(
        self,
        roller: Any,
        comm: Comm,
        seed: int,
        *,
        num_streams: int,
        num_steps: int,
        gamma: float,
        time_limit: str = "auto",
    ):
        """Take the number of streams over all ranks, their steps per update, and one of TIME_LIMITS."""
        self._roller, self._comm, self._seed, self._gamma = roller, comm, seed, gamma
        self._is_limit_terminal = roller.is_horizon_terminal if time_limit == "auto" else time_limit == "terminal"
        self._num_streams, self._num_steps = num_streams, num_steps
        self.mine = comm.share(num_streams)
        self._last_returns = np.full(2, np.nan)  # undiscounted and discounted, of the last row with an end
        self._num_collected = 0  # steps since the last row
        zeros = np.zeros(num_streams)
        states = np.zeros((num_streams, roller.state_size))
        self.episodes = Episodes(states, zeros - 1, *[zeros] * (len(Episodes._fields) - 2))

    def collect(self, theta: np.ndarray, offsets: np.ndarray, iteration: int) -> Segments:
        """Advance this rank's streams by L steps, with offsets [n, L, A] added to the actions of the policy `theta`.

        A roller that cannot restore a state replays the actions of the present episode to continue it. The replayed
        steps are not experience and are not counted.
        """
        segments = Segments.empty(offsets, self._roller.layer_sizes[0])
        mine = Episodes(*(array[self.mine].copy() for array in self.episodes))
        done = np.zeros(len(offsets), dtype=np.int64)  # steps of each stream
        while np.any(done < self._num_steps):
            self._begin_episodes(mine, done, iteration)
            self._advance(theta, mine, segments, done)
        everyone = Episodes(*(self._comm.gather(array, self._num_streams) for array in mine))
        require_finite("return of stream", everyone.returns + everyone.ended_returns)  # raised on all ranks
        largest = self._comm.gather(segments.largest(), self._num_streams)
        require_finite("observation or reward, in float32, of stream", largest)
        self.episodes = everyone
        self._num_collected += self._num_streams * self._num_steps
        return segments

    def _begin_episodes(self, mine: Episodes, done: np.ndarray, iteration: int) -> None:
        """Draw a start for every stream without an episode."""
        for i in np.flatnonzero((mine.steps < 0) & (done < self._num_steps)):
            rng = generator(self._seed, "starts", iteration, self.mine.start + int(i), int(done[i]))
            mine.states[i] = self._roller.start_states(rng.random((1, self._roller.start_size)))[0]
            mine.steps[i] = mine.returns[i] = mine.discounted[i] = 0

    def _advance(self, theta: np.ndarray, mine: Episodes, segments: Segments, done: np.ndarray) -> None:
        """Advance each stream to the end of its episode or of its segment, whichever comes first."""
        active = np.flatnonzero(done < self._num_steps)
        steps = mine.steps[active].astype(np.int64)
        num_steps = np.minimum(self._num_steps - done[active], self._roller.horizon - steps)
        offsets = np.zeros((len(active), num_steps.max(), segments.offsets.shape[2]))
        for row, (i, num) in enumerate(zip(active, num_steps)):
            offsets[row, :num] = segments.offsets[i, done[i] : done[i] + num]
        rolled = self._roller.rollouts(
            theta, mine.states[active], num_steps=num_steps, offsets=offsets, num_recorded=num_steps.max()
        )
        for row, i in enumerate(active):
            length = int(rolled.lengths[row])
            here, last = slice(done[i], done[i] + length), done[i] + length - 1
            segments.observations[i, here] = rolled.observations[row, :length]
            segments.next_observations[i, here][:-1] = rolled.observations[row, 1:length]
            segments.next_observations[i, last] = self._roller.observe(rolled.final_states[row])
            segments.actions[i, here] = rolled.actions[row, :length]
            segments.rewards[i, here] = rolled.rewards[row, :length]
            mine.states[i] = rolled.final_states[row]
            mine.returns[i] += rolled.rewards[row, :length].sum()
            mine.discounted[i] += self._gamma ** mine.steps[i] * rolled.discounted_returns[row]
            mine.steps[i] += length
            done[i] += length
            is_at_limit = rolled.is_truncated[row] or mine.steps[i] == self._roller.horizon
            segments.is_terminal[i, last] = rolled.is_terminal[row] or (is_at_limit and self._is_limit_terminal)
            segments.is_last[i, last] = rolled.is_terminal[row] or is_at_limit
            if segments.is_last[i, last]:
                end_episode(mine, int(i))

    def row(self) -> dict[str, float]:
        """Return the mean returns of the episodes that ended since the last row, or the last row's if none did."""
        num_ended = int(self.episodes.num_ended.sum())
        if num_ended:
            sums = np.array([self.episodes.ended_returns.sum(), self.episodes.ended_discounted.sum()])
            self._last_returns = sums / num_ended
        zeros = np.zeros(self._num_streams)
        self.episodes = self.episodes._replace(num_ended=zeros, ended_returns=zeros, ended_discounted=zeros)
        num_collected, self._num_collected = self._num_collected, 0
        scale = 1 / np.sum(self._gamma ** np.arange(self._roller.horizon))
        return {
            "num_timesteps": num_collected,
            "num_episodes": num_ended,
            "return_mean": float(self._last_returns[0]),
            "discounted_return_mean": float(self._last_returns[1]),
            "payoff": float(self._last_returns[1] * scale),
        }

    def state(self) -> dict[str, np.ndarray]:
        """Return the component of a checkpoint that `load_state` continues from."""
        return {**self.episodes._asdict(), "last_returns": self._last_returns}

    def load_state(self, component: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        self.episodes = Episodes(**{name: component[name] for name in Episodes._fields})
        self._last_returns = component["last_returns"]


def end_episode(episodes: Episodes, i: int) -> None:
    """Add the episode of stream i to those that ended."""
    episodes.num_ended[i] += 1
    episodes.ended_returns[i] += episodes.returns[i]
    episodes.ended_discounted[i] += episodes.discounted[i]
    episodes.steps[i] = -1
