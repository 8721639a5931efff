"""The leg's model and the addresses of its memory."""

from functools import cache
from pathlib import Path

import mujoco
from numba import njit

from ..mujoco.memory import load_library, memory
from .params import Addresses

CONTACTS = {  # solref (time constant, damping ratio), solimp (dmin, dmax, width, midpoint, power)
    "compliant": ((0.015, 0.24), (0.01, 0.95, 0.001, 0.5, 9.0)),
    "compliant_v1": ((0.015, 0.18), (0.01, 0.95, 0.001, 0.5, 2.0)),
    "noncompliant": ((0.002, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)),
}


@cache
def load(contact: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the leg on a kind of ground, loaded once per process. All trajectories share one MjData."""
    load_library()
    model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("leg.xml")))
    model.pair_solref[0], model.pair_solimp[0] = CONTACTS[contact]
    return model, mujoco.MjData(model)


def find_addresses(contact: str) -> Addresses:
    """Return where MuJoCo keeps the leg on a kind of ground."""
    model, data = load(contact)
    arrays = (getattr(data, name).ctypes.data for name in Addresses._fields[2:])
    return Addresses(model._address, data._address, *arrays)


@njit
def integration_state(mujoco):
    """Return qpos, qvel and qacc_warmstart: all that MuJoCo's next step depends on, besides ctrl."""
    return memory(mujoco.qpos, 3), memory(mujoco.qvel, 3), memory(mujoco.qacc_warmstart, 3)
