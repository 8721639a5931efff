"""The paper's claims beside our results: `python -m run_scripts.claims` writes docs/results/claims.md.

It reads the records NAME.json that the scripts of this folder write. A claim without a record is listed as not run.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from run_scripts.results import markdown, number

PAPER_RIVALS = ("TRPO", "PPO1", "TD3", "DDPG")
LONGEST_EPISODE = 1000  # of the inverted pendulum
RESULTS = Path(__file__).parent.parent / "docs/results"


class Record:
    """The scores of a result, by panel and method."""

    def __init__(self, values: dict[str, Any]):
        self.scale, self.rows = values["scale"], {(row["panel"], row["label"]): row for row in values["rows"]}

    def scores(self, panel: str, label: str) -> list[dict[str, Any]]:
        """Return the scores of all seeds; empty if the setting was not run."""
        row = self.rows.get((panel, label))
        return list(row["seeds"].values()) if row else []

    def median(self, panel: str, label: str) -> float | None:
        """Return the median return, None if the setting was not run."""
        scores = self.scores(panel, label)
        return median(score["return"] for score in scores) if scores else None

    def met(self, panel: str, label: str) -> tuple[int, int]:
        """Return how many seeds meet the environment's criterion, and how many there are."""
        scores = self.scores(panel, label)
        return sum(bool(score["is_met"]) for score in scores), len(scores)

    def labels(self, panel: str) -> list[str]:
        """Return the methods of a panel."""
        return [label for where, label in self.rows if where == panel]

    def shown(self, panel: str, unit: float = 1) -> str:
        """Return the median of every method of a panel."""
        medians = {label: self.median(panel, label) for label in self.labels(panel)}
        return ", ".join(f"{label} {number(value / unit)}" for label, value in medians.items() if value is not None)

    def budget(self) -> str:
        """Return the largest number of seeds and of steps."""
        every = [list(row["seeds"].values()) for row in self.rows.values()]
        steps = max(score["steps"] for scores in every for score in scores)
        return f"up to {max(map(len, every))} seeds of {steps / 1e6:.3g} M steps"


class Claim(NamedTuple):
    """A claim of the paper, the result that tests it, and how: a record -> (our numbers, verdict)."""

    text: str
    paper: str
    result: str
    judge: Callable[[Record], tuple[str, str]]


def judge_criterion(panel: str) -> Callable[[Record], tuple[str, str]]:
    """Return a judge: TDPO meets the environment's criterion and its rivals do not."""

    def judge(record: Record) -> tuple[str, str]:
        counts = {label: record.met(panel, label) for label in record.labels(panel)}
        shown = ", ".join(f"{label} {good} of {all_}" for label, (good, all_) in counts.items())
        good, num_seeds = counts.get("TDPO", (0, 1))
        if 2 * good <= num_seeds:
            return shown, "not reproduced"
        succeed = [label for label, (met, _) in counts.items() if met and not label.startswith("TDPO")]
        not_run = [name for name in PAPER_RIVALS if not any(label.startswith(name) for label in counts)]
        is_refuted = any(label.startswith(PAPER_RIVALS) for label in succeed)
        notes = [
            f"{word}: {' and '.join(labels)}" for word, labels in (("also", succeed), ("not run", not_run)) if labels
        ]
        return shown, "; ".join(["partly" if is_refuted or not_run else "reproduced", *notes])

    return judge


def judge_variants(record: Record) -> tuple[str, str]:
    """Count the variants that TDPO solves on most seeds."""
    counts = {v: record.met(f"pendulum-nlr-{v}", "TDPO") for v in range(2, 10)}
    done = {v: pair for v, pair in counts.items() if pair[1]}
    num_solved = sum(2 * good > all_ for good, all_ in done.values())
    shown = ", ".join(f"{v}: {good} of {all_}" for v, (good, all_) in done.items())
    if num_solved == len(counts):
        return shown, "reproduced"
    not_run = f"; not run: {', '.join(str(v) for v in counts if v not in done)}" if len(done) < len(counts) else ""
    return shown, f"partly: {num_solved} of {len(counts)} variants{not_run}"


def judge_horizon(record: Record) -> tuple[str, str]:
    """Compare the return per step at the lowest and at the highest control rate that a method has run."""
    from run_scripts.horizon import HORIZONS

    shown = "; ".join(f"{panel}: {record.shown(panel, unit)}" for panel, unit in HORIZONS.items())
    loses = {}
    for label in record.labels(next(iter(HORIZONS))):
        medians = [(record.median(panel, label), steps) for panel, steps in HORIZONS.items()]
        per_step = [value / steps for value, steps in medians if value is not None]
        if len(per_step) > 1:
            loses[label] = per_step[-1] < 1.1 * per_step[0]
    tdpo_loses, rivals = loses.pop("TDPO"), loses
    if not rivals:
        return (
            shown,
            f"rivals are not run at several rates, TDPO {'loses' if tdpo_loses else 'does not lose'} more than a tenth",
        )
    losing = [label for label, worse in rivals.items() if worse]
    verdict = (
        "reproduced" if len(losing) == len(rivals) else f"partly: {', '.join(losing) or 'no rival'} lost over a tenth"
    )
    return shown, f"{verdict}; TDPO {'lost too' if tdpo_loses else 'did not'}"


def judge_delay(record: Record) -> tuple[str, str]:
    """Compare delays of no and of five steps; a method copes if it balances for half of an episode."""
    none, five = (record.shown(f"delay of {delay} steps") for delay in (0, 5))
    best = max(record.median("delay of 5 steps", label) or 0 for label in record.labels("delay of 5 steps"))
    return (
        f"no delay: {none}; 5 steps: {five}",
        "reproduced" if best < LONGEST_EPISODE / 2 else "partly: some methods cope with 5 steps",
    )


def judge_gym(record: Record) -> tuple[str, str]:
    """Compare TDPO with the best rival on every task."""
    panels = list(dict.fromkeys(panel for panel, _ in record.rows))
    shown = "; ".join(f"{panel}: {record.shown(panel)}" for panel in panels)
    swimmer = {label: record.median("Swimmer-v5", label) for label in record.labels("Swimmer-v5")}
    is_best = bool(swimmer) and swimmer.get("TDPO") == max(swimmer.values())
    return shown, "partly: ahead on Swimmer" if is_best else "not reproduced on Swimmer at this budget"


def judge_shown(record: Record) -> tuple[str, str]:
    """Show the numbers; the page has the comparison."""
    panels = list(dict.fromkeys(panel for panel, _ in record.rows))
    return "; ".join(f"{panel}: {record.shown(panel)}" for panel in panels), "see the page"


CLAIMS = (
    Claim("TDPO solves the non-local pendulum, TRPO, PPO, DDPG and TD3 do not", "Figure 1", "pendulum-nlr",
          judge_criterion("pendulum-nlr")),
    Claim("TDPO solves the other eight variants", "Figures 11 to 19", "pendulum-nlr", judge_variants),
    Claim("TDPO lands the leg at 4 kHz, its rivals do not", "Figure 2", "leg", judge_criterion("leg")),
    Claim("TDPO is ahead on the stochastic leg after the rivals were tuned", "Figure 4", "leg-stochastic", judge_shown),
    Claim("The rivals lose as the control rate grows", "Figure 6", "horizon", judge_horizon),
    Claim("A delay of five steps defeats every method", "Figure 7", "action-delay", judge_delay),
    Claim("TDPO is similar on Gym tasks and ahead on Swimmer", "Figure 9", "gym-suite", judge_gym),
    Claim("TDPO takes no longer per step than its rivals", "Figure 10", "running-time", judge_shown),
    Claim("Libraries for hyper-parameter optimisation differ little; 3 seeds predict 100", "Figures 3, 21",
          "hpo-libraries", judge_shown),
)  # fmt: skip


def row(claim: Claim) -> list[str]:
    """Return a row of the table."""
    path = RESULTS / f"{claim.result}.json"
    if not path.exists():
        script = claim.result.replace("-", "_")
        return [claim.text, claim.paper, "", "", f"not run; `python -m run_scripts.list` has the cost of `{script}`"]
    record = Record(json.loads(path.read_text()))
    numbers, verdict = claim.judge(record)
    return [claim.text, claim.paper, numbers, record.budget(), verdict]


def main() -> int:
    """Write the table."""
    header = ["claim", "paper", "ours, median of the seeds", "budget", "verdict"]
    (RESULTS / "claims.md").write_text(markdown(header, map(row, CLAIMS)))
    print(f"-> {RESULTS / 'claims.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
