"""Picture of a pendulum with non-local reward. Matplotlib loads when one is drawn."""

import numpy as np


def draw_nlr(params, angles: np.ndarray, dt: float, measured: dict[str, float]):
    """The paper's figure: the angle in time and its spectrum, with the targets marked."""
    from matplotlib.figure import Figure

    num_steps = len(angles)
    seconds = np.arange(num_steps) * dt
    spectrum = np.abs(np.fft.rfft(angles))[1:] / num_steps
    frequency = np.arange(1, len(spectrum) + 1) / (num_steps * dt)

    figure = Figure(figsize=(10, 4), layout="constrained")
    time_axes, frequency_axes = figure.subplots(1, 2)
    time_axes.plot(seconds, angles, lw=1.5, label="angle")
    time_axes.axhline(params.offset, color="k", ls="--", lw=1, label="target offset")
    swing_peak = 2 * params.amplitude  # of the pure sine whose ||Theta+||/200 is the target
    time_axes.axhspan(
        params.offset - swing_peak, params.offset + swing_peak, color="k", alpha=0.06, label="allowed swing (sine)"
    )
    time_axes.set(xlabel="time (s)", ylabel="angle (rad)")
    time_axes.set_title(
        f"offset {measured['offset']:.3f} (target {params.offset:g}), "
        f"amplitude {measured['amplitude']:.3f} (limit {params.amplitude:g})",
        fontsize=10,
    )
    frequency_axes.plot(frequency, spectrum, lw=1.5, label="|FFT| / 200")
    frequency_axes.axvspan(params.band_low_hz, params.band_high_hz, color="g", alpha=0.15, label="target band")
    frequency_axes.axhline(params.amplitude, color="k", ls="--", lw=1, label="amplitude limit, if in one bin")
    frequency_axes.set(xlabel="frequency (Hz)", ylabel="amplitude (rad)", xlim=(0, 5), ylim=(0, None))
    frequency_axes.set_title(f"in-band share {measured['band_share']:.1%}", fontsize=10)
    for axes in (time_axes, frequency_axes):
        axes.legend(fontsize=8)
    return figure
