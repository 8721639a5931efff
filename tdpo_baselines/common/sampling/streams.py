"""Experience of algorithms that act with noise: streams of episodes, of which every update sees a segment.

A stream is an environment that goes on from update to update and begins a new episode when one ends.
Streams are shared among the ranks; what happens in one does not depend on who has it.

Shapes: N streams, L steps per update, O observation, A action, S state.
"""

from typing import Any, NamedTuple

import numpy as np

from ..parallel.checks import require_finite
from ..parallel.comm import Comm
from ..parallel.seeding import generator


class Segments(NamedTuple):
    """What this rank's streams went through in one update."""

    observations: np.ndarray  # [n, L, O]
    next_observations: np.ndarray  # [n, L, O] after the step, of the same episode
    offsets: np.ndarray  # [n, L, A] noise that was added to the policy's action
    actions: np.ndarray  # [n, L, A] as executed
    rewards: np.ndarray  # [n, L]
    is_last: np.ndarray  # [n, L] of its episode
    is_terminal: np.ndarray  # [n, L] the environment itself ended; else a limit of time did


class Episodes(NamedTuple):
    """Of all streams, per stream: where they are, and what the episodes that ended since the last row paid."""

    stream_states: np.ndarray  # [N, S]
    stream_steps: np.ndarray  # [N] into the present episode, -1 before the first
    stream_returns: np.ndarray  # [N] of the present episode so far
    stream_discounted: np.ndarray  # [N]
    num_ended: np.ndarray  # [N]
    ended_returns: np.ndarray  # [N] summed
    ended_discounted: np.ndarray  # [N] summed


class Streams:
    """N streams that each go on for L steps per update."""

    def __init__(self, roller: Any, comm: Comm, seed: int, *, num_streams: int, num_steps: int, gamma: float):
        self._roller, self._comm, self._seed, self._gamma = roller, comm, seed, gamma
        self._num_streams, self._num_steps = num_streams, num_steps
        self._mine = comm.share(num_streams)
        self._last_returns = np.full(2, np.nan)  # undiscounted and discounted, of the last update with an end
        self._num_collected = 0  # steps since the last row
        nothing = np.zeros(num_streams)
        states = np.zeros((num_streams, roller.state_size))
        self.episodes = Episodes(states, nothing - 1, *[nothing] * (len(Episodes._fields) - 2))

    def collect(self, theta: np.ndarray, offsets: np.ndarray, iteration: int) -> Segments:
        """The next L steps of this rank's streams, whose offsets [n, L, A] are; `episodes` is then up to date.

        An environment that cannot be put back is brought to where its stream was by replaying actions,
        where the stream before it was another's. That costs time but is no experience, and is not counted.
        """
        n, L, O = len(offsets), self._num_steps, self._roller.layer_sizes[0]
        segments = Segments(
            observations=np.zeros((n, L, O)),
            next_observations=np.zeros((n, L, O)),
            offsets=offsets,
            actions=np.zeros_like(offsets),
            rewards=np.zeros((n, L)),
            is_last=np.zeros((n, L), dtype=bool),
            is_terminal=np.zeros((n, L), dtype=bool),
        )
        mine = Episodes(*(array[self._mine].copy() for array in self.episodes))
        done = np.zeros(n, dtype=np.int64)  # steps of each stream
        while np.any(done < L):
            self._begin_episodes(mine, done, iteration)
            self._go_on(theta, mine, segments, done)
        everyone = Episodes(*(self._comm.gather(array, self._num_streams) for array in mine))
        require_finite("return of stream", everyone.stream_returns + everyone.ended_returns)  # found by all ranks
        self.episodes = everyone
        self._num_collected += self._num_streams * L
        return segments

    def _begin_episodes(self, mine: Episodes, done: np.ndarray, iteration: int) -> None:
        """New starts for the streams without an episode."""
        for i in np.flatnonzero((mine.stream_steps < 0) & (done < self._num_steps)):
            rng = generator(self._seed, "starts", iteration, self._mine.start + int(i), int(done[i]))
            mine.stream_states[i] = self._roller.start_states(rng.random((1, self._roller.start_size)))[0]
            mine.stream_steps[i] = mine.stream_returns[i] = mine.stream_discounted[i] = 0

    def _go_on(self, theta: np.ndarray, mine: Episodes, segments: Segments, done: np.ndarray) -> None:
        """Each stream to the end of its episode or of its segment, whichever comes first."""
        active = np.flatnonzero(done < self._num_steps)
        steps = mine.stream_steps[active].astype(np.int64)
        num_steps = np.minimum(self._num_steps - done[active], self._roller.horizon - steps)
        offsets = np.zeros((len(active), num_steps.max(), segments.offsets.shape[2]))
        for row, (i, num) in enumerate(zip(active, num_steps)):
            offsets[row, :num] = segments.offsets[i, done[i] : done[i] + num]
        rolled = self._roller.rollouts(
            theta, mine.stream_states[active], num_steps=num_steps, offsets=offsets, num_recorded=num_steps.max()
        )
        for row, i in enumerate(active):
            length = int(rolled.lengths[row])
            here, last = slice(done[i], done[i] + length), done[i] + length - 1
            segments.observations[i, here] = rolled.observations[row, :length]
            segments.next_observations[i, here][:-1] = rolled.observations[row, 1:length]
            segments.next_observations[i, last] = self._roller.observe(rolled.final_states[row])
            segments.actions[i, here] = rolled.actions[row, :length]
            segments.rewards[i, here] = rolled.rewards[row, :length]
            mine.stream_states[i] = rolled.final_states[row]
            mine.stream_returns[i] += rolled.rewards[row, :length].sum()
            mine.stream_discounted[i] += self._gamma ** mine.stream_steps[i] * rolled.returns[row]
            mine.stream_steps[i] += length
            done[i] += length
            segments.is_terminal[i, last] = rolled.is_terminal[row]
            has_ended = rolled.is_terminal[row] or rolled.is_truncated[row]
            has_ended = has_ended or mine.stream_steps[i] == self._roller.horizon
            segments.is_last[i, last] = has_ended
            if has_ended:
                mine.num_ended[i] += 1
                mine.ended_returns[i] += mine.stream_returns[i]
                mine.ended_discounted[i] += mine.stream_discounted[i]
                mine.stream_steps[i] = -1

    def row(self) -> dict[str, float]:
        """For the log: returns of the episodes that ended since the last row; where none did, of the last that did."""
        num_ended = int(self.episodes.num_ended.sum())
        if num_ended:
            sums = np.array([self.episodes.ended_returns.sum(), self.episodes.ended_discounted.sum()])
            self._last_returns = sums / num_ended
        nothing = np.zeros(self._num_streams)
        self.episodes = self.episodes._replace(num_ended=nothing, ended_returns=nothing, ended_discounted=nothing)
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
        return {**self.episodes._asdict(), "last_returns": self._last_returns}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.episodes = Episodes(**{name: state[name] for name in Episodes._fields})
        self._last_returns = state["last_returns"]
