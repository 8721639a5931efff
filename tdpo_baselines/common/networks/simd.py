"""Vectors of doubles in compiled code, and a tanh for numbers, vectors and arrays.

A `Vector` occupies one or more registers of the processor. Operators and functions work on it element by element, in
IEEE double precision, with fused multiply-add only where it is written.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, models, register_model

from .code_cache import cached_jit

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # ln 2 in two parts: the product with a small integer is exact
LN2_LOW = 1.9082149292705877e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits


class Vector(types.Type):
    """The numba type of `width` doubles. In operations with vectors a number is repeated."""

    def __init__(self, width):
        self.width = width
        super().__init__(name=f"Vector({width})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.width))


@lower_cast(types.Float, Vector)
def _cast(context, builder, number_kind, kind, number):
    return _repeat(builder, number, kind.width)


def _repeat(builder, number, width):
    """Return a vector of the same number."""
    kind = ir.VectorType(number.type, width)
    vector = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    return _pick(builder, vector, vector, [0] * width)


def _pick(builder, first, second, order):
    """Return elements of two vectors by their indices; those of the second follow those of the first."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


def _join(builder, vectors):
    """Return the concatenation of 1, 2, 4, ... vectors."""
    if len(vectors) == 1:
        return vectors[0]
    half = len(vectors) // 2
    first, second = _join(builder, vectors[:half]), _join(builder, vectors[half:])
    return _pick(builder, first, second, list(range(2 * first.type.count)))


def _constant(kind, value):
    """Return a constant number or vector of equal elements."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _elementwise(emit, *kinds):
    """Return typing and code of an elementwise function, which emit(builder, *values) generates."""
    kind = next((kind for kind in kinds if isinstance(kind, Vector)), types.float64)

    def generate(context, builder, signature, arguments):
        return emit(builder, *arguments)

    return kind(*[kind] * len(kinds)), generate


def _llvm(name):
    """Return emit(builder, *values) of an LLVM intrinsic."""

    def emit(builder, *values):
        kind = values[0].type
        suffix = f"v{kind.count}f64" if isinstance(kind, ir.VectorType) else "f64"
        signature = ir.FunctionType(kind, [kind] * len(values))
        return builder.call(get_or_insert_function(builder.module, signature, f"llvm.{name}.{suffix}"), values)

    return emit


def _extend(function, emit):
    """Extend an operator or builtin of Python to vectors; emit(builder, *values) generates its code."""

    class Typing(AbstractTemplate):
        def generic(self, kinds, keywords):
            vectors = [kind for kind in kinds if isinstance(kind, Vector)]
            return signature(vectors[0], *vectors[:1] * len(kinds)) if vectors else None

    def generate(context, builder, signature, arguments):
        return emit(builder, *arguments)

    infer_global(function)(Typing)
    for num in (1, 2):
        lower_builtin(function, *[Vector] * num)(generate)


_extend(operator.add, ir.IRBuilder.fadd)
_extend(operator.sub, ir.IRBuilder.fsub)
_extend(operator.mul, ir.IRBuilder.fmul)
_extend(operator.truediv, ir.IRBuilder.fdiv)
_extend(operator.neg, ir.IRBuilder.fneg)
_extend(abs, _llvm("fabs"))


@intrinsic
def fma(typing_context, a, b, c):
    """Return a * b + c, rounded once."""
    return _elementwise(_llvm("fma"), a, b, c)


@intrinsic
def copysign(typing_context, size, sign):
    """Return the absolute value of `size` with the sign of `sign`."""
    return _elementwise(_llvm("copysign"), size, sign)


@intrinsic
def at_most(typing_context, x, limit):
    """Return the smaller of x and `limit`, NaN if x is NaN."""

    def emit(builder, x, limit):
        return builder.select(builder.fcmp_ordered("<", limit, x), limit, x)

    return _elementwise(emit, x, limit)


@intrinsic
def times_power(typing_context, x, rounded):
    """Return x 2^k for `rounded` = k + ROUND, by adding the low bits of `rounded` to the exponent of x.

    Valid if the product is a normal number or k is 0.
    """

    def emit(builder, x, rounded):
        kind, integer = x.type, ir.IntType(64)
        integer = ir.VectorType(integer, kind.count) if isinstance(kind, ir.VectorType) else integer
        exponent = builder.shl(builder.bitcast(rounded, integer), _constant(integer, 52))
        return builder.bitcast(builder.add(builder.bitcast(x, integer), exponent), kind)

    return _elementwise(emit, x, rounded)


def _pointers(context, builder, signature, arguments, num, kind):
    """Yield `num` pointers: to array[first], array[first + step], ..."""
    array, index, step = arguments[:3]
    data = context.make_array(signature.args[0])(context, builder, array).data
    for _ in range(num):
        yield builder.bitcast(builder.gep(data, [index], inbounds=True), kind.as_pointer())
        index = builder.add(index, step)


@intrinsic(prefer_literal=True)
def load(typing_context, array, first, step, num, width):
    """Return a vector of `num` parts: `width` elements from array[first] on, from array[first + step] on, ..."""
    count, part = num.literal_value, ir.VectorType(ir.DoubleType(), width.literal_value)

    def generate(context, builder, signature, arguments):
        pointers = _pointers(context, builder, signature, arguments, count, part)
        return _join(builder, [builder.load(pointer, align=8) for pointer in pointers])

    return Vector(count * part.count)(array, types.intp, types.intp, num, width), generate


@intrinsic(prefer_literal=True)
def load_repeated(typing_context, array, first, step, num, width):
    """Return a vector of `num` parts: `width` times array[first], `width` times array[first + step], ..."""
    count, part = num.literal_value, width.literal_value

    def generate(context, builder, signature, arguments):
        pointers = _pointers(context, builder, signature, arguments, count, ir.DoubleType())
        return _join(builder, [_repeat(builder, builder.load(pointer), part) for pointer in pointers])

    return Vector(count * part)(array, types.intp, types.intp, num, width), generate


@intrinsic(prefer_literal=True)
def store(typing_context, array, first, step, num, vector):
    """Store the `num` parts of a vector from array[first] on, from array[first + step] on, ..."""
    part = ir.VectorType(ir.DoubleType(), vector.width // num.literal_value)

    def generate(context, builder, signature, arguments):
        whole = arguments[-1]
        pointers = _pointers(context, builder, signature, arguments, num.literal_value, part)
        for number, pointer in enumerate(pointers):
            elements = range(number * part.count, (number + 1) * part.count)
            builder.store(_pick(builder, whole, whole, list(elements)), pointer, align=8)

    return types.none(array, types.intp, types.intp, num, vector), generate


# tanh to about one unit in the last place. With y = -2|x| = k ln 2 + r:
# expm1(y) = 2^k expm1(r) + (2^k - 1), tanh|x| = -expm1(y) / (2 + expm1(y)).


@njit(error_model="numpy", forceinline=True)
def reduce_argument(x):
    """Return k + ROUND and r."""
    size = at_most(abs(x), 20.0)
    y = -(size + size)
    rounded = fma(y, LOG2_E, ROUND)
    k = rounded - ROUND
    return rounded, fma(k, -LN2_LOW, fma(k, -LN2_HIGH, y))


@njit(error_model="numpy", forceinline=True)
def expm1(rounded, r):
    """Return expm1(y), from Taylor's series of expm1(r) evaluated in pairs of terms to keep chains short."""
    r2 = r * r
    r4 = r2 * r2
    p0 = fma(fma(r, 1.0 / 120.0, 1.0 / 24.0), r2, fma(r, 1.0 / 6.0, 0.5))
    p4 = fma(fma(r, 1.0 / 362880.0, 1.0 / 40320.0), r2, fma(r, 1.0 / 5040.0, 1.0 / 720.0))
    p8 = fma(fma(r, 1.0 / 6227020800.0, 1.0 / 479001600.0), r2, fma(r, 1.0 / 39916800.0, 1.0 / 3628800.0))
    p = fma(fma(p8, r4 * r4, fma(p4, r4, p0)), r2, r)
    return times_power(p, rounded) + (times_power(1.0, rounded) - 1.0)


@njit(error_model="numpy", forceinline=True)
def tanh_from_expm1(e, x):
    """Return tanh(x) for e = expm1(y)."""
    return copysign(e / (2.0 + e), x)


@cached_jit(error_model="numpy")
def tanh_scalar(x):
    """Return the tanh of a number."""
    rounded, r = reduce_argument(x)
    return tanh_from_expm1(expm1(rounded, r), x)


@cached_jit(error_model="numpy")
def tanh(x):
    """Return the tanh of a contiguous array, ten times as fast as NumPy does without AVX-512."""
    result = np.empty_like(x)
    source, target = x.reshape(-1), result.reshape(-1)
    for i in range(source.size):
        target[i] = tanh_scalar(source[i])
    return result
