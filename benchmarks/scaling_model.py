"""Tables of the measurements of scaling.py, and a model of an iteration's time with its predictions.

    T(p) = rollouts of the busiest rank + update of its groups of rows + serial part + messages
    rollouts = fixed + each * trajectories of the rank
    message = rounds * latency + bytes / bandwidth

A gather on all ranks takes log2(p) rounds if a rank's part of it is small and p - 1 if it is large, which approximates
Open MPI's own rule; a broadcast takes log2(p), and a sum, gathered and broadcast by rank 0, twice as many. Where ranks
share cores every round waits until each rank has had its turn, and gathers always take p - 1.
"""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tdpo_baselines.common.parallel.execution import MAX_GRAM_ROWS

SMALL_PART = 4096  # bytes of a rank's part of a gather, below which rounds are log2(p)
PREDICTED_RANKS = (16, 72, 144, 1152)
LARGEST = 1152


class Network(NamedTuple):
    """Latency and bandwidth between ranks."""

    name: str
    latency: float  # seconds per round
    seconds_per_byte: float


ASSUMED = (Network("fast", 2e-6, 1 / 10e9), Network("Ethernet", 30e-6, 1 / 1e9))


def num_rounds(kind: str, num_bytes: int, num_ranks: int) -> int:
    """Return how many messages follow one another in a collective."""
    if kind == "gather" and num_bytes / num_ranks >= SMALL_PART:
        return num_ranks - 1
    once = math.ceil(math.log2(num_ranks)) if num_ranks > 1 else 0
    return 2 * once if kind == "sum" else once


class Model:
    """The time of an iteration of one environment, early or late in a run.

    It is fitted to the record of one rank. The messages of many trajectories come from the record with the most of
    them: few rows are solved by every rank itself, without groups and with fewer messages.
    """

    def __init__(self, record: dict, most: dict, when: str):
        self.shipped = record["num_trajectories"]
        self._record, self._most = record, most
        small, large = record["work"][when]
        self._per_group = trajectories_per_group([work for work in (small, large) if work["num_groups"] > 0])
        few = MAX_GRAM_ROWS // small["rows_per_trajectory"]
        self._most_without_groups = few if small["num_groups"] == 0 else 0
        self._update = straight_line(*((work["num_groups"], work["update"]) for work in (small, large)))
        self._serial = straight_line(*((work["num_trajectories"], work["serial"]) for work in (small, large)))
        N, M = small["num_trajectories"], large["num_trajectories"]
        sizes = {M: large["rollouts"]}  # trajectories of a rank: seconds of the slowest
        for num_ranks, seconds in small["slowest_share"].items():
            sizes[-(-N // int(num_ranks))] = seconds
        self.rollouts_fixed, self.rollouts_each = fit_positive([(1, size) for size in sizes], list(sizes.values()))
        fitted = np.array([self.rollouts(size) for size in sizes])
        self.rollouts_error = float(np.abs(np.array(list(sizes.values())) / fitted - 1).max())

    def rollouts(self, num_each: int) -> float:
        """Return the seconds of a rank with `num_each` trajectories."""
        return self.rollouts_fixed + self.rollouts_each * num_each

    def messages(self, num_trajectories: int):
        """Yield (kind, bytes, number); all but broadcasts grow with the trajectories."""
        record = self._record if num_trajectories <= self._most_without_groups else self._most
        for kind, num_bytes, number in record["messages"]:
            scale = num_trajectories / record["num_trajectories"] if kind != "broadcast" else 1
            yield kind, num_bytes * scale, number

    def communication(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        """Return the seconds of all messages of an iteration."""
        if num_ranks == 1:
            return 0.0
        return sum(
            number * (num_rounds(kind, size, num_ranks) * network.latency + size * network.seconds_per_byte)
            for kind, size, number in self.messages(num_trajectories)
        )

    def seconds(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        """Return the seconds of an iteration."""
        num_groups = -(-num_trajectories // self._per_group) if num_trajectories > self._most_without_groups else 0
        return (
            self.rollouts(-(-num_trajectories // num_ranks))
            + self._update(-(-num_groups // num_ranks))
            + self._serial(num_trajectories)
            + self.communication(num_ranks, num_trajectories, network)
        )

    def efficiency(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        """Return T(1) / (p T(p))."""
        alone = self.seconds(1, num_trajectories, network)
        return alone / num_ranks / self.seconds(num_ranks, num_trajectories, network)


def straight_line(first: tuple[float, float], second: tuple[float, float]):
    """Return the linear function through two points if it rises, else the constant of the first."""
    slope = max(0.0, (second[1] - first[1]) / max(second[0] - first[0], 1))
    return lambda x: max(0.0, first[1] + slope * (x - first[0]))


def trajectories_per_group(works: list[dict]) -> int:
    """Return the largest size of a group that gives all numbers of groups."""
    sizes = range(1, works[-1]["num_trajectories"] + 1)
    return max(k for k in sizes if all(-(-w["num_trajectories"] // k) == w["num_groups"] for w in works))


def fit(records: list[dict]) -> Network:
    """Return the latency and bandwidth that fit the measured communication best."""
    seconds = [record["communication_seconds"] for record in records]
    return Network("measured", *fit_positive([features(record) for record in records], seconds))


def fit_positive(rows, values: list[float]) -> np.ndarray:
    """Return two factors, neither negative, that fit `values` by a linear model of `rows`, in relative terms."""
    matrix = np.array(rows, dtype=float) / np.array(values)[:, None]
    ones = np.ones(len(values))
    both = np.linalg.lstsq(matrix, ones, rcond=None)[0]
    if both.min() < 0:  # the better of the two alone
        alone = [column @ ones / (column @ column) for column in matrix.T]
        errors = [np.linalg.norm(column * value - 1) for column, value in zip(matrix.T, alone)]
        both = np.where(np.arange(2) == np.argmin(errors), alone, 0.0)
    return both


def features(record: dict) -> tuple[float, float]:
    """Return the rounds and bytes of an iteration, multiplied by the ranks that take turns on a core."""
    num_ranks = record["ranks"]
    turns = max(1.0, num_ranks / record["cores"])
    is_crowded = num_ranks / record["hosts"] > record["cores"]
    rounds, copied = 0.0, 0.0
    for kind, size, number in record["messages"]:
        once = num_ranks - 1 if is_crowded and kind != "broadcast" else num_rounds(kind, size, num_ranks)
        rounds += number * once * (turns if kind == "gather" else 1)
        copied += number * size * (turns if kind == "gather" else 1)
    return rounds, copied


def fitted_seconds(record: dict, network: Network) -> float:
    """Return the communication of an iteration by the model."""
    rounds, size = features(record)
    return rounds * network.latency + size * network.seconds_per_byte


# Tables and picture.


def table(header: str, rows: list[list]) -> str:
    """Return a Markdown table."""
    names = [name.strip() for name in header.split("|")]
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def startup_table(records: list[dict]) -> str:
    """Return the table of start-up times."""
    stages = ("launch", "imports", "mpi", "compile", "tensorflow", "total", "first_iteration")
    rows = [[*place(r), *(f"{r['startup'][stage]:.1f}" for stage in stages)] for r in records]
    header = "environment | hosts | ranks | launch | imports | MPI | compiled code | TensorFlow | ready | first update"
    return table(header, rows)


def memory_table(records: list[dict]) -> str:
    """Return the table of memory."""

    def megabytes(value):
        return "" if value is None else f"{value:.0f}"

    rows = []
    for r in records:
        memory = r["memory"]
        sizes = [megabytes(memory[name]) for name in ("root", "with_tensorflow", "without_tensorflow", "all")]
        rows.append([*place(r), memory["num_with_tensorflow"], *sizes])
    return table("environment | hosts | ranks | with TensorFlow | rank 0 | with it | without it | all", rows)


def place(record: dict) -> list:
    """Return the first cells of a row."""
    return [record["environment"], record["hosts"], record["ranks"]]


def communication_table(records: list[dict], networks: dict[int, Network]) -> str:
    """Return the table of communication, measured and fitted."""
    rows = []
    for r in records:
        number = sum(n for *_, n in r["messages"])
        kilobytes = sum(n * size for _, size, n in r["messages"]) / 1e3
        is_alone = r["ranks"] == 1
        model = "" if is_alone else f"{1e3 * fitted_seconds(r, networks[r['hosts']]):.2f}"
        measured = f"{1e3 * r['communication_seconds']:.2f}"
        rows.append([*place(r), r["num_trajectories"], f"{number:.1f}", f"{kilobytes:.0f}", measured, model])
    return table("environment | hosts | ranks | trajectories | messages | kB | measured ms | fitted ms", rows)


def work_table(records: list[dict]) -> str:
    """Return the table of processor time."""
    rows = []
    for r in records:
        for when, works in r["work"].items():
            for w in works:
                parts = [f"{1e3 * w[name]:.1f}" for name in ("rollouts", "update", "serial")]
                slowed = f"{w['spread'] - 1:.0%}"
                rows.append([r["environment"], when, w["num_trajectories"], w["num_groups"], *parts, slowed])
    header = "environment | when | trajectories | groups | rollouts ms | update ms | serial ms"
    return table(f"{header} | slowest iteration longer by", rows)


def rollouts_table(models: dict[str, Model]) -> str:
    """Return the table of the fitted rollouts."""
    rows = [
        [name, f"{1e3 * m.rollouts_fixed:.2f}", f"{1e3 * m.rollouts_each:.2f}", f"{m.rollouts_error:.0%}"]
        for name, m in models.items()
    ]
    return table("environment | fixed ms | ms per trajectory | largest error of the fit", rows)


def prediction_table(models: dict[str, Model], networks: list[Network]) -> str:
    """Return the table of predicted efficiencies."""
    rows = []
    for name, model in models.items():
        for p in PREDICTED_RANKS:
            for N in sorted({model.shipped, p, LARGEST}):
                if p <= N:
                    each = [f"{model.efficiency(p, N, network):.0%}" for network in networks]
                    rows.append([name, p, N, *each, f"{1e3 * model.seconds(p, N, networks[0]):.1f}"])
    names = " | ".join(network.name for network in networks)
    return table(f"environment | ranks | trajectories | {names} | iteration ms, {networks[0].name}", rows)


def network_table(networks: list[Network]) -> str:
    """Return the table of networks."""
    rows = []
    for network in networks:
        bandwidth = f"{1e-9 / network.seconds_per_byte:.2g}" if network.seconds_per_byte > 0 else "not limiting"
        rows.append([network.name, f"{1e6 * network.latency:.3g}", bandwidth])
    return table("network | microseconds per round | GB/s", rows)


def draw(models: dict[str, Model], path: Path) -> None:
    """Draw the predicted efficiencies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(models), figsize=(4.2 * len(models), 4), sharey=True, squeeze=False)
    ranks = sorted({round(2 ** (k / 4)) for k in range(41)} | set(PREDICTED_RANKS))
    for axis, (name, model) in zip(axes.flat, models.items()):
        for network, style in zip(ASSUMED, ("-", "--")):
            cases = {
                f"{model.shipped} trajectories (shipped)": [(p, model.shipped) for p in ranks if p <= model.shipped],
                f"{LARGEST} trajectories": [(p, LARGEST) for p in ranks if p <= LARGEST],
                "a trajectory per rank": [(p, p) for p in ranks],
            }
            for (label, points), colour in zip(cases.items(), ("C0", "C1", "C2")):
                efficiencies = [model.efficiency(p, N, network) for p, N in points]
                label = f"{label}, {network.name} network" if style == "-" else None
                axis.plot([p for p, _ in points], efficiencies, style, color=colour, label=label)
        axis.set(title=name, xlabel="ranks", xscale="log", ylim=(0, 1.4), yticks=np.arange(0, 1.1, 0.2))
        axis.set_xticks([1, 8, 72, 144, 1152], ["1", "8", "72", "144", "1152"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.plot([], [], "k--", label="the same over Ethernet")
        axis.legend(fontsize=7, loc="upper right")
    axes[0][0].set_ylabel("predicted efficiency")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def report(path: Path) -> None:
    """Write scaling-tables.md and scaling.png beside the measurements."""
    records = json.loads(path.read_text())
    alone = [r for r in records if r["ranks"] == 1]
    most = {r["environment"]: r for r in sorted(records, key=lambda r: r["num_trajectories"])}
    models = {
        f"{r['environment']}, {when}": Model(r, most[r["environment"]], when) for r in alone for when in r["work"]
    }
    networks = {}
    for hosts in sorted({r["hosts"] for r in records}):
        several = [r for r in records if r["hosts"] == hosts and r["ranks"] > 1]
        where = "measured, within one host" if hosts == 1 else f"measured, over {hosts} hosts"
        networks[hosts] = fit(several)._replace(name=where)
    sections = {
        "Start-up, seconds": startup_table(records),
        "Memory, MB (proportional set size)": memory_table(records),
        "Communication of an iteration": communication_table(records, networks),
        "Work of an iteration on one rank, processor time": work_table(alone),
        "Rollouts of the busiest rank, fitted": rollouts_table(models),
        "Networks": network_table([*networks.values(), *(n._replace(name=f"assumed, {n.name}") for n in ASSUMED)]),
        "Predicted efficiency, a core per rank": prediction_table(models, [*ASSUMED, networks[1]]),
    }
    text = "".join(f"\n## {title}\n{body}" for title, body in sections.items())
    note = (
        f"Made by `python benchmarks/scaling.py --report docs/{path.name}`; [scaling.md](scaling.md) explains them.\n"
    )
    (path.parent / "scaling-tables.md").write_text(f"# Scaling: tables\n{note}{text}")
    draw(models, path.parent / "scaling.png")
