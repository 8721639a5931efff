"""The picture of a search: every score, and the best so far."""

import math

from .study import Study


def draw(study: Study):
    """Return a figure of the scores over the evaluations."""
    from matplotlib.figure import Figure

    scored = [one for one in study.evaluations() if one.round >= 0]
    scores = [one.score for one in scored]
    before = [one.score for one in study.prior if math.isfinite(one.score)]
    best, curve = max(before, default=-math.inf), []
    for score in scores:
        best = max(best, score) if math.isfinite(score) else best
        curve.append(best if math.isfinite(best) else math.nan)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    numbers = range(1, len(scores) + 1)
    axes.plot(numbers, scores, "o", color="#0072B2", alpha=0.5, ms=4, label="evaluations")
    axes.step(numbers, curve, where="post", color="#D55E00", lw=2, label="best so far")
    if before:
        axes.axhline(max(before), color="0.4", ls="--", lw=1, label="best of the sweep")
    axes.set(xlabel="evaluation", ylabel="score (mean return, last tenth)", title=study.plan.library)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
