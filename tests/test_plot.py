import csv

import numpy as np
import pytest

from tdpo_baselines import plot
from tdpo_baselines.evaluating.robustness import Sweep
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder


def make_run(path, seed=0, sign=-1.0, algorithm="tdpo", num_rows=5):
    folder = RunFolder(path)
    folder.create()
    folder.write_config(RunConfig(algorithm, "leg", seed, {}, {}))
    rows = [f"{i},{100 * i},{sign * i / 3}\n" for i in range(1, num_rows + 1)]
    folder.progress_path.write_text("".join(["iteration,total_timesteps,return_mean\n", *rows]))
    return str(path)


def draw(paths, x="iteration", y="return_mean", is_log=False):
    return plot.draw_curves(plot.read_curves(paths, x=x, y=y, is_log=is_log), x=x, y=y, is_log=is_log)


def test_columns_are_read_without_an_incomplete_last_line(tmp_path):
    path = make_run(tmp_path)
    with open(RunFolder(path).progress_path, "a") as file:
        file.write("6,600")
    progress = plot.read_progress(path)
    assert list(progress) == ["iteration", "total_timesteps", "return_mean"]
    np.testing.assert_array_equal(progress["total_timesteps"], [100, 200, 300, 400, 500])


def test_every_run_is_shown_and_the_interquartile_mean_of_each_group(tmp_path):
    paths = [make_run(tmp_path / f"{i}", seed=i, algorithm=name) for i, name in enumerate(("tdpo", "tdpo", "td3"))]
    figure = draw(paths, x="total_timesteps")
    (axes,), (legend,) = figure.axes, figure.legends
    assert len(axes.lines) == 4 and len(axes.collections) == 1  # a single run has neither mean nor interval
    assert [text.get_text() for text in legend.get_texts()] == ["tdpo, leg: interquartile mean of 2 runs", "td3, leg"]
    assert [line.get_color() for line in axes.lines[2:]] == [plot.COLOURS["tdpo"], plot.COLOURS["td3"]]
    assert axes.get_xlabel() == "timesteps (million)" and axes.get_ylabel() == "mean return per update, while training"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), np.arange(1, 6) / 1e4)


def test_legend_does_not_cover_the_curves(tmp_path):
    figure = draw([make_run(tmp_path)])
    figure.draw_without_rendering()
    (axes,), (legend,) = figure.axes, figure.legends
    assert legend.get_window_extent().y0 >= axes.get_window_extent().y1


def test_rows_before_the_end_of_the_first_episode_are_left_out(tmp_path):
    path = make_run(tmp_path)
    progress = RunFolder(path).progress_path
    progress.write_text(progress.read_text().replace("1,100,-0.3333333333333333", "1,100,nan"))
    ((_, curves),) = plot.read_curves([path], x="iteration", y="return_mean", is_log=False).items()
    np.testing.assert_array_equal(curves[0][0], [2, 3, 4, 5])


def test_interquartile_mean_is_of_the_middle_half():
    values = np.array([[-1e9], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [1e9]])
    assert plot.interquartile_mean(values) == [3.5]
    assert plot.interquartile_mean(values[:3]) == pytest.approx([(-1e9 + 3) / 3])


def test_bootstrap_interval_covers_the_known_mean_of_normal_seeds():
    values = np.random.default_rng(1).normal(size=(40, 200))  # [seed, point]
    low, high = plot.bootstrap_interval(values)
    assert 0.85 < np.mean((low < 0) & (high > 0)) <= 1
    np.testing.assert_allclose(np.mean(high - low), 2 * 1.96 * 1.2 / np.sqrt(40), rtol=0.15)  # 1.2: efficiency


def test_table_has_every_row_of_every_run(tmp_path):
    paths = [make_run(tmp_path / f"{i}", seed=i, num_rows=2) for i in range(2)]
    out = tmp_path / "all.csv"
    assert plot.main([*paths, "--out", str(tmp_path / "a.png"), "--csv", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [(row["seed"], row["total_timesteps"]) for row in rows] == [
        ("0", "100.0"), ("0", "200.0"), ("1", "100.0"), ("1", "200.0")
    ]  # fmt: skip


def test_logarithmic_axis_shows_the_distance_below_zero_with_negative_labels(tmp_path):
    figure = draw([make_run(tmp_path)], is_log=True)
    (axes,) = figure.axes
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "mean return per update, while training"
    figure.draw_without_rendering()
    labels = [text.get_text() for text in axes.get_yticklabels(which="both") if text.get_text()]
    assert len(labels) > 1 and all(text.startswith(r"$\mathdefault{-") for text in labels)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.arange(1, 6) / 3)


def test_table_is_written_as_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = [make_run(tmp_path / f"{i}", seed=i, num_rows=2) for i in range(2)]
    plot.write_rows(paths, str(tmp_path / "all.parquet"))
    table = parquet.read_table(tmp_path / "all.parquet").to_pydict()
    assert table["seed"] == [0, 0, 1, 1] and table["total_timesteps"] == [100, 200, 100, 200]


def test_parquet_without_its_package_is_refused_before_anything_is_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    picture = tmp_path / "a.png"
    assert plot.main([make_run(tmp_path / "run"), "--out", str(picture), "--csv", "all.parquet"]) == 2
    assert 'pip install "tdpo_baselines[parquet]"' in capsys.readouterr().err and not picture.exists()


def test_probability_of_improvement_counts_pairs_of_seeds():
    value, low, high = plot.improvement(np.array([1.0, 3.0]), np.array([2.0, 1.0]))
    assert value == (0.5 + 1 + 1) / 4 and 0 <= low < value < high <= 1
    assert plot.improvement(np.ones(3), np.zeros(3)).tolist() == [1, 1, 1]


def test_algorithms_are_compared_as_far_as_all_runs_have_come(tmp_path, capsys):
    runs = [make_run(tmp_path / "a", num_rows=9), make_run(tmp_path / "b", algorithm="td3", num_rows=3)]
    steep = make_run(tmp_path / "c", algorithm="ars", sign=-2.0, num_rows=5)
    assert plot.main([*runs, steep, "--out", str(tmp_path / "a.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "a seed of tdpo is better than one of td3 with probability 0.50 (0.50 to 0.50), at 0.0003 " in lines[0]
    assert "tdpo is better than one of ars with probability 1.00" in lines[1] and len(lines) == 4


def test_runs_that_have_only_begun_are_left_out_and_named(tmp_path, capsys):
    paths = [make_run(tmp_path / "a"), make_run(tmp_path / "b", num_rows=0), make_run(tmp_path / "c")]
    RunFolder(paths[2]).progress_path.write_text("iteration,total_timesteps,return_mean\n1,100,nan\n")
    assert plot.main([*paths, "--out", str(tmp_path / "a.png"), "--csv", str(tmp_path / "a.csv")]) == 0
    output = capsys.readouterr().out
    assert "has no rows yet" in output and "no episode has ended" in output and "1 run(s) ->" in output
    assert plot.main([*paths[1:], "--out", str(tmp_path / "a.png")]) == 2


def test_seeds_that_have_no_common_part_are_drawn_without_a_mean(tmp_path):
    paths = [make_run(tmp_path / "a", num_rows=1), make_run(tmp_path / "b", num_rows=9)]
    (axes,) = draw(paths).axes
    assert len(axes.lines) == 2 and not axes.collections


@pytest.mark.parametrize("x", ["wall_time", "episodes"])
def test_other_columns_than_timesteps_may_be_the_abscissa(tmp_path, x):
    path = make_run(tmp_path)
    rows = [f"{i},{i / 2},{i},-1.0" for i in (1, 2)]
    RunFolder(path).progress_path.write_text("\n".join([f"iteration,{x},total_timesteps,return_mean", *rows, ""]))
    (axes,) = draw([path], x=x).axes
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [0.5, 1.0])
    assert axes.get_xlabel() == plot.LABELS[x]


def test_picture_is_written(tmp_path, capsys):
    out = tmp_path / "curves.png"
    assert plot.main([make_run(tmp_path / "run"), "--out", str(out), "--log"]) == 0
    assert out.read_bytes().startswith(b"\x89PNG") and f"1 run(s) -> {out}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--y", "reward"), "has no column 'reward'; it has iteration, total_timesteps, return_mean"),
        (("--log",), "--log needs values below zero"),
        (("--out", "/proc/nowhere/a.png"), "No such file"),
    ],
)
def test_invalid_input_is_one_line_with_exit_code_2(tmp_path, capsys, options, message):
    assert plot.main([make_run(tmp_path, sign=1.0), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("content", "message"), [(None, "has no progress.csv"), ("iteration\n", "has no rows yet")])
def test_run_without_rows_is_refused(tmp_path, content, message):
    make_run(tmp_path)
    RunFolder(tmp_path).progress_path.unlink()
    if content:
        RunFolder(tmp_path).progress_path.write_text(content)
    with pytest.raises(ValueError, match=message):
        plot.read_progress(tmp_path)


def test_sweep_over_one_option_is_a_curve_for_each_policy():
    sweeps = [Sweep(("delay_steps",), ((0, 1, 2),), sign * np.arange(3.0), (0,)) for sign in (1, -1)]
    figure = plot.draw_sweeps(["a", "b"], sweeps)
    (axes,), (legend,) = figure.axes, figure.legends
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [0, -1, -2])
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "in training"]


@pytest.mark.parametrize(
    ("own", "is_framed"),
    [
        ((1, 0.3), True),
        ((1, 0.4), False),
        ((None, 0.3), False),
        (((0.5, 1.5), (0.2, 0.4)), True),
        ((1, (0.31, 0.4)), False),
    ],
)
def test_sweep_over_two_options_is_a_heat_map_with_the_values_of_training(own, is_framed):
    returns = np.arange(6.0).reshape(3, 2)
    figure = plot.draw_sweeps(["a"], [Sweep(("delay_steps", "offset"), ((0, 1, 2), (0.1, 0.3)), returns, own)])
    panel = figure.axes[0]
    assert panel.get_xlabel() == "delay_steps" and panel.get_ylabel() == "offset"
    np.testing.assert_array_equal(panel.images[0].get_array(), returns.T)
    assert len(panel.lines) == is_framed
    if is_framed:
        assert panel.lines[0].get_xdata().mean() == pytest.approx(0.9)  # about column 1
