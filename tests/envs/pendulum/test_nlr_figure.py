import numpy as np

from envs.pendulum.nlr import nlr_kernel


def test_figure_shows_angle_and_spectrum_with_the_measured_values():
    kernel = nlr_kernel(1)
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.array([0.4, 0.6]), state)
    states = kernel.replay(state, np.zeros((kernel.horizon, 1)))
    time_axes, frequency_axes = kernel.draw(kernel.params, states).axes
    measured = kernel.measure(kernel.params, states[-1])
    np.testing.assert_array_equal(time_axes.lines[0].get_ydata(), states[:-1, 0])
    assert f"offset {measured['offset']:.3f} (target 0.524)" in time_axes.get_title()
    assert f"{measured['band_share']:.1%}" in frequency_axes.get_title()
    assert len(frequency_axes.lines[0].get_xdata()) == 100
