import json


def test_rows_are_written_with_the_machine_and_replace_those_of_the_same_name(benchmark, monkeypatch, tmp_path):
    table, path = benchmark("table"), tmp_path / "results.json"
    monkeypatch.setenv(table.VARIABLE, str(path))
    for speed in (1.0, 3000.0):
        table.add_row("speed", speed, "steps/s", other=1000.0, goal="at least 2", bound="arithmetic")
    table.add_row("share", 12.345, "%")
    results = json.loads(path.read_text())
    assert results["machine"]["cores"] >= 1
    assert table.markdown(results).splitlines()[2:] == [
        "| speed | 3,000 steps/s | 1,000 steps/s | 3 | at least 2 | arithmetic |",
        "| share | 12.3 % |  |  |  |  |",
    ]


def test_nothing_is_written_unless_asked_for(benchmark, monkeypatch, tmp_path):
    table = benchmark("table")
    monkeypatch.delenv(table.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    table.add_row("speed", 1.0, "steps/s")
    assert not list(tmp_path.iterdir())
