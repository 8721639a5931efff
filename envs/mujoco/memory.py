"""MuJoCo for compiled code: its functions, and arrays at addresses of its memory."""

from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import mujoco
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)  # all that MuJoCo's next step depends on

_model_and_data = (types.intp, types.intp)
mj_step = types.ExternalFunction("mj_step", types.void(*_model_and_data))
mj_forward = types.ExternalFunction("mj_forward", types.void(*_model_and_data))
mj_resetData = types.ExternalFunction("mj_resetData", types.void(*_model_and_data))
mj_rnePostConstraint = types.ExternalFunction("mj_rnePostConstraint", types.void(*_model_and_data))
mj_getState = types.ExternalFunction("mj_getState", types.void(*_model_and_data, types.intp, types.int32))
mj_setState = types.ExternalFunction("mj_setState", types.void(*_model_and_data, types.intp, types.int32))


@cache
def load_library() -> None:
    """Make MuJoCo's own functions known to compiled code."""
    libraries = sorted(Path(mujoco.__file__).parent.glob("libmujoco*"))
    if not libraries:
        raise RuntimeError(f"no libmujoco beside {mujoco.__file__}; reinstall MuJoCo with pip install mujoco")
    llvmlite.binding.load_library_permanently(str(libraries[-1]))


@intrinsic
def _pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(address), generate


@njit
def memory(address, size):
    """Return `size` float64 numbers at an address as an array."""
    return carray(_pointer(address), size)


@intrinsic
def memories(typing_context: Any, addresses: Any, sizes: Any, base: Any):
    """Return a tuple of arrays for tuples of addresses and sizes; an address of -n is n bytes behind `base`."""
    array = types.Array(types.float64, 1, "C")
    one = array(types.intp, types.intp, types.intp)

    def locate(address, size, base):
        return memory(address if address > 0 else base - address, size)

    def generate(context, builder, signature, arguments):
        pairs = zip(*(cgutils.unpack_tuple(builder, packed) for packed in arguments[:2]))
        arrays = [context.compile_internal(builder, locate, one, (*pair, arguments[2])) for pair in pairs]
        return context.make_tuple(builder, signature.return_type, arrays)

    return types.UniTuple(array, len(addresses))(addresses, sizes, base), generate
