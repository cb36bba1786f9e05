"""Eight float32 numbers at a time, for Numba kernels.

Numba vectorises plain loops when LLVM can prove that arrays do not overlap and that sums may be reordered;
inside a Gibbs sweep it can prove neither. These few operations say what is meant: each is one LLVM vector
instruction, which LLVM maps to whatever the machine has (AVX-512, AVX2, NEON). None is allowed to reorder or to
fuse, so the bits do not depend on the machine's instruction set.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic, lower_builtin, type_callable

LANES = 8


class Lanes(types.Type):
    """The Numba type of eight float32 numbers in one register."""

    def __init__(self):
        super().__init__(name=f"float32x{LANES}")


lanes = Lanes()
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INTS = ir.VectorType(ir.IntType(32), LANES)


@register_default(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, FLOATS)


def constant(value):
    return ir.Constant(FLOATS, [value] * LANES)


def multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b), c)  # not fused: the bits would depend on the machine


def splat_ir(builder, value, vector=FLOATS):
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, first, ir.Constant(INTS, [0] * LANES))


def pointer(context, builder, array_type, array, index, vector):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@intrinsic
def load(typingctx, array, index):
    """Elements index .. index + LANES - 1 of a flat float32 or int32 array, as float32."""

    def codegen(context, builder, signature, args):
        whole = array.dtype == types.int32
        where = pointer(context, builder, array, args[0], args[1], INTS if whole else FLOATS)
        value = builder.load(where, align=4)
        return builder.sitofp(value, FLOATS) if whole else value

    return lanes(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):
    """Write numbers to array[index:index + LANES]."""

    def codegen(context, builder, signature, args):
        builder.store(args[2], pointer(context, builder, array, args[0], args[1], FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def splat(typingctx, value):
    """The same number in every lane."""

    def codegen(context, builder, signature, args):
        return splat_ir(builder, args[0])

    return lanes(types.float32), codegen


@intrinsic
def zero_where(typingctx, a, b, x):
    """x, but 0 where a equals b."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", args[0], args[1]), constant(0.0), args[2])

    return lanes(lanes, lanes, lanes), codegen


@intrinsic
def one_where(typingctx, a, b):
    """1 where a equals b, 0 elsewhere."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", args[0], args[1]), constant(1.0), constant(0.0))

    return lanes(lanes, lanes), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of array[index]."""

    def codegen(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], ir.IntType(8))
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [where.type, int32, int32, int32])
        fn = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(fn, [where, ir.Constant(int32, 0), ir.Constant(int32, 3), ir.Constant(int32, 1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def peek(typingctx, address, index):
    """The index-th 64-bit number of an array that is at an address: arrays of arrays are nothing that Numba has."""

    def codegen(context, builder, signature, args):
        numbers = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(numbers, [args[1]]))

    return types.uint64(types.uint64, types.intp), codegen


@intrinsic
def running_sum(typingctx, x):
    """Inclusive prefix sums, by doubling: shifts and adds."""

    def codegen(context, builder, signature, args):
        total, group = args[0], 4
        for shift in (1, 2):  # inside groups of four, where shifts are cheap
            order = [LANES + i - shift if i % group >= shift else 0 for i in range(LANES)]
            total = builder.fadd(total, builder.shuffle_vector(constant(0.0), total, ir.Constant(INTS, order)))
        while group < LANES:  # then what the groups before have in all
            order = [LANES + i - i % group - 1 if i // group % 2 else 0 for i in range(LANES)]
            total = builder.fadd(total, builder.shuffle_vector(constant(0.0), total, ir.Constant(INTS, order)))
            group *= 2
        return total

    return lanes(lanes), codegen


def fold(builder, x, combine):
    """All lanes combined into one number, by halving."""
    half = LANES // 2
    while half:
        order = ir.VectorType(ir.IntType(32), half)
        lower = builder.shuffle_vector(x, x, ir.Constant(order, list(range(half))))
        x = combine(builder, lower, builder.shuffle_vector(x, x, ir.Constant(order, list(range(half, 2 * half)))))
        half //= 2
    return builder.extract_element(x, ir.Constant(ir.IntType(32), 0))


def larger_ir(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def total(typingctx, x):
    """The sum of the lanes."""

    def codegen(context, builder, signature, args):
        return fold(builder, args[0], lambda builder, a, b: builder.fadd(a, b))

    return types.float32(lanes), codegen


@intrinsic
def largest(typingctx, x):
    """The largest of the lanes."""

    def codegen(context, builder, signature, args):
        return fold(builder, args[0], larger_ir)

    return types.float32(lanes), codegen


@intrinsic
def larger(typingctx, a, b):
    """The larger of a and b in each lane."""

    def codegen(context, builder, signature, args):
        return larger_ir(builder, *args)

    return lanes(lanes, lanes), codegen


@intrinsic
def count_up_to(typingctx, x, bound):
    """How many of the numbers are <= bound."""

    def codegen(context, builder, signature, args):
        below = builder.fcmp_ordered("<=", args[0], splat_ir(builder, args[1]))
        bits = builder.bitcast(below, ir.IntType(LANES))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return types.intp(lanes, types.float32), codegen


@intrinsic
def exp_near_0(typingctx, x):
    """e**x to 4e-7 for |x| <= 1/4: the series alone."""

    def codegen(context, builder, signature, args):
        p = constant(1 / 120)
        for factorial in (24.0, 6.0, 2.0, 1.0, 1.0):
            p = multiply_add(builder, p, args[0], constant(1 / factorial))
        return p

    return lanes(lanes), codegen


@intrinsic
def exp(typingctx, x):
    """e**x to 2e-7 (relative); below -87 and above 88 it stays at the ends of what float32 holds."""

    def codegen(context, builder, signature, args):
        x = args[0]
        x = builder.select(builder.fcmp_ordered("<", x, constant(-87.0)), constant(-87.0), x)
        x = builder.select(builder.fcmp_ordered(">", x, constant(88.0)), constant(88.0), x)
        # adding 1.5 * 2**23 rounds to a whole number n and leaves n in the low bits
        magic = constant(12582912.0)
        shifted = multiply_add(builder, x, constant(1.4426950408889634), magic)
        n = builder.fsub(shifted, magic)
        # x - n log 2, with log 2 in two parts so that the difference stays exact
        r = multiply_add(builder, n, constant(-0.693359375), x)
        r = multiply_add(builder, n, constant(2.12194440e-4), r)
        p = constant(1 / 5040)
        for factorial in (720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0):
            p = multiply_add(builder, p, r, constant(1 / factorial))
        power = builder.shl(builder.bitcast(shifted, INTS), ir.Constant(INTS, [23] * LANES))
        return builder.bitcast(builder.add(builder.bitcast(p, INTS), power), FLOATS)

    return lanes(lanes), codegen


def _operator(python_operator, build):
    @type_callable(python_operator)
    def typed(context):
        def typer(a, b):
            if isinstance(a, Lanes) and isinstance(b, Lanes):
                return lanes

        return typer

    @lower_builtin(python_operator, lanes, lanes)
    def lower(context, builder, signature, args):
        return build(builder, *args)


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_operator(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b))


def padded(n: int) -> int:
    """n rounded up to whole lanes."""
    return -(-n // LANES) * LANES


def pad(array: np.ndarray) -> np.ndarray:
    """A copy whose last axis is filled up with zeros to whole lanes."""
    wide = np.zeros((*array.shape[:-1], padded(array.shape[-1])), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide
