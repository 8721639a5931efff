import os

import pytest

from tdpo_baselines.storage.logger import Console, ProgressCSV, ProgressReader, Tail, TimeLeft, format_time

ROWS = [{"iteration": i, "payoff": i / 3, "count": i} for i in range(1, 6)]
DAMAGES = {
    "rows missing": lambda lines: lines[:3],
    "not a table": lambda lines: ["hello\n"],
    "garbage row": lambda lines: [*lines[:2], "xx\n", *lines[3:]],
    "torn row": lambda lines: [*lines[:-1], lines[-1][:-3]],
    "nothing": lambda lines: [],
}


@pytest.fixture
def path(tmp_path):
    """Return a log of five rows."""
    log = ProgressCSV(tmp_path / "progress.csv", last_iteration=0)
    log.write(ROWS[:2])
    log.write(ROWS[2:])
    return tmp_path / "progress.csv"


def test_reader_returns_every_row_once_also_after_a_resume(path):
    reader = ProgressReader(path)
    assert reader.read() == ROWS and reader.read() == []
    resumed = ProgressCSV(path, last_iteration=3)  # replaces the file
    resumed.write(ROWS[3:])
    assert reader.read() == []
    resumed.write([{"iteration": 6, "payoff": float("nan"), "count": -1}])
    (row,) = reader.read()
    assert row["iteration"] == 6 and row["payoff"] != row["payoff"] and row["count"] == -1


def test_tail_returns_complete_lines_only(tmp_path):
    tail = Tail(tmp_path / "file")
    assert list(tail.read()) == []
    with open(tmp_path / "file", "w") as file:
        for text, lines in (("a\nb", ["a"]), ("c", []), ("\n\n", ["bc", ""])):
            file.write(text)
            file.flush()
            assert list(tail.read()) == lines


def test_numbers_read_back_exactly_and_the_first_row_names_the_columns(path):
    header, *lines = path.read_text().splitlines()
    assert header == "iteration,payoff,count"
    assert [float(line.split(",")[1]) for line in lines] == [row["payoff"] for row in ROWS]


def test_log_goes_on_after_the_given_iteration(path):
    ProgressCSV(path, last_iteration=3).write([ROWS[4]])
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == ["iteration", "1", "2", "3", "5"]


def test_log_of_a_new_run_begins_empty(path):
    ProgressCSV(path, last_iteration=0)
    assert path.read_text() == ""


@pytest.mark.parametrize("damage", DAMAGES)
def test_log_without_the_rows_before_the_checkpoint_is_refused_and_left_alone(path, damage):
    damaged = "".join(DAMAGES[damage](path.read_text().splitlines(keepends=True)))
    path.write_text(damaged)
    with pytest.raises(ValueError, match="does not hold the 5 rows before the checkpoint"):
        ProgressCSV(path, last_iteration=5)
    assert path.read_text() == damaged


def test_row_with_new_columns_is_refused(path):
    with pytest.raises(ValueError, match="has no columns for kl, which this run logs"):
        ProgressCSV(path, last_iteration=5).write([{"iteration": 6, "kl": 0.1}])


def test_column_that_a_resumed_run_no_longer_has_gets_nan(path):
    ProgressCSV(path, last_iteration=5).write([{"iteration": 6, "count": 6}])
    assert path.read_text().splitlines()[-1] == "6,nan,6"


def test_log_that_has_disappeared_is_named(path):
    log = ProgressCSV(path, last_iteration=5)
    path.unlink()
    with pytest.raises(OSError, match="has disappeared during the run"):
        log.write([{"iteration": 6, "payoff": 0.1, "count": 1}])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_named_with_the_remedy_and_nothing_is_lost(path, monkeypatch):
    before = path.read_text()
    log = ProgressCSV(path, last_iteration=5)
    monkeypatch.setattr(log, "_file", open("/dev/full", "a"))
    monkeypatch.setattr(log, "_is_in_place", lambda: True)
    with pytest.raises(OSError, match="progress.csv: No space left on device; make room and continue with --resume"):
        log.write([{"iteration": 6, "payoff": 0.1, "count": 1}])
    assert path.read_text() == before


MAIN = {"iteration": 12, "total_timesteps": 3_400_000, "return_mean": -1.5, "payoff": -0.25, "steps_per_second": 1e6}


def show(row: dict) -> None:
    Console(is_quiet=False).show(row, fraction_done=0.5, seconds_left=3723, is_last=False)


@pytest.mark.parametrize("own", [{"step_w": 0.125}, {"kl": 0.01}, {"num_updates": 40.0}])
def test_table_shows_how_far_the_algorithm_stepped(capsys, own):
    show(MAIN | own)
    header, line = capsys.readouterr().out.splitlines()
    titles = ["iteration", "timesteps", "return", "payoff", *own, "steps/s", "done", "time", "left"]
    assert header.split() == titles
    assert line.split() == [
        "12",
        "3.40M",
        "-1.5",
        "-0.25",
        f"{next(iter(own.values())):.3g}",
        "1e+06",
        "50.0%",
        "1:02:03",
    ]
    assert len(header) == len(line)


def test_table_of_an_algorithm_without_known_columns_shows_those_that_exist(capsys):
    show({**MAIN, "temperature": 3.0})
    assert capsys.readouterr().out.split()[:5] == ["iteration", "timesteps", "return", "payoff", "steps/s"]


def test_table_has_a_dash_where_nothing_is_known_yet(capsys):
    show({**MAIN, "return_mean": float("nan"), "payoff": float("nan")})
    header, line = capsys.readouterr().out.splitlines()
    assert line.split()[2:4] == ["-", "-"] and len(header) == len(line)


def test_time_left_follows_the_recent_speed():
    steady = TimeLeft(0.5)
    assert [round(steady.estimate(seconds, 0.5 + seconds / 1000)) for seconds in (1, 10, 100)] == [499, 490, 400]
    slower = TimeLeft(0.0)
    slower.estimate(10.0, 0.1)  # a hundredth per second, then a thousandth
    estimates = [slower.estimate(10.0 + seconds, 0.1 + seconds / 1000) for seconds in range(1, 301)]
    assert 90 < estimates[0] < 150 and estimates[-1] == pytest.approx(600, rel=0.1)


def test_time_left_is_unknown_until_learning_begins_and_then_follows_its_speed(capsys):
    time_left = TimeLeft(0.0)
    assert time_left.wait(5.0, 0.1) == float("inf")
    Console(is_quiet=False).show(MAIN, fraction_done=0.1, seconds_left=time_left.wait(10.0, 0.2), is_last=False)
    assert capsys.readouterr().out.split()[-1] == "-"
    assert time_left.estimate(110.0, 0.3) == pytest.approx(700)  # the speed before that is forgotten


def test_second_line_within_a_moment_is_left_out_unless_it_is_the_last(capsys):
    console = Console(is_quiet=False)
    for is_last in (False, False, True):
        console.show(MAIN, fraction_done=0.5, seconds_left=1, is_last=is_last)
    assert len(capsys.readouterr().out.splitlines()) == 3  # with the header


def test_quiet_console_prints_nothing(capsys):
    console = Console(is_quiet=True)
    console.say("hello")
    console.show(MAIN, fraction_done=0.5, seconds_left=1, is_last=True)
    assert capsys.readouterr().out == ""


def test_time_is_hours_minutes_seconds():
    assert format_time(3723.9) == "1:02:03" and format_time(59) == "0:00:59"
