"""How many starts on the whole circle of pendulum-nlr any controller could solve: an upper bound.

The angle moves at most MAX_RATE DT per step, so the way from a far start to the offset leaves energy outside of the
band. The least such energy over all paths that respect this limit and the mean angle asked for is a least-squares
problem with bounds. It is relaxed: penalties stand for constraints, accelerations have no limit, and the start has any
rate. So what it calls impossible is impossible, but not all that it allows can be done.

    python -m run_scripts.circle_bound [--out docs/results]
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from envs.pendulum import nlr, nlr_reward, physics
from run_scripts.results import write_table

NUM_ANGLES = 63
PRICES = (0.0, 0.05, 0.2)  # of norm beyond its limit: Lagrange multipliers, each of which gives a valid bound
MEAN_PRICE = 1e4  # of an error of the mean angle
MAX_MOVE = physics.MAX_RATE * nlr_reward.DT


def least_energy(angle: float, params: nlr.NLRParams, price: float) -> float:
    """Return a lower bound of the out-of-band energy ||Theta+||^2 of solved paths from an angle."""
    from scipy.optimize import lsq_linear

    num = nlr_reward.NUM_STEPS
    bins = np.arange(1, num // 2 + 1)
    band = (nlr_reward.first_bin(params.band_low_hz), nlr_reward.last_bin(params.band_high_hz))
    is_in_band = (bins >= band[0]) & (bins <= band[1])
    fourier = np.sqrt(~is_in_band + price)[:, None] * np.fft.rfft(np.eye(num), axis=0)[1:]
    mean = np.full((1, num), np.sqrt(MEAN_PRICE) / num)
    rows = np.concatenate([fourier.real, fourier.imag, mean])
    moves = np.tril(np.ones((num, num)), -1)[:, :-1]  # path = angle + moves @ v with |v| at most MAX_MOVE
    wanted = np.append(np.zeros(2 * len(bins)), np.sqrt(MEAN_PRICE) * params.offset) - angle * rows.sum(axis=1)
    solution = lsq_linear(rows @ moves, wanted, bounds=(-MAX_MOVE, MAX_MOVE), tol=1e-8)
    allowed = MEAN_PRICE * nlr.OFFSET_ERROR**2 + price * most_energy(params)
    return 2 * solution.cost - allowed


def most_energy(params: nlr.NLRParams) -> float:
    """Return the largest ||Theta+||^2 of a solved path."""
    return (nlr.AMPLITUDE_RATIO * params.amplitude * nlr_reward.NUM_STEPS) ** 2


def bounds(params: nlr.NLRParams, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for every start whether it may be solved, and the largest share in the band at a legal amplitude."""
    least = np.array([[least_energy(angle, params, price) for price in PRICES] for angle in angles])
    most = most_energy(params)
    return (least < (1 - nlr.BAND_SHARE) * most).all(axis=1), 1 - np.clip(least[:, 0] / most, 0, 1)


def main() -> int:
    """Print the bounds as a table, and write it if a folder is given."""
    parser = argparse.ArgumentParser(prog="python -m run_scripts.circle_bound", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for pendulum-nlr-circle.md")
    out = parser.parse_args().out
    angles = (np.arange(NUM_ANGLES) + 0.5) / NUM_ANGLES * 2 * np.pi - np.pi
    rows = []
    for variant in nlr.VARIANTS:
        may_be_solved, shares = bounds(nlr.nlr_kernel(variant).params, angles)
        name = f"pendulum-nlr{'' if variant == 1 else f'-{variant}'}"
        rows.append([name, f"{may_be_solved.mean():.2f}", f"{shares.mean():.2f}"])
        print(*rows[-1], flush=True)
    if out:
        header = ["task", "starts that can be solved, at most", "mean share in the band, at most"]
        write_table(out / "pendulum-nlr-circle.md", header, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
