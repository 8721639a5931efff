"""The leg's kernels, made from the options of `gymnasium.make`."""

import math

import numpy as np

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Criterion, Interface, Kernel
from ..mujoco.randomisation import randomisable
from . import dynamics, model, report, reward
from .noise import NO_NOISE, NOISE_MODEL, NOISE_TEMPLATE, read_template
from .params import EPISODE_SECONDS, PHYSICS_RATE_HZ, POSITION, LegParams, state_size

SIMPLE_START = (0.4, math.radians(-50), math.radians(-100))  # height, hip, knee
START_VALUES = {"height": POSITION, "theta_hip": POSITION + 1, "theta_knee": POSITION + 2}
SIMPLE_BROKEN_REWARD = -100.0  # per step after the simulation diverged
REWARDS = ("dense", "simple")
OBSERVATIONS = {"hip_angle": "rad", "knee_angle": "rad", "hip_rate": "rad/s", "knee_rate": "rad/s"}
ACTIONS = {"hip_torque": "N m", "knee_torque": "N m"}
HIP_STARTS = {"paper": (-180.0, -30.0), "code": (-180.0, 30.0)}  # degrees

OPTIONS = {  # meanings, for help and documentation
    "control_rate_hz": "an action is held for 4000 / this physics steps, and the reward is their mean",
    "sensor_noise": "noise on the observed rates",
    "contact": "ground: compliant, compliant_v1 (less damped) or noncompliant",
    "torque_delay_steps": "delay of commands, in physics steps of 0.25 ms",
    "observation_delay_steps": "delay of observations, in physics steps",
    "reward_delay_steps": "delay of rewards, in physics steps",
    "reward_units": "paper or code, the weights of the authors' code; dense: code is 1000 times paper",
    "noise_template": "CSV file with two columns (hip and knee, rad/s at 4 kHz) played instead of the noise model",
    "hip_start": "paper: hip between -180 and -30 degrees; code: up to +30",
    "start_scale": "0 starts where the simple leg does; values between shrink the range",
    "reward_kind": "dense, or simple: the simple leg's reward, for an early stage of training",
}


def simple_kernel(
    control_rate_hz: int = PHYSICS_RATE_HZ,
    sensor_noise: bool = False,
    contact: str = "compliant",
    torque_delay_steps: int = 4,
    observation_delay_steps: int = 4,
    reward_delay_steps: int = 3,
    reward_units: str = "paper",
    noise_template: str = "",
) -> Kernel:
    """Return the paper's simple leg: dropped from a fixed start, it should land and stand."""
    _check_choice("reward_units", reward_units, reward.SIMPLE_WEIGHTS)
    return _kernel(
        control_rate_hz,
        contact,
        is_judged=reward_units == "paper",
        torque_delay=torque_delay_steps,
        observation_delay=observation_delay_steps,
        reward_delay=reward_delay_steps,
        noise=_noise(sensor_noise, noise_template),
        is_dense=False,
        weights=reward.SIMPLE_WEIGHTS[reward_units],
        supported_force=reward.SUPPORTED_FORCE[reward_units],
        broken_reward=SIMPLE_BROKEN_REWARD,
        start_low=SIMPLE_START,
        start_high=SIMPLE_START,
    )


def stochastic_kernel(
    control_rate_hz: int = PHYSICS_RATE_HZ,
    sensor_noise: bool = True,
    contact: str = "compliant",
    torque_delay_steps: int = 4,
    observation_delay_steps: int = 4,
    reward_delay_steps: int = 3,
    reward_units: str = "paper",
    noise_template: str = "",
    hip_start: str = "paper",
    start_scale: float = 1.0,
    reward_kind: str = "dense",
) -> Kernel:
    """Return the paper's leg for practical training: random starts, noisy rates, hardware limits in the reward."""
    _check_choice("reward_kind", reward_kind, REWARDS)
    if not isinstance(start_scale, (int, float)) or not 0 <= start_scale <= 1:
        raise ValueError(f"start_scale must be between 0 and 1, got {start_scale!r}")
    _check_choice("reward_units", reward_units, reward.DENSE_WEIGHTS)
    _check_choice("hip_start", hip_start, HIP_STARTS)
    hip, knee = np.radians(HIP_STARTS[hip_start]), reward.KNEE_RANGE
    low, high = np.array([(0.4, hip[0], knee[0]), (0.8, hip[1], knee[1])])
    is_dense = reward_kind == "dense"
    return _kernel(
        control_rate_hz,
        contact,
        torque_delay=torque_delay_steps,
        observation_delay=observation_delay_steps,
        reward_delay=reward_delay_steps,
        noise=_noise(sensor_noise, noise_template),
        is_dense=is_dense,
        weights=(reward.DENSE_WEIGHTS if is_dense else reward.SIMPLE_WEIGHTS)[reward_units],
        supported_force=reward.SUPPORTED_FORCE[reward_units],
        broken_reward=-reward.DENSE_WEIGHTS[reward_units][5] if is_dense else SIMPLE_BROKEN_REWARD,
        start_low=_interpolate_start(low, start_scale),
        start_high=_interpolate_start(high, start_scale),
    )


def _interpolate_start(start: np.ndarray, scale: float) -> tuple[float, ...]:
    """Return a point between the simple leg's start (scale 0) and `start` (scale 1)."""
    return tuple((scale * start + (1 - scale) * np.array(SIMPLE_START)).tolist())


def _kernel(
    control_rate_hz: int, contact: str, *, noise: tuple[int, np.ndarray], is_judged: bool = False, **task
) -> Kernel:
    """Return a kernel, judged by its landing or not; `task` holds the other fields of `LegParams`."""
    _check_choice("contact", contact, model.CONTACTS)
    control_rate_hz = _check_whole("control_rate_hz", control_rate_hz, 1, PHYSICS_RATE_HZ)
    if PHYSICS_RATE_HZ % control_rate_hz:
        raise ValueError(f"control_rate_hz must divide {PHYSICS_RATE_HZ}, got {control_rate_hz}")
    for name in ("torque_delay", "observation_delay", "reward_delay"):
        task[name] = _check_whole(f"{name}_steps", task[name], 0, 1000)
    params = LegParams(
        mujoco=model.find_addresses(contact),
        inner_steps=PHYSICS_RATE_HZ // control_rate_hz,
        noise_kind=noise[0],
        noise_template=noise[1],
        **task,
    )
    start_size = 0 if params.start_low == params.start_high else 3
    kernel = Kernel(
        params=params,
        reset=compile_template(dynamics.reset),
        observe=compile_template(dynamics.observe),
        step=compile_template(dynamics.step),
        horizon=round(EPISODE_SECONDS * control_rate_hz),
        state_size=state_size(params),
        start_size=4 if params.noise_kind != NO_NOISE else start_size,
        observation_low=np.full(4, -np.inf),
        observation_high=np.full(4, np.inf),
        action_low=np.full(2, -10.0),
        action_high=np.full(2, 10.0),
        is_action_limited=False,
        start_values=START_VALUES,
        interface=Interface(
            OBSERVATIONS,
            ACTIONS,
            control_rate_hz,
            observation_delay_s=params.observation_delay / PHYSICS_RATE_HZ,
            action_delay_s=params.torque_delay / PHYSICS_RATE_HZ,
        ),
        begin=compile_template(dynamics.begin),
        describe=report.describe,
        measure=report.measure,
        criterion=Criterion("landed", report.has_landed, report.LANDING_GAMMA**params.inner_steps)
        if is_judged
        else None,
        draw=report.draw,
        render=report.make_renderer(contact),
        scene=report.scene,
        poses=report.make_poses(contact),
    )
    return randomisable(kernel, model.load(contact)[0])


def _noise(sensor_noise: bool, template: str) -> tuple[int, np.ndarray]:
    """Return `noise_kind` and `noise_template` of `LegParams`."""
    if not isinstance(sensor_noise, bool):
        raise ValueError(f"sensor_noise must be True or False, got {sensor_noise!r}")
    if template and not sensor_noise:
        raise ValueError("noise_template needs sensor_noise=True")
    if template:
        return NOISE_TEMPLATE, read_template(template)
    return NOISE_MODEL if sensor_noise else NO_NOISE, np.zeros((0, 2))


def _check_whole(name: str, value, low: int, high: int) -> int:
    """Return `value` as an int, or raise ValueError."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or value != int(value):
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def _check_choice(name: str, value: str, choices) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
