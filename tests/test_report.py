"""The report, as numbers and in a browser."""

import json

import numpy as np
import pytest
from chromium import PROGRAM, Page
from untrained import untrained, write_run

from tdpo_baselines import evaluate, export, report

HOSTILE = "</script><img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a run of the pendulum and one of the leg."""
    folder = tmp_path_factory.mktemp("runs")
    return [str(write_run(folder / name, untrained(name)).path) for name in ("pendulum-20hz", "leg-100hz")]


@pytest.fixture
def open_page(tmp_path):
    """Return a function that writes the report of runs and opens it."""
    if PROGRAM is None:
        pytest.skip("no Chromium: `make system-deps` installs it")
    opened = []

    def start(*arguments) -> Page:
        out = tmp_path / "report.html"
        assert report.main([*arguments, "--out", str(out), "--episodes", "3"]) == 0
        opened.append(Page(out, tmp_path / "profile"))
        return opened[-1]

    yield start
    for page in opened:
        page.close()


def test_run_is_collected_with_its_evaluation_and_replay(runs):
    run = report.collect(runs[0], num_episodes=3, seed=0, use_best=False)
    assert run["label"] == "tdpo on pendulum-20hz, seed 0" and run["problem"] == ""
    assert run["options"]["hidden_sizes"] == [4] and run["options"]["env.start_scale"] == 1.0
    assert run["curves"]["payoff"] == [-1.0, -0.75, -0.5, -0.25, 0.0]
    returns = run["evaluation"]["episodes"]["return"]
    assert run["replay"]["signals"]["return"][-1] == pytest.approx(np.median(returns), rel=1e-5)
    assert len(run["replay"]["chain"]) == len(run["replay"]["seconds"]) == 201


def test_long_curves_are_thinned_and_gaps_kept():
    assert report.thin(np.array([1.0, np.nan, np.inf])) == [1.0, None, None]
    thinned = report.thin(np.arange(100_000.0))
    assert len(thinned) == report.MAX_POINTS and thinned[0] == 0 and thinned[-1] == 99999


def test_run_without_a_checkpoint_is_shown_without_evaluation(tmp_path, capsys):
    trained = untrained("pendulum-20hz")
    folder = write_run(tmp_path / "young", trained)
    for checkpoint in (*folder.checkpoints.iterdir(), *folder.best.iterdir()):
        checkpoint.rename(tmp_path / f"{checkpoint.parent.name}-away")
    out = tmp_path / "report.html"
    assert report.main([str(folder.path), "--out", str(out)]) == 0
    assert "not evaluated" in capsys.readouterr().err and "has no checkpoint yet" in out.read_text()


def test_environment_without_a_drawing_has_no_replay(tmp_path):
    folder = write_run(tmp_path, untrained("chain"))
    run = report.collect(str(folder.path), num_episodes=1, seed=0, use_best=True)
    assert run["replay"] is None and run["evaluation"]["summary"]["return"]["mean"] < 0


def test_policies_without_a_run_are_shown_without_curves(runs, open_page, capsys, tmp_path):
    assert export.main([runs[0], "--format", "npz", "--out", str(tmp_path / "exported")]) == 0
    file, best = str(tmp_path / "exported/policy.npz"), f"{runs[0]}/best"
    page = open_page(file, best, "--pretrained", "leg")
    legend = page.run("[...document.querySelectorAll('#legend li')].map(line => line.textContent)")
    assert legend[0] == f"{file} tdpo on pendulum-20hz, seed 0" and legend[1].startswith(best)
    assert legend[2] == "pretrained:leg tdpo on leg, seed 27: landed (1 of 1)"
    assert page.run("[element('learning').hidden, element('replay').hidden]") == [True, False]
    assert page.run("[...element('run').options].map(option => option.text)") == [file, best, "pretrained:leg"]
    assert page.problems == []


def test_policies_beside_runs_leave_the_curves_of_the_runs(runs, open_page):
    page = open_page(runs[0], "--pretrained", "cart-pole")
    assert page.run("[element('learning').hidden, element('y').value]") == [False, "return_mean"]
    assert page.run("runs.map(run => Object.keys(run.curves).length > 0)") == [True, False] and page.problems == []


@pytest.mark.parametrize(
    "options",
    [["--pretrained", "nothing"], ["--best", "--pretrained", "leg"], ["--out", "/proc/nowhere/a.html"], ["nowhere"]],
)
def test_invalid_input_is_one_line_with_exit_code_2(runs, capsys, options):
    assert report.main(["--episodes", "1", runs[0], *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1


def test_numbers_in_the_browser_equal_evaluate_json(runs, open_page, capsys):
    page = open_page(*runs)
    capsys.readouterr()
    cells = page.run("[...document.querySelectorAll('td[data-value]')].map(cell => Number(cell.dataset.value))")
    expected = []
    for run in runs:
        assert evaluate.main([run, "--episodes", "3", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        expected += [value for statistics in told["summary"].values() for value in statistics.values()]
    assert cells == expected and page.problems == []


def test_replay_plays_pauses_and_follows_the_slider(runs, open_page):
    page = open_page(*runs)
    pixels = "element('scene').toDataURL()"
    at_start = page.run(pixels)
    time = "parseFloat(element('time').textContent)"
    reached = "new Promise(done => { const look = () => now > 0.2 ? done(now) : requestAnimationFrame(look); look(); })"
    page.run("element('play').click()")
    assert page.run(reached) > 0.2 and page.run("element('play').textContent") == "Pause"
    assert page.run(pixels) != at_start
    page.run("element('play').click()")
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(now))))"
    assert page.run("now") == page.run(frames)  # paused
    page.run("element('scrub').value = 0.5; element('scrub').dispatchEvent(new Event('input'))")
    assert page.run(time) == 5.0
    page.run("element('run').selectedIndex = 1; element('run').dispatchEvent(new Event('change'))")
    assert page.run("[now, duration()]") == [0, 2] and "return" in page.run("element('episode').textContent")
    assert page.problems == []


def test_slow_motion_is_slower(runs, open_page):
    page = open_page(runs[1])
    second = "isPlaying = true; now = before = 0; advance(1000); isPlaying = false; now"
    assert page.run(f"element('speed').value = '1'; {second}") == 1
    assert page.run(f"element('speed').value = '0.1'; {second}") == pytest.approx(0.1)


def test_curves_zoom_by_dragging_and_return_by_a_double_click(runs, open_page):
    page = open_page(runs[0])
    page.run(
        """for (const [type, x] of [["pointerdown", 200], ["pointermove", 500], ["pointerup", 500]]) {
             const clientX = x + element("curves").getBoundingClientRect().left;
             element("curves").setPointerCapture = () => {};  // a made-up pointer cannot be captured
             element("curves").dispatchEvent(new PointerEvent(type, {pointerId: 1, clientX}));
           }"""
    )
    low, high = page.run("zoom")
    assert 100 < low < high < 500
    page.run("element('curves').dispatchEvent(new MouseEvent('dblclick'))")
    assert page.run("[zoom, shown]") == [None, [100, 500]] and page.problems == []


def test_hostile_run_does_not_run_as_script(tmp_path, open_page):
    trained = untrained("pendulum-20hz")
    trained.config.options[HOSTILE], trained.config.made_with[HOSTILE] = HOSTILE, HOSTILE
    folder = write_run(tmp_path / HOSTILE.replace("/", "\u2044"), trained)
    text = folder.progress_path.read_text()
    folder.progress_path.write_text(text.replace("payoff", HOSTILE.replace(",", ""), 1))
    page = open_page(str(folder.path))
    assert page.run("typeof window.hacked") == "undefined" and page.run("document.images.length") == 0
    assert HOSTILE in page.run("document.body.innerText") and page.problems == []
