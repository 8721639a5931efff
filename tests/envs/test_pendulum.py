import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envs import pendulum
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

MAKE = {
    "nlr": lambda: gymnasium.make("envs:tdpo/PendulumNLR-v0"),
    "nlr-cos-sin": lambda: gymnasium.make("envs:tdpo/PendulumNLR-v0", variant=5, observation="cos_sin", start_scale=1),
    "20hz": lambda: gymnasium.make("envs:tdpo/PendulumLong-v0", control_rate_hz=20),
    "100hz": lambda: gymnasium.make("envs:tdpo/PendulumLong-v0", control_rate_hz=100),
}


@pytest.fixture(params=MAKE, ids=str)
def env(request):
    return MAKE[request.param]()


@pytest.fixture
def roller(env):
    return KernelRoller(env.unwrapped.kernel, (16, 16), gamma=0.99)


@pytest.fixture
def theta(roller):
    return mlp.initial_parameters(roller.layer_sizes, np.random.default_rng(3), output_gain=5.0)


def test_gymnasium_accepts_the_environment(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_long_pendulum_equals_gymnasium_pendulum_step_for_step():
    ours, theirs = MAKE["20hz"](), gymnasium.make("Pendulum-v1")
    observation, _ = ours.reset(seed=7)
    expected, _ = theirs.reset(seed=7)
    rng = np.random.default_rng(0)
    for t in range(200):
        np.testing.assert_allclose(observation, expected, atol=1e-6)  # Gymnasium observes in float32
        np.testing.assert_allclose(ours.unwrapped.state[:2], theirs.unwrapped.state, rtol=0, atol=1e-11)
        action = rng.uniform(-3, 3, 1)
        observation, reward, terminated, truncated, _ = ours.step(action)
        expected, expected_reward, _, _, _ = theirs.step(action)
        assert reward == pytest.approx(expected_reward, abs=1e-10)
        assert (terminated, truncated) == (False, t == 199)


def test_gymnasium_path_equals_compiled_path_bit_for_bit(env, roller, theta):
    start = np.array([0.3, 0.8])
    compiled = roller.rollouts(theta, roller.start_states(start[None]))
    observation, _ = env.reset(seed=0, options={"start": start})
    act = mlp.compile_act(roller.layer_sizes)
    truncated, t = False, 0
    while not truncated:
        assert np.array_equal(observation, compiled.observations[0, t])
        action = mlp.act_once(act, roller.layer_sizes, theta, observation)
        observation, reward, _, truncated, info = env.step(action)
        assert reward == compiled.rewards[0, t]
        t += 1
    assert t == compiled.lengths[0] == roller.horizon
    assert np.array_equal(env.unwrapped.state[:-1], compiled.final_states[0])
    if roller.kernel.measure is not None:
        assert info == roller.kernel.measure(roller.kernel.params, compiled.final_states[0])


def test_branch_from_saved_state_equals_replay_bit_for_bit(roller, theta):
    rng = np.random.default_rng(1)
    start = roller.start_states(rng.random((1, 2)))
    for t in (0, 1, 57, roller.horizon - 1):
        offset = rng.standard_normal((1, 1, 1))
        main = roller.rollouts(theta, start, save_steps=np.array([[t]]))
        branch = roller.rollouts(
            theta, main.saved_states[:, 0], num_steps=np.array([roller.horizon - t]), offsets=offset
        )
        delayed = np.zeros((1, t + 1, 1))
        delayed[:, t] = offset[:, 0]
        replay = roller.rollouts(theta, start, offsets=delayed)
        for name in ("observations", "actions", "rewards"):
            ours = getattr(branch, name)[0, : roller.horizon - t]
            assert np.array_equal(ours, getattr(replay, name)[0, t:])
            assert np.array_equal(getattr(main, name)[0, :t], getattr(replay, name)[0, :t])
        assert np.array_equal(branch.final_states, replay.final_states)


def test_restored_gymnasium_state_continues_identically(env):
    env.reset(seed=5)
    rng = np.random.default_rng(2)
    for _ in range(20):
        env.step(rng.uniform(-1, 1, 1))
    saved = env.unwrapped.state
    first = [env.step(np.array([0.5]))[:2] for _ in range(5)]
    env.unwrapped.state = saved
    second = [env.step(np.array([0.5]))[:2] for _ in range(5)]
    for (observation, reward), (again, reward_again) in zip(first, second):
        assert np.array_equal(observation, again) and reward == reward_again


def test_reset_draws_from_the_environments_own_generator():
    ours, theirs = gymnasium.make("envs:tdpo/PendulumLong-v0"), gymnasium.make("Pendulum-v1")
    for seed in range(5):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        np.testing.assert_allclose(ours.unwrapped.state[:2], theirs.unwrapped.state, rtol=1e-15)


def slow_reward_terms(params, angles):
    """The paper's formulas with NumPy's FFT, word for word."""
    magnitudes = np.abs(np.fft.fft(angles))
    positive = magnitudes[1:101]
    norm = np.sqrt(positive @ positive)
    standardised = positive / (norm + 1e-6)
    frequencies = np.arange(1, 101) * 0.1
    in_band = (frequencies > params.band_low_hz - 0.01) & (frequencies < params.band_high_hz + 0.01)
    excess = norm / 200 / params.amplitude - 1
    frequency = 0.1 * (np.sum(standardised[in_band] ** 2) - 1)
    return (
        frequency,
        -abs(magnitudes[0] * np.sign(angles.sum()) / 200 - params.offset),
        -excess if excess >= 0 else 1e-4 * excess,
    )


@pytest.mark.parametrize("variant", range(1, 10))
def test_reward_equals_the_papers_formulas(variant):
    params = pendulum.nlr_kernel(variant).params
    rng = np.random.default_rng(variant)
    for scale in (1e-3, 0.3, 20.0):
        angles = rng.standard_normal(200).cumsum() * scale
        np.testing.assert_allclose(
            pendulum.reward_terms(params, angles), slow_reward_terms(params, angles), rtol=1e-9, atol=1e-12
        )


def test_pure_sine_in_band_reaches_the_best_reward():
    kernel = pendulum.nlr_kernel(1)
    seconds = np.arange(200) * 0.05
    angles = 0.524 + 2 * 0.28 * np.sin(2 * np.pi * 1.8 * seconds)
    state = np.concatenate([np.zeros(3), angles])
    measured = kernel.measure(kernel.params, state)
    assert measured["offset"] == pytest.approx(0.524, abs=1e-12)
    assert measured["amplitude"] == pytest.approx(0.28, abs=1e-12)  # ||Theta+|| / 200 of a sine is half its peak
    assert measured["band_share"] == pytest.approx(1.0, abs=1e-6)


def test_all_reward_is_paid_at_the_last_step():
    env = MAKE["nlr"]()
    env.reset(seed=1)
    rewards = [env.step(np.zeros(1))[1] for _ in range(200)]
    assert rewards[:-1] == [0.0] * 199 and rewards[-1] < 0


def test_torque_is_limited_and_recorded_as_executed(roller):
    theta = np.zeros(roller.num_parameters)
    theta[-1] = 1000.0  # output bias
    rollouts = roller.rollouts(theta, roller.start_states(np.full((1, 2), 0.5)))
    assert np.all(rollouts.actions == roller.kernel.action_high)


def test_stepping_past_the_end_is_an_error(env):
    env.unwrapped.reset(seed=0)
    for _ in range(env.unwrapped.kernel.horizon):
        env.unwrapped.step(np.zeros(1))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.unwrapped.step(np.zeros(1))


def test_own_targets_replace_the_variants():
    assert pendulum.nlr_kernel(2, offset=-0.5, band_high_hz=1.0).params[:4] == (0.5, 1.0, -0.5, 1.11)


def test_wild_state_writes_nothing_outside_its_memory():
    kernel = pendulum.nlr_kernel()
    for wild in (1e6, -1e6, np.nan):
        memory = np.zeros(kernel.state_size + 2000)
        state = memory[1000:-1000]
        state[2] = wild
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
        pendulum.nlr_kernel(**options)


def test_bad_control_rate_and_start_name_the_field():
    with pytest.raises(ValueError, match="control_rate_hz"):
        pendulum.long_kernel(control_rate_hz=0)
    with pytest.raises(ValueError, match="start must be 2 numbers"):
        MAKE["nlr"]().reset(options={"start": [2.0, 0.0]})
