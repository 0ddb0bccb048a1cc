"""Draws where the pictures are: follows a policy's program (`programs`), many pictures side by side.

The draws are those of `keys` and of the transforms' `draw`, in the same single IEEE operations on 64 bits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from augtree import keys
from augtree.transforms import codes, operation, turns
from augtree.transforms.triton_kernels import GOLDEN, MIX_1, MIX_2, WORDS

FOLD, DRAW = tl.constexpr(keys.FOLD), tl.constexpr(keys.DRAW)
PATH, REALS = tl.constexpr(codes.PATH), tl.constexpr(codes.REALS)
FIELDS = tl.constexpr(codes.FIELDS)
LEVEL, SIGN, EXTRA = tl.constexpr(operation.LEVEL), tl.constexpr(operation.SIGN), tl.constexpr(operation.EXTRA)
TEST, CHOOSE, CONSTANT = tl.constexpr(codes.TEST), tl.constexpr(codes.CHOOSE), tl.constexpr(codes.CONSTANT)
SHEAR_X, SHEAR_Y = tl.constexpr(codes.SHEAR_X), tl.constexpr(codes.SHEAR_Y)
TRANSLATE_X, TRANSLATE_Y = tl.constexpr(codes.TRANSLATE_X), tl.constexpr(codes.TRANSLATE_Y)
SOLARIZE_FROM, KEEP_BITS = tl.constexpr(codes.SOLARIZE_FROM), tl.constexpr(codes.KEEP_BITS)
FACTOR, CUT = tl.constexpr(codes.FACTOR), tl.constexpr(codes.CUT)
ROTATE = tl.constexpr(codes.ROTATE)
PAIR_UP, PAD = tl.constexpr(codes.PAIR_UP), tl.constexpr(codes.PAD)
TERMS = tl.constexpr(len(turns.TERMS))
RADIAN, QUARTERS, QUARTER, IN_24, IN_6, IN_120, SPLITTER, DIGITS = (
    tl.constexpr(2 * len(turns.TERMS) + place) for place in (0, 1, 2, 5, 7, 9, 11, 12)
)
"""Where the numbers of `turns` are."""


@triton.jit
def mixed(z):
    """As `keys.mix`."""
    z = (z ^ (z >> 30)) * MIX_1
    z = (z ^ (z >> 27)) * MIX_2
    return z ^ (z >> 31)


@triton.jit
def folded(state, value, purpose):
    """As `keys.fold`."""
    return mixed((state ^ purpose) + value.to(tl.uint64) * GOLDEN)


@triton.jit
def uniform(state, counter):
    """As `Key.uniform`."""
    return (folded(state, counter, DRAW) >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16  # 2^-53


@triton.jit
def fixed(values):
    """As `geometry.fixed`."""
    return tl.floor(values * 65536.0 + 0.5).to(tl.int32)


@triton.jit
def nearest(values):
    """Rounded half to even, for numbers below 2^51."""
    rounder = tl.full([], 6755399441055744.0, tl.float64)  # 1.5 x 2^52
    return (values + rounder) - rounder


@triton.jit(do_not_specialize=["start", "offset", "step", "entry", "longest", "most", "count", "height", "width"])
def walk(
    whole,
    reals,
    numbers,
    ops,
    bounds,
    seed,
    index,
    start,
    offset,
    step,
    entry,
    longest,
    most,
    count,
    height,
    width,
    BLOCK: tl.constexpr,
    SEEDED: tl.constexpr,
    INDEXED: tl.constexpr,
):
    """Write each picture's operations from ops[i, 0] on, and where they begin and end into bounds[i]."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = row < count
    zero = row * 0
    number = row.to(tl.int64)
    if INDEXED:
        number = tl.load(index + row, mask=inside, other=0)
    base = start.to(tl.uint64)  # the role, the seed and the step; with SEEDED, the role alone
    if SEEDED:
        base = folded(folded(base, tl.load(seed), FOLD), step.to(tl.int64), FOLD)
    key = mixed(base + offset.to(tl.uint64) + number.to(tl.uint64) * GOLDEN)

    at = tl.where(inside, zero + entry, -1)
    found = zero
    for _ in range(longest):
        active = at >= 0
        fields = whole + at * FIELDS
        kind = tl.load(fields, mask=active, other=-1)
        state = key
        for place in tl.static_range(PATH):
            node = tl.load(fields + 4 + place, mask=active, other=-1)
            state = tl.where(node >= 0, folded(state, node.to(tl.int64), FOLD), state)
        then = tl.load(fields + 1, mask=active, other=-1)
        other = tl.load(fields + 2, mask=active, other=-1)
        drawn = uniform(state, tl.load(fields + 3, mask=active, other=0).to(tl.int64))
        real = tl.load(reals + at * REALS, mask=active, other=0.0)
        chooses = active & (kind == CHOOSE)
        landing = then + (drawn * real).to(tl.int32)
        choice = tl.load(whole + landing * FIELDS + 1, mask=chooses, other=-1)
        adds = active & (kind >= CONSTANT)
        target = ops + (row.to(tl.int64) * most + found) * WORDS
        add(target, fields + 4 + PATH, reals + at * REALS, numbers, kind, state, row, count, height, width, adds)
        found += adds.to(tl.int32)
        at = tl.where(chooses, choice, tl.where((kind == TEST) & (drawn >= real), other, then))
    tl.store(bounds + 2 * row, row * most, mask=inside)
    tl.store(bounds + 2 * row + 1, row * most + found, mask=inside)


@triton.jit
def added(x, y):
    """As `turns.added`."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


@triton.jit
def product(x, y, numbers):
    """As `turns.product`."""
    splitter = tl.load(numbers + SPLITTER)
    total = x * y
    x_high, y_high = x * splitter, y * splitter
    x_high, y_high = x_high - (x_high - x), y_high - (y_high - y)
    x_low, y_low = x - x_high, y - y_high
    return total, ((x_high * y_high - total) + x_high * y_low + x_low * y_high) + x_low * y_low


@triton.jit
def multiplied(x, x_rest, y, y_rest, numbers):
    """As `turns.multiplied`."""
    high, low = product(x, y, numbers)
    return high, low + (x * y_rest + x_rest * y)


@triton.jit
def times(x, x_rest, numbers, PLACE: tl.constexpr):
    """Times a fraction among the numbers."""
    zero = x * 0.0
    return multiplied(x, x_rest, zero + tl.load(numbers + PLACE), zero + tl.load(numbers + PLACE + 1), numbers)


@triton.jit
def to_digits(values, numbers):
    """As `turns.to_digits`."""
    digits = values * 0.0 + tl.load(numbers + DIGITS)
    high, low = product(values, digits, numbers)
    whole = nearest(high)
    rest = (high - whole) + low
    whole = whole + tl.where(rest > 0.5, 1.0, 0.0) - tl.where(rest < -0.5, 1.0, 0.0)
    return whole / digits


@triton.jit
def cosine_and_sine(degrees, numbers):
    """As `turns.cosine_and_sine`, of less than a whole turn."""
    angle = tl.where(degrees < 0.0, degrees + 360.0, degrees) * tl.load(numbers + RADIAN)
    quarters = nearest(angle * tl.load(numbers + QUARTERS))
    x, x_rest = added(angle - quarters * tl.load(numbers + QUARTER), -(quarters * tl.load(numbers + QUARTER + 1)))
    x_rest = x_rest - quarters * tl.load(numbers + QUARTER + 2)

    square, square_rest = multiplied(x, x_rest, x, x_rest, numbers)
    cos_rest, sin_rest = x * 0.0 + tl.load(numbers), x * 0.0 + tl.load(numbers + TERMS)
    for term in tl.static_range(1, TERMS):
        cos_rest = cos_rest * square + tl.load(numbers + term)
        sin_rest = sin_rest * square + tl.load(numbers + TERMS + term)
    fourth, fourth_rest = multiplied(square, square_rest, square, square_rest, numbers)
    third, third_rest = multiplied(x, x_rest, square, square_rest, numbers)
    cos_rest = cos_rest * (fourth * square)
    sin_rest = sin_rest * (third * fourth)
    in_24, in_24_rest = times(fourth, fourth_rest, numbers, IN_24)
    in_6, in_6_rest = times(third, third_rest, numbers, IN_6)
    fifth, fifth_rest = multiplied(third, third_rest, square, square_rest, numbers)
    in_120, in_120_rest = times(fifth, fifth_rest, numbers, IN_120)

    large, small = added(x * 0.0 + 1.0, -0.5 * square)
    cos, smaller = added(large, in_24)
    cos = cos + (small + smaller - 0.5 * square_rest + in_24_rest + cos_rest)
    large, small = added(x, -in_6)
    sin, smaller = added(large, in_120)
    sin = sin + (small + smaller + x_rest - in_6_rest + in_120_rest + sin_rest)

    cos, sin = to_digits(cos, numbers), to_digits(sin, numbers)
    odd = (quarters == 1.0) | (quarters == 3.0)
    back = tl.where((quarters == 2.0) | (quarters == 3.0), -1.0, 1.0)
    return tl.where(odd, -sin, cos) * back, tl.where(odd, cos, sin) * back


@triton.jit
def add(target, words, reals, numbers, kind, state, row, count, height, width, adds):
    """One operation of each picture where `adds`, its parameters drawn."""
    zero = tl.where(adds, 0, 0)
    magnitude = tl.load(reals, mask=adds, other=0.0)
    reach = tl.load(reals + 1, mask=adds, other=0.0)
    limit = tl.load(reals + 2, mask=adds, other=0.0)
    size = tl.load(reals + 3, mask=adds, other=0.0)
    first, second = uniform(state, zero.to(tl.int64) + LEVEL), uniform(state, zero.to(tl.int64) + SIGN)
    third, fourth = uniform(state, zero.to(tl.int64) + EXTRA), uniform(state, zero.to(tl.int64) + EXTRA + 1)
    level = magnitude - reach * first
    plain = limit * level
    signed = plain * tl.where(second < 0.5, -1.0, 1.0)

    one, two = tl.load(words + 1, mask=adds, other=0), tl.load(words + 2, mask=adds, other=0)
    three, four = tl.load(words + 3, mask=adds, other=0), tl.load(words + 4, mask=adds, other=0)
    five, six = tl.load(words + 5, mask=adds, other=0), tl.load(words + 6, mask=adds, other=0)

    slant, moved = fixed(signed), fixed(signed * 0.5 + 0.5)
    pixels = tl.floor(signed * size + 0.5).to(tl.int32) * 65536
    two = tl.where(kind == SHEAR_X, slant, two)
    three = tl.where(kind == SHEAR_X, moved, tl.where(kind == TRANSLATE_X, pixels, three))
    four = tl.where(kind == SHEAR_Y, slant, four)
    six = tl.where(kind == SHEAR_Y, moved, tl.where(kind == TRANSLATE_Y, pixels, six))

    if tl.max((adds & (kind == ROTATE)).to(tl.int32)) > 0:
        turning = kind == ROTATE
        cos, sin = cosine_and_sine(tl.where(turning & adds, signed, 0.0), numbers)
        x, y = (zero + width).to(tl.float64) / 2.0, (zero + height).to(tl.float64) / 2.0
        c, f = cos * -x + -sin * -y + x, sin * -x + cos * -y + y
        one, two = tl.where(turning, fixed(cos), one), tl.where(turning, fixed(-sin), two)
        three = tl.where(turning, fixed(c + cos * 0.5 + -sin * 0.5), three)
        four, five = tl.where(turning, fixed(sin), four), tl.where(turning, fixed(cos), five)
        six = tl.where(turning, fixed(f + sin * 0.5 + cos * 0.5), six)

    span = 2.0 * magnitude + 1.0  # of a PadCrop, whose first number is its padding
    padding = magnitude.to(tl.int32)
    three = tl.where(kind == PAD, ((first * span).to(tl.int32) - padding) * 65536, three)
    six = tl.where(kind == PAD, ((second * span).to(tl.int32) - padding) * 65536, six)

    one = tl.where(kind == SOLARIZE_FROM, tl.floor(limit * (1.0 - level)).to(tl.int32), one)
    removed = tl.minimum(tl.maximum(nearest(plain).to(tl.int32), 0), 8)
    one = tl.where(kind == KEEP_BITS, 256 - ((zero + 1) << removed), one)
    factor = tl.where(kind == PAIR_UP, plain, 1.0 + signed).to(tl.float32).to(tl.int32, bitcast=True)
    one = tl.where((kind == FACTOR) | (kind == PAIR_UP), factor, one)
    others = zero + tl.maximum(count - 1, 1)
    away = 1 + (third * others.to(tl.float64)).to(tl.int32)
    two = tl.where(kind == PAIR_UP, ((row.to(tl.int64) + away) % count).to(tl.int32), two)

    side = tl.maximum(nearest(plain * size), 1.0).to(tl.int32)
    left = (third * (zero + width).to(tl.float64)).to(tl.int32) - side // 2
    top = (fourth * (zero + height).to(tl.float64)).to(tl.int32) - side // 2
    cuts = kind == CUT
    one, two = tl.where(cuts, left, one), tl.where(cuts, top, two)
    three, four = tl.where(cuts, left + side, three), tl.where(cuts, top + side, four)

    tl.store(target, tl.load(words, mask=adds, other=0), mask=adds)
    tl.store(target + 1, one, mask=adds)
    tl.store(target + 2, two, mask=adds)
    tl.store(target + 3, three, mask=adds)
    tl.store(target + 4, four, mask=adds)
    tl.store(target + 5, five, mask=adds)
    tl.store(target + 6, six, mask=adds)
    tl.store(target + 7, tl.load(words + 7, mask=adds, other=0), mask=adds)
