"""What scaling.py measured, as tables, and a model of an iteration's time fitted to it, as predictions and a picture.

    T(p) = slowest share of the rollouts + blocks of the busiest rank * time of a block + serial part + messages
    message = rounds * latency + bytes / bandwidth

A gather on all ranks takes log2(p) rounds if a rank's part of it is small and p - 1 if it is large, which is Open MPI's
own rule in rough outline; a broadcast takes log2(p), and a sum, gathered by rank 0 and told, twice as many. Where ranks
share cores every round waits for each rank to get its turn, and gathers take p - 1 in any case (see common/comm.py).
"""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

SMALL_PART = 4096  # bytes of a rank's part of a gather, below which rounds are log2(p)
PREDICTED_RANKS = (8, 16, 36, 72, 144, 1152)
LARGEST = 1152


class Network(NamedTuple):
    name: str
    latency: float  # seconds per round
    seconds_per_byte: float


ASSUMED = (Network("fast", 2e-6, 1 / 10e9), Network("Ethernet", 30e-6, 1 / 1e9))


def num_rounds(kind: str, num_bytes: int, num_ranks: int) -> int:
    if kind == "gather" and num_bytes / num_ranks >= SMALL_PART:
        return num_ranks - 1
    once = math.ceil(math.log2(num_ranks)) if num_ranks > 1 else 0
    return 2 * once if kind == "sum" else once


class Model:
    """An iteration of one environment, from the record of one rank."""

    def __init__(self, record: dict):
        self.shipped = record["num_trajectories"]
        self._messages = record["messages"]
        small, large = record["work"]
        self._per_block = trajectories_per_block(small, large)
        self._block_seconds = large["update"] / large["num_blocks"]
        N, M = small["num_trajectories"], large["num_trajectories"]
        self._serial_each = max(0.0, (large["serial"] - small["serial"]) / (M - N))
        self._serial_fixed = small["serial"] - N * self._serial_each
        sizes: dict[int, float] = {}  # trajectories of a rank: seconds of the slowest
        for work in (large, small):  # what both measured is taken from the shipped number
            for num_ranks, seconds in work["slowest_share"].items():
                sizes[-(-work["num_trajectories"] // int(num_ranks))] = seconds
        self._sizes = np.array(sorted(sizes))
        self._seconds = np.array([sizes[size] for size in self._sizes])

    def rollouts(self, num_each: int) -> float:
        largest = self._sizes[-1]
        if num_each > largest:
            return float(self._seconds[-1] * num_each / largest)
        return float(np.interp(num_each, self._sizes, self._seconds))

    def messages(self, num_trajectories: int):
        """(kind, bytes, number): all but broadcasts grow with the trajectories."""
        for kind, num_bytes, number in self._messages:
            scale = num_trajectories / self.shipped if kind != "broadcast" else 1
            yield kind, num_bytes * scale, number

    def communication(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        if num_ranks == 1:
            return 0.0
        return sum(
            number * (num_rounds(kind, size, num_ranks) * network.latency + size * network.seconds_per_byte)
            for kind, size, number in self.messages(num_trajectories)
        )

    def seconds(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        num_blocks = -(-num_trajectories // self._per_block)
        return (
            self.rollouts(-(-num_trajectories // num_ranks))
            + -(-num_blocks // num_ranks) * self._block_seconds
            + self._serial_fixed
            + self._serial_each * num_trajectories
            + self.communication(num_ranks, num_trajectories, network)
        )

    def efficiency(self, num_ranks: int, num_trajectories: int, network: Network) -> float:
        alone = self.seconds(1, num_trajectories, network)
        return alone / num_ranks / self.seconds(num_ranks, num_trajectories, network)


def trajectories_per_block(small: dict, large: dict) -> int:
    """The largest that gives both numbers of blocks."""
    sizes = range(1, large["num_trajectories"] + 1)
    return max(k for k in sizes if all(-(-w["num_trajectories"] // k) == w["num_blocks"] for w in (small, large)))


def fit(records: list[dict]) -> Network:
    """Latency and bandwidth that fit the measured communication best, in relative terms; neither negative."""
    rows, seconds = [], []
    for record in records:
        rows.append(features(record))
        seconds.append(record["communication_seconds"])
    matrix = np.array(rows) / np.array(seconds)[:, None]
    ones = np.ones(len(rows))
    both = np.linalg.lstsq(matrix, ones, rcond=None)[0]
    if both.min() < 0:  # then the better of the two alone
        alone = [column @ ones / (column @ column) for column in matrix.T]
        errors = [np.linalg.norm(column * value - 1) for column, value in zip(matrix.T, alone)]
        both = np.where(np.arange(2) == np.argmin(errors), alone, 0.0)
    return Network("measured", *both)


def features(record: dict) -> tuple[float, float]:
    """Rounds and bytes of an iteration, each as often as a core must do them in turn."""
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
    rounds, size = features(record)
    return rounds * network.latency + size * network.seconds_per_byte


# Tables and picture.


def table(header: str, rows: list[list]) -> str:
    names = [name.strip() for name in header.split("|")]
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def startup_table(records: list[dict]) -> str:
    stages = ("launch", "imports", "mpi", "compile", "tensorflow", "total", "first_iteration")
    rows = [[*place(r), *(f"{r['startup'][stage]:.1f}" for stage in stages)] for r in records]
    header = "environment | hosts | ranks | launch | imports | MPI | compiled code | TensorFlow | ready | first update"
    return table(header, rows)


def memory_table(records: list[dict]) -> str:
    def megabytes(value):
        return "" if value is None else f"{value:.0f}"

    rows = []
    for r in records:
        memory = r["memory"]
        sizes = [megabytes(memory[name]) for name in ("root", "with_tensorflow", "without_tensorflow", "all")]
        rows.append([*place(r), memory["num_with_tensorflow"], *sizes])
    return table("environment | hosts | ranks | with TensorFlow | rank 0 | with it | without it | all", rows)


def place(record: dict) -> list:
    return [record["environment"], record["hosts"], record["ranks"]]


def communication_table(records: list[dict], networks: dict[int, Network]) -> str:
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
    rows = []
    for r in records:
        for w in r["work"]:
            parts = [f"{1e3 * w[name]:.1f}" for name in ("rollouts", "update", "serial")]
            one = w["slowest_share"][str(w["num_trajectories"])]
            rows.append([r["environment"], w["num_trajectories"], w["num_blocks"], *parts, f"{1e3 * one:.1f}"])
    return table(
        "environment | trajectories | blocks | rollouts ms | update ms | serial ms | slowest trajectory ms", rows
    )


def prediction_table(models: dict[str, Model]) -> str:
    rows = []
    for name, model in models.items():
        for p in PREDICTED_RANKS:
            for N in sorted({model.shipped, p, LARGEST}):
                if p <= N:
                    each = [f"{model.efficiency(p, N, network):.0%}" for network in ASSUMED]
                    times = [f"{1e3 * model.seconds(p, N, network):.1f}" for network in ASSUMED]
                    rows.append([name, p, N, *each, *times])
    return table(
        "environment | ranks | trajectories | efficiency, fast | Ethernet | iteration ms, fast | Ethernet", rows
    )


def network_table(networks: list[Network]) -> str:
    rows = []
    for network in networks:
        bandwidth = f"{1e-9 / network.seconds_per_byte:.2g}" if network.seconds_per_byte > 0 else "not limiting"
        rows.append([network.name, f"{1e6 * network.latency:.3g}", bandwidth])
    return table("network | microseconds per round | GB/s", rows)


def draw(models: dict[str, Model], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(models), figsize=(5 * len(models), 4), sharey=True, squeeze=False)
    ranks = sorted({round(2 ** (k / 4)) for k in range(41)} | set(PREDICTED_RANKS))
    for axis, (name, model) in zip(axes[0], models.items()):
        for network, style in zip(ASSUMED, ("-", "--")):
            cases = {
                f"{model.shipped} trajectories (shipped)": [(p, model.shipped) for p in ranks if p <= model.shipped],
                f"{LARGEST} trajectories": [(p, LARGEST) for p in ranks if p <= LARGEST],
                "a trajectory per rank": [(p, p) for p in ranks],
            }
            for (label, points), colour in zip(cases.items(), ("C0", "C1", "C2")):
                efficiencies = [model.efficiency(p, N, network) for p, N in points]
                label = f"{label}, {network.name}" if style == "-" else None
                axis.plot([p for p, _ in points], efficiencies, style, color=colour, label=label)
        axis.set(title=name, xlabel="ranks", xscale="log", ylim=(0, 1.05))
        axis.set_xticks([1, 8, 72, 144, 1152], ["1", "8", "72", "144", "1152"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("predicted efficiency")
    axes[0][0].plot([], [], "k--", label="the same over Ethernet")
    axes[0][0].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def report(path: Path) -> None:
    """scaling-tables.md and scaling.png beside the measurements."""
    records = json.loads(path.read_text())
    alone = [r for r in records if r["ranks"] == 1]
    models = {r["environment"]: Model(r) for r in alone}
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
        "Networks": network_table([*networks.values(), *(n._replace(name=f"assumed, {n.name}") for n in ASSUMED)]),
        "Predictions, a core per rank": prediction_table(models),
    }
    text = "".join(f"\n## {title}\n{body}" for title, body in sections.items())
    note = (
        f"Made by `python benchmarks/scaling.py --report docs/{path.name}`; [scaling.md](scaling.md) explains them.\n"
    )
    (path.parent / "scaling-tables.md").write_text(f"# Scaling: tables\n{note}{text}")
    draw(models, path.parent / "scaling.png")
