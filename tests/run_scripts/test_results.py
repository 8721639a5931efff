import json
import os
from types import SimpleNamespace

import pytest

from run_scripts import results
from run_scripts.results import Finished, Result, Setting

FAST = {"env": "delayed-spring", "preset": "none", "num_timesteps": 1000}


def settings(scale):
    steps = results.choose(scale, 1000, 2000)
    return [
        Setting("delayed-spring", alg.upper(), {**FAST, "alg": alg, "num_timesteps": steps}, 3)
        for alg in ("ars", "cma")
    ]


RESULT = Result("example", "An example", "Figure 0", settings, num_episodes=2)


def test_scales_differ_in_values_and_smoke_is_two_updates():
    assert [s.values["num_timesteps"] for s in RESULT.at_scale("paper")] == [2000, 2000]
    smoke = RESULT.at_scale("smoke", num_seeds=1)[0]
    assert smoke.values["num_iterations"] == 2 and "num_timesteps" not in smoke.values and smoke.num_seeds == 1


def test_smoke_makes_networks_small_but_leaves_linear_policies():
    shrunk = [results.shrink(Setting("leg", alg, {"alg": alg}, 5)) for alg in ("ppo1", "cma")]
    assert shrunk[0].values["hidden_sizes"] == 8 and "hidden_sizes" not in shrunk[1].values
    assert all(setting.num_seeds == 2 for setting in shrunk)


def test_command_trains_a_setting():
    command = Setting("leg", "TDPO", {"env": "leg", "alg": "tdpo"}, 1).command()
    assert command == "python -m tdpo_baselines.run --env leg --alg tdpo --seed SEED"


@pytest.mark.slow
def test_result_is_trained_reported_continued_and_extended(tmp_path, capsys, pictures_in, cells_of):
    arguments = ["--scale", "short", "--seeds", "2", "--runs", str(tmp_path)]
    assert results.main(RESULT, [*arguments, "--only", "ARS"]) == 0
    assert [row[1] for row in cells_of(tmp_path / "example-table.md")] == ["ARS"]
    assert results.main(RESULT, arguments) == 0
    assert "4 runs, 2 finished" in capsys.readouterr().out
    rows = cells_of(tmp_path / "example-table.md")
    assert [row[1] for row in rows] == ["ARS", "CMA"] and all(len(row[4].split(", ")) == 2 for row in rows)
    record = json.loads((tmp_path / "example.json").read_text())
    assert [list(row["seeds"]) for row in record["rows"]] == [["0", "1"]] * 2
    assert record["rows"][0]["seeds"]["0"]["steps"] >= 1000
    assert pictures_in(tmp_path) == ["example-curves.png"]
    assert results.main(RESULT, [*arguments, "--report", "--out", str(tmp_path / "docs")]) == 0
    assert (tmp_path / "docs/example-table.md").read_text() == (tmp_path / "example-table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--only", "PPO7"], "names no setting; there are ['delayed-spring ARS'"),
        (["--report"], "has no finished run"),
    ],
)
def test_invalid_input_is_named(tmp_path, capsys, arguments, message):
    assert results.main(RESULT, [*arguments, "--runs", str(tmp_path / "runs")]) == 2
    assert message in capsys.readouterr().err


def test_unfinished_runs_can_be_submitted(tmp_path, capsys):
    arguments = ["--runs", str(tmp_path), "--submit", "slurm", "--dry-run", "--only", "CMA"]
    assert results.main(RESULT, arguments) == 0
    assert "#SBATCH --array=0-2" in capsys.readouterr().out


def test_evaluation_is_kept_until_the_run_goes_on(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(results, "evaluate", lambda run, num_episodes: calls.append(run) or {"return": -1.0})
    (tmp_path / "progress.csv").write_text("iteration\n1\n")
    assert results.score(tmp_path, 5) == results.score(tmp_path, 5) == {"return": -1.0} and len(calls) == 1
    later = (tmp_path / "scores-5.json").stat().st_mtime + 10
    os.utime(tmp_path / "progress.csv", (later, later))
    results.score(tmp_path, 5)
    assert len(calls) == 2


def test_table_divides_returns_and_counts_the_criterion():
    per_step = Result("example", "", "", settings, steps_per_unit={"delayed-spring": 10})
    scores = [
        {"return": -20.0, "return_exploring": None, "is_met": True, "steps": 1e6, "minutes": 2.0},
        {"return": -40.0, "return_exploring": -50.0, "is_met": False, "steps": 1e6, "minutes": 4.0},
    ]
    text = results.table(per_step, [Finished(settings("short")[0], {}, dict(enumerate(scores)))])
    cells = text.splitlines()[2].strip("| ").split(" | ")
    assert cells[2:] == ["-3", "-4 to -2", "-2, -4", "-5", "1 of 2", "1", "3.0"]


def test_failed_preparation_ends_the_command(tmp_path):
    failing = Result("example", "", "", settings, prepare=lambda parsed: 85)
    assert results.main(failing, ["--runs", str(tmp_path / "runs")]) == 85


def test_settings_without_finished_runs_are_left_out(tmp_path):
    found = results.collect(RESULT, settings("short"), SimpleNamespace(runs=[], results=[]), 2)
    assert [f.scores for f in found] == [{}, {}] and results.with_recorded(RESULT, "short", found, tmp_path) == []


def score_of(value):
    return {"return": value, "return_exploring": None, "is_met": None, "steps": 1000.0, "minutes": 0.0}


@pytest.mark.parametrize("num_seeds", [3, 2])
def test_report_keeps_recorded_seeds_whose_runs_are_elsewhere(tmp_path, pictures_in, num_seeds):
    ars, cma = (Setting(s.panel, s.label, s.values, num_seeds) for s in settings("short"))
    elsewhere = {seed: score_of(-float(seed)) for seed in range(3)}
    results.report(RESULT, "short", [Finished(ars, {}, elsewhere, {0: [[1, 2], [-3.0, -2.0]]})], tmp_path)
    here = [Finished(ars, {1: tmp_path}, {1: score_of(-9.0)}), Finished(cma, {0: tmp_path}, {0: score_of(-5.0)})]
    merged = results.with_recorded(RESULT, "short", here, tmp_path)
    assert merged[0].returns() == [0.0, -9.0, -2.0][:num_seeds] and merged[1].returns() == [-5.0]
    assert merged[0].curves == {0: [[1, 2], [-3.0, -2.0]]} and merged[0].folders == {1: tmp_path}
    results.report(RESULT, "short", merged, tmp_path)
    assert pictures_in(tmp_path) == ["example-curves.png"]


def test_panels_without_any_curve_are_left_out_and_ends_without_a_curve_are_marked():
    with_curve, without, alone = (
        Finished(Setting(panel, label, {"alg": "ars"}, 1), {}, {0: score_of(-1.0)}, curves)
        for panel, label, curves in (("a", "A", {0: [[1, 2], [-3.0, -2.0]]}), ("a", "B", {}), ("b", "C", {}))
    )
    (axes,) = results.draw(RESULT, [with_curve, without, alone]).axes
    assert [line.get_marker() for line in axes.lines] == ["None", "<"]
    assert [axes.get_title() for axes in results.draw(RESULT, [without, alone]).axes] == ["a", "b"]


@pytest.mark.parametrize(("scale", "gamma"), [("paper", 0.9), ("short", 0.8)])
def test_record_of_another_command_or_scale_is_not_kept(tmp_path, scale, gamma):
    recorded, changed = (
        Setting("leg", "ARS", {"env": "leg", "alg": "ars", "gamma": value}, 1) for value in (0.9, gamma)
    )
    results.report(RESULT, "short", [Finished(recorded, {}, {0: score_of(-1.0)})], tmp_path)
    assert results.with_recorded(RESULT, scale, [Finished(changed, {}, {})], tmp_path) == []


def test_recorded_curve_has_a_hundred_points_with_both_ends(tmp_path):
    lines = [f"{i},{1000 * i},{-1 / 3 - i}" for i in range(1, 1001)]
    (tmp_path / "progress.csv").write_text("\n".join(["iteration,total_timesteps,return_mean", *lines, ""]))
    xs, ys = results.curve(tmp_path, "total_timesteps")
    assert len(xs) == len(ys) == results.CURVE_POINTS and (xs[0], xs[-1]) == (1000, 1e6) and ys[0] == -1.3333
