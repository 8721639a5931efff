"""Matrix products in single precision, in compiled code.

Every element of a product is a sum in the order of its terms, with fused multiply-add. So a product is the same to the
bit on every processor, whatever the width of its vectors, and whatever the number of rows. A tile of the product is
summed in the processor's registers; the columns that it needs of the second factor are copied side by side before.
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


@cached_jit(error_model="numpy")
def multiply(a, b, c):
    """Write a b [M, N] into c, whose rows are contiguous, for a [M, K] and b [K, N] in any layout."""
    num_terms, num_columns = b.shape
    if num_columns < LANES:
        wide = np.empty((a.shape[0], LANES), np.float32)
        _multiply_columns(a, _copy_columns(b, 0, LANES), 0, wide, 0, 1)
        c[:] = wide[:, :num_columns]
        return
    begin, most_vectors = 0, min(num_columns // LANES, MAX_VECTORS)
    while begin < num_columns:
        num_vectors = min(-(-(num_columns - begin) // LANES), most_vectors)
        width = LANES * num_vectors
        first = min(begin, num_columns - width)  # the last columns may overlap those before
        if b.strides[1] == 4:
            _multiply_columns(a, b, first, c, first, num_vectors)
        else:
            _multiply_columns(a, _copy_columns(b, first, width), 0, c, first, num_vectors)
        begin += width


@njit(error_model="numpy")
def _multiply_columns(a, b, b_first, c, first, num_vectors):
    """Write LANES num_vectors columns of the product, the first of which is that of column `b_first` of b."""
    num_rows = a.shape[0]
    whole = num_rows - num_rows % MAX_ROWS
    for i in range(0, whole, MAX_ROWS):
        _multiply_rows(MAX_ROWS, a, i, b, b_first, c, first, num_vectors)
    if whole == num_rows:
        return
    if whole > 0:  # the last rows overlap those before
        _multiply_rows(MAX_ROWS, a, num_rows - MAX_ROWS, b, b_first, c, first, num_vectors)
        return
    for i in range(num_rows):
        _multiply_rows(1, a, i, b, b_first, c, first, num_vectors)


@njit(error_model="numpy")
def _multiply_rows(num_rows, a, i, b, b_first, c, first, num_vectors):
    """Write a tile of the product; `num_rows` is a literal."""
    a_row, a_term = a.strides
    b_term, c_row = b.strides[0], c.strides[0]
    left, right = a.ctypes.data + i * a_row, b.ctypes.data + 4 * b_first
    target, num_terms = c.ctypes.data + i * c_row + 4 * first, a.shape[1]
    if num_vectors == 2:
        multiply_tile(num_rows, 2, num_terms, left, a_row, a_term, right, b_term, target, c_row)
    else:
        multiply_tile(num_rows, 1, num_terms, left, a_row, a_term, right, b_term, target, c_row)


@njit(error_model="numpy")
def _copy_columns(b, first, width):
    """Return columns of b side by side, zeros after the last."""
    num_terms, num = b.shape[0], min(width, b.shape[1] - first)
    columns = np.zeros((num_terms, width), np.float32) if num < width else np.empty((num_terms, width), np.float32)
    for j in range(num):
        for k in range(num_terms):
            columns[k, j] = b[k, first + j]
    return columns
