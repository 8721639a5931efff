from pathlib import Path

from programs import ROOT

from run_scripts import list as listing


def test_every_result_is_listed_with_its_cost(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/horizon-short")
    folder.mkdir(parents=True)
    (folder / "runs.csv").write_text("run,status\na,finished\nb,started\n")
    assert listing.main() == 0
    text = capsys.readouterr().out
    assert "1 of 2 finished" in text and all(name in text for name in listing.SCRIPTS)


def test_no_result_is_forgotten():
    scripts = {path.stem for path in (ROOT / "run_scripts").glob("*.py") if "RESULT = Result(" in path.read_text()}
    assert scripts == set(listing.SCRIPTS)
