"""All operations of a plan on a batch of pictures in one launch, for CUDA: the kernels of `kernels` in Triton.

One program transforms one picture. It walks through the picture's own list of operations, which `fused` makes, and
writes from one buffer into the other; the last operation writes the result. Every number is a whole number or goes
through single IEEE operations (the launch switches off the contraction of multiply and add), so the bytes are those
of `kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from augtree import keys
from augtree.transforms import codes

WORDS = tl.constexpr(codes.WORDS)
WARP, BOX, PAIR = (tl.constexpr(code) for code in (codes.WARP, codes.BOX, codes.PAIR))
SHARPNESS, COLOR, HUE = (tl.constexpr(code) for code in (codes.SHARPNESS, codes.COLOR, codes.HUE))
SOBEL, NOISE, BLUR = (tl.constexpr(code) for code in (codes.SOBEL, codes.NOISE, codes.BLUR))
STRETCH = tl.constexpr(codes.STRETCH)
GOLDEN, MIX_1, MIX_2 = tl.constexpr(keys.GOLDEN), tl.constexpr(keys.MIX_1), tl.constexpr(keys.MIX_2)
ELEMENT = tl.constexpr(keys.ELEMENT)
FIRST_TABLE = tl.constexpr(codes.FIRST_TABLE)
SOLARIZE, POSTERIZE = tl.constexpr(codes.SOLARIZE), tl.constexpr(codes.POSTERIZE)
BRIGHTNESS, CONTRAST = tl.constexpr(codes.BRIGHTNESS), tl.constexpr(codes.CONTRAST)
AUTO_CONTRAST, EQUALIZE = tl.constexpr(codes.AUTO_CONTRAST), tl.constexpr(codes.EQUALIZE)


@triton.jit
def bytes_of(values):
    """Floats cut to 0..255 and to whole numbers."""
    return tl.minimum(tl.maximum(values, 0.0), 255.0).to(tl.int32).to(tl.uint8)


@triton.jit
def blend(degenerate, values, factor):
    """As `kernels.blend`, of whole numbers."""
    poor = degenerate.to(tl.float32)
    return bytes_of((values.to(tl.float32) - poor) * factor + poor)


@triton.jit
def grey(picture, at, inside, channels, plane):
    """As `kernels.grey`, whole numbers."""
    first = tl.load(picture + at, mask=inside, other=0).to(tl.int32)
    if channels == 3:
        second = tl.load(picture + plane + at, mask=inside, other=0).to(tl.int32)
        third = tl.load(picture + 2 * plane + at, mask=inside, other=0).to(tl.int32)
        out = (first * 19595 + second * 38470 + third * 7471 + 0x8000) >> 16
    else:
        for channel in range(1, channels):
            first += tl.load(picture + tl.cast(channel, tl.int64) * plane + at, mask=inside, other=0).to(tl.int32)
        out = (2 * first + channels) // (2 * channels)
    return out


@triton.jit
def mean_grey(picture, channels, plane, BLOCK: tl.constexpr):
    """The rounded mean of the grey picture."""
    total = tl.zeros([BLOCK], tl.int64)
    for start in range(0, plane, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < plane
        total += tl.where(inside, grey(picture, at, inside, channels, plane), 0).to(tl.int64)
    return ((2 * tl.sum(total) + plane) // (2 * plane)).to(tl.int32)


@triton.jit
def stretched(band, values, plane, BLOCK: tl.constexpr):
    """The table of `kernels.auto_contrast`."""
    lows = tl.full([BLOCK], 255, tl.int32)
    highs = tl.zeros([BLOCK], tl.int32)
    for start in range(0, plane, BLOCK):
        at = start + tl.arange(0, BLOCK)
        found = tl.load(band + at, mask=at < plane, other=0).to(tl.int32)
        lows = tl.minimum(lows, tl.where(at < plane, found, 255))
        highs = tl.maximum(highs, found)
    low, high = tl.min(lows), tl.max(highs)
    reach = tl.maximum(high - low, 1).to(tl.float64)
    scale = tl.full([256], 255.0, tl.float64) / reach
    shifted = values.to(tl.float64) * scale + -low.to(tl.float64) * scale
    return tl.where(high > low, tl.minimum(tl.maximum(shifted, 0.0), 255.0).to(tl.int32), values)


@triton.jit
def equalized(band, values, plane, BLOCK: tl.constexpr):
    """The table of `kernels.equalize`."""
    counts = tl.zeros([256], tl.int32)
    for start in range(0, plane, BLOCK):
        at = start + tl.arange(0, BLOCK)
        counts += tl.histogram(tl.load(band + at, mask=at < plane, other=0).to(tl.int32), 256)
    beyond = (plane + BLOCK - 1) // BLOCK * BLOCK - plane  # counted as black
    counts -= tl.where(values == 0, beyond, 0)
    brightest = tl.max(tl.where(counts > 0, values, 0))
    last = tl.sum(tl.where(values == brightest, counts, 0))
    step = (plane - last) // 255
    table = ((step >> 1) + tl.cumsum(counts) - counts) // tl.maximum(step, 1)
    return tl.where(step > 0, tl.minimum(table, 255), values)


@triton.jit
def write_table(table, band, op, code, mean, plane, BLOCK: tl.constexpr):
    """What a tonal operation makes of each of the 256 values."""
    values = tl.arange(0, 256)
    word = tl.load(op + 1)
    if code == SOLARIZE:
        new = tl.where(values >= word, 255 - values, values)
    elif code == POSTERIZE:
        new = values & word
    elif code == AUTO_CONTRAST:
        new = stretched(band, values, plane, BLOCK)
    elif code == EQUALIZE:
        new = equalized(band, values, plane, BLOCK)
    else:
        new = blend(tl.zeros([256], tl.int32) + mean, values, word.to(tl.float32, bitcast=True)).to(tl.int32)
    tl.debug_barrier()  # others may still read the last channel's table
    tl.store(table + values, new.to(tl.uint8))
    tl.debug_barrier()


@triton.jit
def warped(band, op, at, inside, height, width):
    """As `kernels.warp`, which keeps a frame of one pixel around the picture."""
    x, y = at % width, at // width
    left = tl.load(op + 1) * x + (tl.load(op + 2) * y + (tl.load(op + 3) + 65536))
    top = tl.load(op + 4) * x + (tl.load(op + 5) * y + (tl.load(op + 6) + 65536))
    left, top = (left >> 16) - 1, (top >> 16) - 1
    found = (left >= 0) & (left < width) & (top >= 0) & (top < height) & inside
    fill = (at * 0 + tl.load(op + 7)).to(tl.uint8)
    return tl.where(found, tl.load(band + top * width + left, mask=found, other=0), fill)


@triton.jit
def smoothed(band, at, inside, height, width):
    """As `kernels.smooth`, whole numbers."""
    x, y = at % width, at // width
    middle = inside & (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)
    own = tl.load(band + at, mask=inside, other=0).to(tl.int32)
    total = 4 * own
    for down in tl.static_range(-1, 2):
        for across in tl.static_range(-1, 2):
            total += tl.load(band + at + down * width + across, mask=middle, other=0).to(tl.int32)
    return tl.where(middle, (2 * total + 13) // 26, own)


@triton.jit
def boxed(band, op, at, inside, width):
    """As `kernels.fill_box`."""
    x, y = at % width, at // width
    covered = (x >= tl.load(op + 1)) & (y >= tl.load(op + 2)) & (x < tl.load(op + 3)) & (y < tl.load(op + 4))
    fill = (at * 0 + tl.load(op + 5)).to(tl.uint8)
    return tl.where(covered, fill, tl.load(band + at, mask=inside, other=0))


@triton.jit
def turned_hue(picture, channel, turn, at, inside, plane):
    """One band of `kernels.hue`; floats and doubles alternate as they do there."""
    red = tl.load(picture + at, mask=inside, other=0).to(tl.int32)
    green = tl.load(picture + plane + at, mask=inside, other=0).to(tl.int32)
    blue = tl.load(picture + 2 * plane + at, mask=inside, other=0).to(tl.int32)
    high = tl.maximum(tl.maximum(red, green), blue)
    spread = high - tl.minimum(tl.minimum(red, green), blue)
    safe = tl.maximum(spread, 1).to(tl.float32)
    from_red = tl.div_rn((high - red).to(tl.float32), safe)
    from_green = tl.div_rn((high - green).to(tl.float32), safe)
    from_blue = tl.div_rn((high - blue).to(tl.float32), safe)
    second = 2.0 + from_red.to(tl.float64) - from_blue.to(tl.float64)
    third = 4.0 + from_green.to(tl.float64) - from_red.to(tl.float64)
    sector = tl.where(red == high, (from_blue - from_green).to(tl.float64), tl.where(green == high, second, third))
    circle = sector.to(tl.float32).to(tl.float64) / 6.0 + 1.0
    circle = tl.where(circle >= 1.0, circle - 1.0, circle).to(tl.float32)
    hue = tl.where(spread > 0, tl.minimum((circle.to(tl.float64) * 255.0).to(tl.int32), 255), 0)
    share = tl.div_rn(spread.to(tl.float32), tl.maximum(high, 1).to(tl.float32))
    saturation = tl.minimum((share.to(tl.float64) * 255.0).to(tl.int32), 255)

    position = ((hue + turn) & 255).to(tl.float64) * 6.0 / 255.0
    place = position.to(tl.int32)
    part = (position - place.to(tl.float64)).to(tl.float32).to(tl.float64)
    colour = (saturation.to(tl.float64) / 255.0).to(tl.float32).to(tl.float64)
    top = high.to(tl.float64)
    low = (top * (1.0 - colour) + 0.5).to(tl.int32)
    falling = (top * (1.0 - colour * part) + 0.5).to(tl.int32)
    rising = (top * (1.0 - colour * (1.0 - part)) + 0.5).to(tl.int32)
    # Two bits for each of the six sectors: 0 the top, 1 rising, 2 falling, 3 low.
    order = tl.where(channel == 0, 0b000111111000, tl.where(channel == 1, 0b111110000001, 0b100000011111))
    which = (order >> (2 * (place % 6))) & 3
    return tl.where(which == 0, high, tl.where(which == 1, rising, tl.where(which == 2, falling, low))).to(tl.uint8)


@triton.jit
def edges(band, at, inside, height, width):
    """As `kernels.sobel`."""
    x, y = at % width, at // width
    across, along = at * 0, at * 0
    for down in tl.static_range(-1, 2):
        row = tl.minimum(tl.maximum(y + down, 0), height - 1) * width
        for right in tl.static_range(-1, 2):
            near = row + tl.minimum(tl.maximum(x + right, 0), width - 1)
            value = tl.load(band + near, mask=inside, other=0).to(tl.int32)
            across += value * (right * (2 - down * down))
            along += value * (down * (2 - right * right))
    return bytes_of(tl.sqrt_rn((across * across + along * along).to(tl.float32)))


@triton.jit
def noisy(own, normal, op, number):
    """As `kernels.add_noise`, for the values with these numbers in their picture."""
    low, high = tl.load(op + 2).to(tl.uint32), tl.load(op + 3).to(tl.uint32)
    state = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    z = (state ^ ELEMENT) + number.to(tl.uint64) * GOLDEN
    z = (z ^ (z >> 30)) * MIX_1
    z = (z ^ (z >> 27)) * MIX_2
    z = z ^ (z >> 31)
    noise = tl.load(normal + ((z >> 49) & 0x3FFF).to(tl.int32)) * tl.load(op + 1).to(tl.float32, bitcast=True)
    rounder = 12582912.0  # 1.5 x 2^23: adding and taking it away rounds as the machine does, half to even
    return bytes_of(((noise + own.to(tl.float32)) + rounder) - rounder)


@triton.jit
def blurred(band, op, at, inside, height, width):
    """One pass of `kernels.box_blur`; words: weight, the weight at the far ends, where those are, across or down."""
    reach, across = tl.load(op + 3), tl.load(op + 4)
    place, size, stride = at // width, height, width
    if across == 1:
        place, size, stride = at % width, width, width * 0 + 1
    total = (at * 0).to(tl.uint32) + (1 << 23)
    for far in range(-reach, reach + 1):
        near = tl.minimum(tl.maximum(place + far, 0), size - 1)
        weight = tl.load(op + 1 + ((far == reach) | (far == -reach)).to(tl.int32)).to(tl.uint32)
        total += tl.load(band + at + (near - place) * stride, mask=inside, other=0).to(tl.uint32) * weight
    return (total >> 24).to(tl.uint8)


@triton.jit
def write_taps(taps, op, height, width, BLOCK: tl.constexpr):
    """For each place along one side: its first source and three weights, as `crops.bilinear` has them."""
    start, stop, across = tl.load(op + 1), tl.load(op + 2), tl.load(op + 3)
    size = height
    if across == 1:
        size = width
    for begin in range(0, size, BLOCK):
        place = begin + tl.arange(0, BLOCK)
        scale = (place * 0 + (stop - start)).to(tl.float64) / (place * 0 + size).to(tl.float64)
        middle = start.to(tl.float64) + (place.to(tl.float64) + 0.5) * scale
        first = tl.maximum((middle - 1.0 + 0.5).to(tl.int32), 0)
        count = tl.minimum((middle + 1.0 + 0.5).to(tl.int32), size) - first
        one = tl.where(count > 0, tent(first, 0, middle), 0.0)
        two = tl.where(count > 1, tent(first, 1, middle), 0.0)
        three = tl.where(count > 2, tent(first, 2, middle), 0.0)
        inside = place < size
        total = tl.where(inside, one + two + three, 1.0)
        tl.store(taps + 4 * place, first, mask=inside)
        tl.store(taps + 4 * place + 1, (one / total * 4194304.0 + 0.5).to(tl.int32), mask=inside)
        tl.store(taps + 4 * place + 2, (two / total * 4194304.0 + 0.5).to(tl.int32), mask=inside)
        tl.store(taps + 4 * place + 3, (three / total * 4194304.0 + 0.5).to(tl.int32), mask=inside)
    tl.debug_barrier()


@triton.jit
def tent(first, tap, middle):
    """The weight of a source before the weights are made to sum to 1."""
    return tl.maximum(1.0 - tl.abs((first + tap).to(tl.float64) - middle + 0.5), 0.0)


@triton.jit
def stretched_along(band, taps, op, at, inside, height, width):
    """As `kernels.resample`, across or down."""
    across = tl.load(op + 3)
    place, size, stride = at // width, height, width
    if across == 1:
        place, size, stride = at % width, width, width * 0 + 1
    first = tl.load(taps + 4 * place, mask=inside, other=0)
    total = at * 0 + (1 << 21)
    for tap in tl.static_range(3):
        near = tl.minimum(first + tap, size - 1)
        weight = tl.load(taps + 4 * place + 1 + tap, mask=inside, other=0)
        total += tl.load(band + at + (near - place) * stride, mask=inside, other=0).to(tl.int32) * weight
    return tl.minimum(tl.maximum(total >> 22, 0), 255).to(tl.uint8)


@triton.jit
def contrastive(picture, own, taps, normal, op, channel, at, inside, plane, height, width):
    """The operations of contrastive learning, on one block of a band."""
    code = tl.load(op)
    skipped = tl.cast(channel, tl.int64) * plane
    band = picture + skipped
    if code == HUE:
        new = turned_hue(picture, channel, tl.load(op + 1), at, inside, plane)
    elif code == SOBEL:
        new = edges(band, at, inside, height, width)
    elif code == NOISE:
        new = noisy(own, normal, op, skipped + at)
    elif code == BLUR:
        new = blurred(band, op, at, inside, height, width)
    else:
        new = stretched_along(band, taps, op, at, inside, height, width)
    return new


@triton.jit
def operate(
    picture,
    target,
    source,
    table,
    normal,
    op,
    channels,
    plane,
    size,
    height,
    width,
    BLOCK: tl.constexpr,
    CONTRASTIVE: tl.constexpr,
):
    """One operation on one picture."""
    code = tl.load(op)
    word = tl.load(op + 1)
    factor = word.to(tl.float32, bitcast=True)
    taps = table.to(tl.pointer_type(tl.int32))
    mean = tl.full([], 0, tl.int32)
    if code == CONTRAST:
        mean = mean_grey(picture, channels, plane, BLOCK)
    if CONTRASTIVE and code == STRETCH:
        write_taps(taps, op, height, width, BLOCK)
    for channel in range(0, channels):
        skipped = tl.cast(channel, tl.int64) * plane
        band = picture + skipped
        if (code >= AUTO_CONTRAST) | ((code >= FIRST_TABLE) & (channel == 0)):
            write_table(table, band, op, code, mean, plane, BLOCK)
        for start in range(0, plane, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < plane
            if code == WARP:
                new = warped(band, op, at, inside, height, width)
            elif code >= FIRST_TABLE:
                new = tl.load(table + tl.load(band + at, mask=inside, other=0).to(tl.int32))
            elif code == BOX:
                new = boxed(band, op, at, inside, width)
            else:
                own = tl.load(band + at, mask=inside, other=0)
                if code == SHARPNESS:
                    new = blend(smoothed(band, at, inside, height, width), own, factor)
                elif code == COLOR:
                    new = blend(grey(picture, at, inside, channels, plane), own, factor)
                elif CONTRASTIVE and code >= HUE:
                    new = contrastive(picture, own, taps, normal, op, channel, at, inside, plane, height, width)
                else:
                    other = source + tl.load(op + 2).to(tl.int64) * size + skipped
                    new = blend(own, tl.load(other + at, mask=inside, other=0), factor)
            tl.store(target + skipped + at, new, mask=inside)


@triton.jit(do_not_specialize=["channels", "height", "width", "stride"])
def transform(
    batch,
    source,
    buffers,
    tables,
    normal,
    bounds,
    ops,
    total,
    size,
    plane,
    channels,
    height,
    width,
    table_size,
    stride,
    BLOCK: tl.constexpr,
    CONTRASTIVE: tl.constexpr,
):
    """Every picture by its operations, from the batch into the first of two buffers.

    Those of picture i begin at bounds[i * stride] and end before bounds[i * stride + 1].
    """
    row = tl.program_id(0)
    begin, end = tl.load(bounds + row * stride), tl.load(bounds + row * stride + 1)
    base = row.to(tl.int64) * size
    here = batch + base
    if begin == end:
        for start in range(0, size, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(buffers + base + at, tl.load(here + at, mask=at < size), mask=at < size)
    for k in range(begin, end):
        there = buffers + base + ((end - 1 - k) % 2).to(tl.int64) * total  # the last one writes the result
        table = tables + row.to(tl.int64) * table_size
        op = ops + k * WORDS
        operate(here, there, source, table, normal, op, channels, plane, size, height, width, BLOCK, CONTRASTIVE)
        tl.debug_barrier()
        here = there
