"""The how-to pages, the page on export and the tour of the README, followed to the letter in a copy of the packages."""

import json
import shutil

import pytest
from pages import Workshop, read_blocks
from programs import ROOT, deterministic_part

pytestmark = pytest.mark.slow


@pytest.fixture
def workshop(tmp_path, mpirun):
    return Workshop(tmp_path, mpirun)


def test_algorithm_page_leads_to_an_algorithm_that_runs_the_same_on_two_ranks(workshop):
    printed = workshop.follow("docs/howto/algorithm.md")
    runs = workshop.folder / "runs"
    assert deterministic_part(runs / "search") == deterministic_part(runs / "search-2")
    assert "random_search on pendulum-20hz, seed 0" in printed and "2 passed" in printed


def test_environment_page_leads_to_an_environment_that_tdpo_learns(workshop):
    printed = workshop.follow("docs/howto/environment.md")
    first, *_, last = (workshop.folder / "runs/spring/progress.csv").read_text().splitlines()[1:]
    assert float(last.split(",")[5]) > float(first.split(",")[5]) / 4  # payoffs are negative
    assert "final_error" in printed and "tdpo on spring, seed 0" in printed and "2 passed" in printed


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_robot_page_leads_from_a_model_to_a_film_and_a_controller(workshop):
    for path in (ROOT / "examples").glob("gymnast.*"):
        shutil.copy(path, workshop.folder)
    printed = workshop.follow("docs/howto/robot.md", shorter=("1e6", "2e4"))
    assert "wrote my_robot.py and test_my_robot.py" in printed and (workshop.folder / "gymnast.png").is_file()
    assert "largest difference 0, tolerance 0: passed" in printed
    contract = json.loads((workshop.folder / "controller/contract.json").read_text())
    assert [entry["name"] for entry in contract["observations"]] == ["bar_angle", "hip_angle", "bar_rate", "hip_rate"]
    assert contract["observations"][2]["unit"] == "rad/s" and contract["control_rate_hz"] == 50


def test_command_page_leads_to_a_command_that_compares_runs(workshop):
    printed = workshop.follow("docs/howto/command.md")
    assert "(runs/a)" in printed and "(runs/b)" in printed and "2 passed" in printed


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_export_page_leads_to_a_controller_that_checks_itself_and_runs(workshop):
    printed = workshop.follow("docs/export.md")
    assert "largest difference 0, tolerance 0: passed" in printed and "\n8000 steps, torques " in printed


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_tour_of_the_readme_leads_to_a_film_a_controller_and_reports(workshop):
    """Its run of ten million steps is shortened."""
    printed = ""
    for section in ("Watch a landing", "Put it on the robot", "Train"):
        blocks = read_blocks("README.md", section)
        assert blocks and all(block.language == "bash" for block in blocks)
        printed += "".join(workshop.run(block.text.replace("_timesteps 1e7", "_timesteps 1e5")) for block in blocks)
    assert "verdict: landed (1 of 1)" in printed and "largest difference 0, tolerance 0: passed" in printed
    made = {path.name for path in workshop.folder.iterdir() if path.is_file()}
    assert {"landing.gif", "landing.html", "swing.png", "curves.png", "report.html", "scores.csv", "map.png"} <= made
