"""Matrix products in single precision, in compiled code.

Every element of a product is a sum in the order of its terms, with fused multiply-add. So a product is the same to the
bit on every processor, whatever the width of its vectors, and whatever the number of rows. A tile of the product is
summed in the processor's registers; columns of a second factor that is transposed are copied side by side before.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit, types
from numba.core import cgutils
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from .code_cache import cached_jit

LANES = 16  # numbers per vector
HAS_WIDE_REGISTERS = bool(get_host_cpu_features().get("avx512f"))
MAX_ROWS, MAX_VECTORS = (8, 2) if HAS_WIDE_REGISTERS else (4, 1)  # of a tile: its sums must fit into the registers
_FLOAT, _VECTOR, _WORD = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)


@intrinsic(prefer_literal=True)
def multiply_tile(typing_context, num_rows, num_vectors, num_terms, a, a_row, a_term, b, b_term, c, c_row):
    """Write a tile of a product to the address c; a_row, a_term, b_term and c_row are distances in bytes.

    `num_rows` and `num_vectors`, the size of the tile, are literals. The columns of the second factor are at b.
    """
    rows, vectors = num_rows.literal_value, num_vectors.literal_value

    def generate(context, builder, signature, arguments):
        num_terms, a, a_row, a_term, b, b_term, c, c_row = arguments[2:]
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(rows)]
        firsts = [_offset(builder, a, a_row, _WORD(row)) for row in range(rows)]
        with cgutils.for_range(builder, num_terms) as loop:
            here = _offset(builder, b, loop.index, b_term)
            right = [_load(builder, builder.add(here, _WORD(4 * LANES * v)), _VECTOR) for v in range(vectors)]
            for first, row in zip(firsts, sums):
                left = _repeat(builder, _load(builder, _offset(builder, first, loop.index, a_term), _FLOAT))
                for total, column in zip(row, right):
                    builder.store(_fma(builder, left, column, builder.load(total)), total)
        for number, row in enumerate(sums):
            for v, total in enumerate(row):
                address = builder.add(_offset(builder, c, c_row, _WORD(number)), _WORD(4 * LANES * v))
                builder.store(builder.load(total), builder.inttoptr(address, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(num_rows, num_vectors, *[types.intp] * 8), generate


def _offset(builder: Any, address: Any, num: Any, distance: Any) -> Any:
    return builder.add(address, builder.mul(num, distance))


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)


def _repeat(builder: Any, number: Any) -> Any:
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


@njit(error_model="numpy")
def multiply(a, b, c):
    """Write a b [M, N] into c, whose rows are contiguous, for a [M, K] and b [K, N] in any layout."""
    num_columns, most_vectors = b.shape[1], min(max(b.shape[1] // LANES, 1), MAX_VECTORS)
    wide = np.empty((a.shape[0] if num_columns < LANES else 0, LANES), np.float32)
    target, target_row = (wide.ctypes.data, 4 * LANES) if num_columns < LANES else (c.ctypes.data, c.strides[0])
    is_copied = num_columns < LANES or b.strides[1] != 4
    copy = np.empty((b.shape[0] if is_copied else 0, LANES * most_vectors), np.float32)
    begin = 0
    while begin < num_columns:
        num_vectors = min(-(-(num_columns - begin) // LANES), most_vectors)
        width = LANES * num_vectors
        first = max(0, min(begin, num_columns - width))  # the last columns may overlap those before
        if is_copied:
            copy_columns(b, first, width, copy)
        right, right_row = (
            (copy.ctypes.data, copy.strides[0]) if is_copied else (b.ctypes.data + 4 * first, b.strides[0])
        )
        left = a.ctypes.data, *a.strides
        multiply_columns(num_vectors, *a.shape, *left, right, right_row, target + 4 * first, target_row)
        begin += width
    if num_columns < LANES:
        c[:] = wide[:, :num_columns]
    keep_alive(copy, wide)


@cached_jit(error_model="numpy")
def multiply_columns(num_vectors, num_rows, num_terms, a, a_row, a_term, b, b_term, c, c_row):
    """Write LANES num_vectors columns of the product of matrices at these addresses, with distances in bytes."""
    whole = num_rows - num_rows % MAX_ROWS
    for i in range(0, whole, MAX_ROWS):
        _multiply_rows(MAX_ROWS, num_vectors, num_terms, a + i * a_row, a_row, a_term, b, b_term, c + i * c_row, c_row)
    if 0 < whole < num_rows:  # the last rows overlap those before
        whole = num_rows
        i = num_rows - MAX_ROWS
        _multiply_rows(MAX_ROWS, num_vectors, num_terms, a + i * a_row, a_row, a_term, b, b_term, c + i * c_row, c_row)
    for i in range(whole, num_rows):
        _multiply_rows(1, num_vectors, num_terms, a + i * a_row, a_row, a_term, b, b_term, c + i * c_row, c_row)


@njit(error_model="numpy")
def _multiply_rows(num_rows, num_vectors, num_terms, a, a_row, a_term, b, b_term, c, c_row):
    """Write a tile of the product; `num_rows` is a literal."""
    if num_vectors == 2:
        multiply_tile(num_rows, 2, num_terms, a, a_row, a_term, b, b_term, c, c_row)
    else:
        multiply_tile(num_rows, 1, num_terms, a, a_row, a_term, b, b_term, c, c_row)


@njit(error_model="numpy")
def copy_columns(b, first, width, copy):
    """Copy columns of b, with zeros after the last."""
    num = min(width, b.shape[1] - first)
    if num < width:
        copy[:] = 0
    for j in range(num):
        for k in range(b.shape[0]):
            copy[k, j] = b[k, first + j]


@cached_jit(error_model="numpy")
def keep_alive(*arrays):
    """Do nothing. Memory of arrays that are arguments of a later call is not freed before it."""
