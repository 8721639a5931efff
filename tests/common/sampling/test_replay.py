"""The ring buffer against a list, and transitions as rows."""

import numpy as np

from tdpo_baselines.common.sampling.replay import Replay, Transitions, row_width


def test_replay_keeps_the_latest_transitions_of_every_stream():
    replay, kept = Replay(2, 10, 3), []
    rng = np.random.default_rng(0)
    for length in (4, 7, 3, 25, 6):
        rows = rng.normal(size=(2, length, 3)).astype(np.float32)
        replay.add(rows)
        kept = [*kept, *rows.transpose(1, 0, 2)][-10:]
        assert replay.num_filled == len(kept)
        for stream in range(2):
            everything = replay.sample(stream, np.arange(len(kept)))
            assert sorted(map(tuple, everything)) == sorted(tuple(row[stream]) for row in kept)
            np.testing.assert_array_equal(everything, replay.filled[stream])
        np.testing.assert_array_equal(replay.latest(3), np.array(kept[-3:]).transpose(1, 0, 2))


def test_loaded_replay_continues_at_the_same_place():
    replay, other = Replay(1, 5, 2), Replay(1, 5, 2)
    rows = np.random.default_rng(0).normal(size=(1, 9, 2))
    replay.add(rows[:, :7])
    other.load(replay.filled.copy(), replay.num_added)
    for one in (replay, other):
        one.add(rows[:, 7:])
    np.testing.assert_array_equal(other.filled, replay.filled)
    np.testing.assert_array_equal(other.latest(5), np.float32(rows[:, 4:]))


def test_transitions_survive_their_way_through_rows():
    rng = np.random.default_rng(0)
    columns = Transitions(
        rng.normal(size=(2, 5, 3)),
        rng.normal(size=(2, 5, 2)),
        rng.normal(size=(2, 5)),
        rng.random((2, 5)) < 0.5,
        rng.normal(size=(2, 5, 3)),
    )
    rows = columns.rows()
    assert rows.shape == (2, 5, row_width(3, 2)) and rows.dtype == np.float32
    for name, column in Transitions.from_rows(rows, 3, 2)._asdict().items():
        np.testing.assert_array_equal(column, np.float32(getattr(columns, name)))
