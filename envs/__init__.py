"""Environments of the TDPO paper: `gymnasium.make("envs:tdpo/PendulumNLR-v0", variant=3)`.

Importing this package only registers names; physics and compilers load when one is made.
"""

from gymnasium.envs.registration import register, registry

IS_TDPO_BASELINES = True  # another package called `envs` exists on PyPI; tools look for this marker

for _id, _kernel in {
    "tdpo/PendulumNLR-v0": "envs.pendulum:nlr_kernel",
    "tdpo/PendulumLong-v0": "envs.pendulum:long_kernel",
}.items():
    if _id not in registry:
        register(id=_id, entry_point="envs.gym_env:make", kwargs={"kernel": _kernel})
