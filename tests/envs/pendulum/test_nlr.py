import gymnasium
import numpy as np
import pytest

from envs.pendulum import nlr


def test_all_reward_is_paid_at_the_last_step():
    env = gymnasium.make("envs:tdpo/PendulumNLR-v0")
    env.reset(seed=1)
    rewards = [env.step(np.zeros(1))[1] for _ in range(200)]
    assert rewards[:-1] == [0.0] * 199 and rewards[-1] < 0


def test_measures_are_those_of_the_recorded_angles():
    kernel = nlr.nlr_kernel(1)
    angles = 0.524 + 2 * 0.28 * np.sin(2 * np.pi * 1.8 * np.arange(200) * 0.05)
    measured = kernel.measure(kernel.params, np.concatenate([np.zeros(3), angles]))
    assert measured["offset_error"] == pytest.approx(0, abs=1e-12)
    assert measured["amplitude_ratio"] == pytest.approx(1) and measured["band_share"] == pytest.approx(1)
    terms = [measured[f"reward_{name}"] for name in ("frequency", "offset", "amplitude")]
    np.testing.assert_allclose(terms, 0, atol=1e-6)


def test_own_targets_replace_the_variants():
    assert nlr.nlr_kernel(2, offset=-0.5, band_high_hz=1.0).params[:4] == (0.5, 1.0, -0.5, 1.11)


@pytest.mark.parametrize(
    ("observation", "expected"), [("angle", [0.3, 2.0]), ("cos_sin", [np.cos(0.3), np.sin(0.3), 2.0])]
)
def test_angle_is_observed_as_asked_for(observation, expected):
    kernel = nlr.nlr_kernel(observation=observation)
    state, observed = np.zeros(kernel.state_size), np.zeros(kernel.observation_size)
    state[:2] = 0.3, 2.0
    kernel.observe(kernel.params, state, observed)
    np.testing.assert_allclose(observed, expected, rtol=1e-15)


def test_invalid_state_writes_nothing_outside_its_memory():
    kernel = nlr.nlr_kernel()
    for invalid in (1e6, -1e6, np.nan):
        memory = np.zeros(kernel.state_size + 2000)
        state = memory[1000:-1000]
        state[2] = invalid
        kernel.step(kernel.params, state, np.zeros(1))
        assert not memory[:1000].any() and not memory[-1000:].any()


@pytest.mark.parametrize(
    "options",
    [
        {"variant": 0},
        {"start_scale": -1},
        {"start_scale": float("nan")},
        {"observation": "x"},
        {"offset": "high"},
        {"amplitude": 0},
        {"band_low_hz": 1.95, "band_high_hz": 1.97},
        {"band_high_hz": float("nan")},
    ],
)
def test_bad_options_name_the_field(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        nlr.nlr_kernel(**options)


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, True), ({"offset_error": 0.02}, False), ({"band_share": 0.8}, False)]
)
def test_solved_means_offset_band_and_amplitude(changes, expected):
    criterion = nlr.nlr_kernel(1).criterion
    solved = {"offset_error": 0.005, "band_share": 0.95, "amplitude_ratio": 1.0, **changes}
    assert criterion.name == "solved" and criterion.is_met(solved) == expected
