import json

import pytest

from run_scripts import claims
from run_scripts.claims import Record

GOOD, BAD = ([1.0, 2.0], True), ([0.0], False)


def record(**returns):
    """Return a record of one panel: method -> (returns, whether the criterion is met)."""
    rows = [
        {
            "panel": "leg",
            "label": label,
            "seeds": {i: {"return": r, "is_met": met, "steps": 1e6} for i, r in enumerate(rs)},
        }
        for label, (rs, met) in returns.items()
    ]
    return Record({"scale": "short", "rows": rows})


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"TDPO": GOOD, **dict.fromkeys(claims.PAPER_RIVALS, BAD)}, "reproduced"),
        ({"TDPO": GOOD, **dict.fromkeys(claims.PAPER_RIVALS, BAD), "ARS": GOOD}, "reproduced; also: ARS"),
        ({"TDPO": GOOD, "TRPO, tuned": GOOD, "PPO1": BAD}, "partly; also: TRPO, tuned; not run: TD3 and DDPG"),
        ({"TDPO": GOOD}, "partly; not run: TRPO and PPO1 and TD3 and DDPG"),
        ({"TDPO": BAD, "TRPO": BAD}, "not reproduced"),
    ],
)
def test_criterion_decides(found, verdict):
    assert claims.judge_criterion("leg")(record(**found))[1] == verdict


def test_budget_and_medians_are_shown():
    one = record(TDPO=([1.0, 2.0, 30.0], True))
    assert one.shown("leg") == "TDPO 2" and one.budget() == "up to 3 seeds of 1 M steps"


def test_claims_without_runs_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    score = {"return": -1.0, "is_met": True, "steps": 1e6}
    rows = [{"panel": "leg", "label": "TDPO", "seeds": {"0": score}}]
    (tmp_path / "leg.json").write_text(json.dumps({"scale": "short", "rows": rows}))
    assert claims.main() == 0
    lines = (tmp_path / "claims.md").read_text().splitlines()[2:]
    assert len(lines) == len(claims.CLAIMS)
    assert sum("not run;" in line for line in lines) == len(lines) - 1 and "1 of 1" in lines[2]


@pytest.mark.parametrize(("at_500hz", "verdict"), [(-3000.0, "partly: no rival"), (-9000.0, "reproduced")])
def test_rate_is_judged_per_step(at_500hz, verdict):
    found = {"pendulum-20hz": -160.0, "pendulum-100hz": -800.0, "pendulum-500hz": at_500hz}
    rows = [
        {"panel": panel, "label": label, "seeds": {"0": {"return": value if label == "TRPO" else -1.0}}}
        for panel, value in found.items()
        for label in ("TDPO", "TRPO")
    ]
    assert claims.judge_horizon(Record({"scale": "short", "rows": rows}))[1].startswith(verdict)
