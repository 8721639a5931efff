"""Environments of the TDPO paper, and small control tasks: `gymnasium.make("envs:tdpo/PendulumNLR-v0", variant=3)`.

Importing this package only registers names. Physics and compilers load when an environment is made.
"""

from gymnasium.envs.registration import register, registry

IS_TDPO_BASELINES = True  # tells this package from the one of the same name on PyPI

_STOCHASTIC_LEG: dict = {"kernel": "envs.leg.kernels:stochastic_kernel"}

IDS: dict[str, dict] = {
    "tdpo/PendulumNLR-v0": {"kernel": "envs.pendulum.nlr:nlr_kernel"},
    "tdpo/PendulumLong-v0": {"kernel": "envs.pendulum.long:long_kernel"},
    "tdpo/Leg-v0": {"kernel": "envs.leg.kernels:simple_kernel"},
    "tdpo/LegStochastic-v0": _STOCHASTIC_LEG,
    "tdpo/LegStochastic100Hz-v0": {**_STOCHASTIC_LEG, "control_rate_hz": 100},
    "tdpo/DelayedSpring-v0": {"kernel": "envs.control.mechanics:delayed_spring_kernel"},
    "tdpo/DoubleWell-v0": {"kernel": "envs.control.mechanics:double_well_kernel"},
    "tdpo/CartPole-v0": {"kernel": "envs.control.mechanics:cart_pole_kernel"},
    "tdpo/Birotor-v0": {"kernel": "envs.control.mechanics:birotor_kernel"},
    "tdpo/DeadTime-v0": {"kernel": "envs.control.plants:dead_time_kernel"},
    "tdpo/StepResponse-v0": {"kernel": "envs.control.plants:step_response_kernel"},
    "tdpo/TwoMass-v0": {"kernel": "envs.control.plants:two_mass_kernel"},
    "tdpo/Chain-v0": {"kernel": "envs.control.plants:chain_kernel"},
}

for _id, _kwargs in IDS.items():
    if _id not in registry:
        register(id=_id, entry_point="envs.gym_env:make", kwargs=_kwargs)
