"""Training in processes that are used again."""

import os
from types import SimpleNamespace

from tdpo_baselines.sweeping.pool import Journal, after_crash, output_to


def test_journal_knows_what_is_under_way(tmp_path):
    journal = Journal(tmp_path / "journal.csv")
    assert journal.under_way() == {} and len(journal) == 0
    journal.write("a=1,b=2~0", "begins")
    journal.write("c", "begins")
    journal.write("c", 0)
    assert journal.under_way() == {"a=1,b=2~0": os.getpid()}
    assert journal.under_way(skipped=1) == {} and len(journal) == 3
    for name, code in (("d", 1), ("e", 1), ("e", 0), ("f", 85)):
        journal.write(name, code)
    assert journal.failed() == {"d"}


def test_crash_loses_no_end_of_a_run(tmp_path):
    journal = Journal(tmp_path / "journal.csv")
    journal.write("before", "begins")
    known, ended, begun, _ = runs = [SimpleNamespace(name=name) for name in ("known", "ended", "begun", "waiting")]
    for run, event in ((known, "begins"), (known, 0), (ended, "begins"), (ended, 0), (begun, "begins")):
        journal.write(run.name, event)
    assert after_crash(runs, journal, 1, {"known"}) == [(ended, 0), (begun, 1)]
    assert journal.failed() == {"begun"}


def test_output_of_the_process_goes_to_the_file_and_comes_back(tmp_path, capfd):
    with output_to(tmp_path / "output.log"):
        os.write(1, b"inside\n")
        os.write(2, b"error\n")
    os.write(1, b"outside\n")
    assert (tmp_path / "output.log").read_text() == "inside\nerror\n"
    assert capfd.readouterr() == ("outside\n", "")
