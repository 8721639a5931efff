"""A figure of the pendulum with non-local reward. Matplotlib loads when one is drawn."""

import numpy as np

from .nlr_reward import DT


def draw_oscillation(params, angles: np.ndarray, measured: dict[str, float]):
    """Return the paper's figure: the angle in time and its spectrum, with the targets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.3), layout="constrained")
    time_axes, frequency_axes = figure.subplots(1, 2)
    _draw_angle(time_axes, params, angles, measured)
    _draw_spectrum(frequency_axes, params, angles, measured)
    for axes in (time_axes, frequency_axes):
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)  # below the data
    return figure


def _draw_angle(axes, params, angles: np.ndarray, measured: dict[str, float]) -> None:
    axes.plot(np.arange(len(angles)) * DT, angles, lw=1.5, label="angle")
    axes.axhline(params.offset, color="k", ls="--", lw=1, label="target offset")
    peak = 2 * params.amplitude  # of the pure sine whose ||Theta+|| / 200 is the target
    axes.axhspan(params.offset - peak, params.offset + peak, color="k", alpha=0.06, label="allowed swing (sine)")
    axes.set(xlabel="time (s)", ylabel="angle (rad)")
    axes.set_title(
        f"offset {measured['offset']:.3f} (target {params.offset:g}), "
        f"spectral amplitude {measured['amplitude']:.3f} (limit {params.amplitude:g})",
        fontsize=10,
    )


def _draw_spectrum(axes, params, angles: np.ndarray, measured: dict[str, float]) -> None:
    num_steps = len(angles)
    spectrum = np.abs(np.fft.rfft(angles))[1:] / num_steps
    frequency = np.arange(1, len(spectrum) + 1) / (num_steps * DT)
    axes.plot(frequency, spectrum, lw=1.5, label="|FFT| / 200")
    axes.axvspan(params.band_low_hz, params.band_high_hz, color="g", alpha=0.15, label="target band")
    axes.axhline(params.amplitude, color="k", ls="--", lw=1, label="amplitude limit, if in one bin")
    axes.set(xlabel="frequency (Hz)", ylabel="amplitude (rad)", xlim=(0, 5), ylim=(0, None))
    axes.set_title(f"in-band share {measured['band_share']:.1%}", fontsize=10)
