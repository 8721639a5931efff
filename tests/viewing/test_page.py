"""The page is filled with escaped values only."""

import json
import re

import pytest

from tdpo_baselines.viewing.page import configuration_table, evaluation_table, json_for_script, make_page

HOSTILE = "</script><script>window.hacked = 1</script><!-- DATA --><img src=x onerror='window.hacked = 1'>&amp;"


def run(name="a", **parts):
    summary = {"return": {"mean": -1.25, "std": 1 / 3, "min": None, "max": 2.0}}
    curves = {"iteration": [1, 2], "payoff": [-1.0, None]}
    kept = {
        "label": "",
        "problem": "",
        "verdict": "",
        "options": {},
        "evaluation": {"summary": summary},
        "replay": None,
    }
    return {"name": name, "curves": curves, **kept, **parts}


def test_data_reads_back_and_cannot_end_its_script():
    text = json_for_script({"a": HOSTILE})
    assert json.loads(text) == {"a": HOSTILE} and not set("<>&") & set(text)
    with pytest.raises(ValueError):
        json_for_script([float("nan")])


def test_cells_hold_the_exact_numbers():
    table = evaluation_table([run()])
    assert re.findall(r'data-value="([^"]*)">([^<]*)<', table) == [
        ("-1.25", "-1.25"),
        (repr(1 / 3), "0.33333"),
        ("", "-"),
        ("2.0", "2"),
    ]


def test_rows_in_which_runs_differ_are_marked():
    table = configuration_table(
        [run(options={"gamma": 0.9, "seed": 1}), run(options={"gamma": 0.9, "seed": 2, "x": 1})]
    )
    assert '<tr><td>gamma</td><td>0.9</td><td>0.9</td></tr><tr class="differs"><td>seed</td>' in table
    assert '<tr class="differs"><td>x</td><td></td><td>1</td></tr>' in table


def test_hostile_texts_stay_texts_wherever_they_stand():
    hostile = run(
        HOSTILE,
        label=HOSTILE,
        problem=HOSTILE,
        options={HOSTILE: HOSTILE},
        evaluation={"summary": {HOSTILE: {"mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0}}},
        curves={HOSTILE: [1]},
    )
    page = make_page(HOSTILE, [hostile])
    assert page.count("<script") == 2 == page.count("</script>") and "<img" not in page
    assert not re.search(r"<!-- [A-Z ]+ -->", page)
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(data) == [{"name": HOSTILE, "curves": {HOSTILE: [1]}, "replay": None}]


def test_page_fetches_nothing_and_allows_no_script_but_its_own():
    page = make_page("a", [run()])
    assert "default-src 'none'" in page and re.search(r"script-src 'sha256-[\w+/]{43}='", page)
    assert not re.search(r"(src|href)=|https?:|url\(|import\(", page)
