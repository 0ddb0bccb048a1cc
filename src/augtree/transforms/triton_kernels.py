"""All operations of a plan on a batch of pictures in one launch, for CUDA: the kernels of `kernels` in Triton.

One program transforms one picture. It walks through the picture's own list of operations, which `fused` makes, and
writes from one buffer into the other; the last operation writes the result. Every number is a whole number or goes
through single IEEE operations (the launch switches off the contraction of multiply and add), so the bytes are those
of `kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from augtree.transforms import codes

WORDS = tl.constexpr(codes.WORDS)
WARP, BOX, PAIR = (tl.constexpr(code) for code in (codes.WARP, codes.BOX, codes.PAIR))
SHARPNESS, COLOR, HUE, SOBEL = (tl.constexpr(code) for code in (codes.SHARPNESS, codes.COLOR, codes.HUE, codes.SOBEL))
FIRST_TABLE = tl.constexpr(codes.FIRST_TABLE)
SOLARIZE, POSTERIZE = tl.constexpr(codes.SOLARIZE), tl.constexpr(codes.POSTERIZE)
BRIGHTNESS, CONTRAST = tl.constexpr(codes.BRIGHTNESS), tl.constexpr(codes.CONTRAST)
AUTO_CONTRAST, EQUALIZE = tl.constexpr(codes.AUTO_CONTRAST), tl.constexpr(codes.EQUALIZE)


@triton.jit
def bytes_of(values):  # type: ignore[no-untyped-def]
    """Floats cut to 0..255 and to whole numbers."""
    return tl.minimum(tl.maximum(values, 0.0), 255.0).to(tl.int32).to(tl.uint8)


@triton.jit
def blend(degenerate, values, factor):  # type: ignore[no-untyped-def]
    """As `kernels.blend`, of whole numbers."""
    poor = degenerate.to(tl.float32)
    return bytes_of((values.to(tl.float32) - poor) * factor + poor)


@triton.jit
def grey(picture, at, inside, channels, plane):  # type: ignore[no-untyped-def]
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
def mean_grey(picture, channels, plane, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The rounded mean of the grey picture."""
    total = tl.zeros([BLOCK], tl.int64)
    for start in range(0, plane, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < plane
        total += tl.where(inside, grey(picture, at, inside, channels, plane), 0).to(tl.int64)
    return ((2 * tl.sum(total) + plane) // (2 * plane)).to(tl.int32)


@triton.jit
def stretched(band, values, plane, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
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
def equalized(band, values, plane, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
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
def write_table(table, band, op, code, mean, plane, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
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
def warped(band, op, at, inside, height, width):  # type: ignore[no-untyped-def]
    """As `kernels.warp`, which keeps a frame of one pixel around the picture."""
    x, y = at % width, at // width
    left = tl.load(op + 1) * x + (tl.load(op + 2) * y + (tl.load(op + 3) + 65536))
    top = tl.load(op + 4) * x + (tl.load(op + 5) * y + (tl.load(op + 6) + 65536))
    left, top = (left >> 16) - 1, (top >> 16) - 1
    found = (left >= 0) & (left < width) & (top >= 0) & (top < height) & inside
    fill = (at * 0 + tl.load(op + 7)).to(tl.uint8)
    return tl.where(found, tl.load(band + top * width + left, mask=found, other=0), fill)


@triton.jit
def smoothed(band, at, inside, height, width):  # type: ignore[no-untyped-def]
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
def boxed(band, op, at, inside, width):  # type: ignore[no-untyped-def]
    """As `kernels.fill_box`."""
    x, y = at % width, at // width
    covered = (x >= tl.load(op + 1)) & (y >= tl.load(op + 2)) & (x < tl.load(op + 3)) & (y < tl.load(op + 4))
    fill = (at * 0 + tl.load(op + 5)).to(tl.uint8)
    return tl.where(covered, fill, tl.load(band + at, mask=inside, other=0))


@triton.jit
def operate(picture, target, source, table, op, channels, plane, size, height, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One operation on one picture."""
    code = tl.load(op)
    factor = tl.load(op + 1).to(tl.float32, bitcast=True)
    mean = tl.full([], 0, tl.int32)
    if code == CONTRAST:
        mean = mean_grey(picture, channels, plane, BLOCK)
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
                else:
                    other = source + tl.load(op + 2).to(tl.int64) * size + skipped
                    new = blend(own, tl.load(other + at, mask=inside, other=0), factor)
            tl.store(target + skipped + at, new, mask=inside)


@triton.jit(do_not_specialize=["channels", "height", "width"])
def transform(  # type: ignore[no-untyped-def]
    batch, source, buffers, tables, first, ops, total, size, plane, channels, height, width, BLOCK: tl.constexpr
):
    """Every picture by its operations ops[first[i]:first[i + 1]], from the batch into the first of two buffers."""
    row = tl.program_id(0)
    begin, end = tl.load(first + row), tl.load(first + row + 1)
    base = row.to(tl.int64) * size
    here = batch + base
    if begin == end:
        for start in range(0, size, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(buffers + base + at, tl.load(here + at, mask=at < size), mask=at < size)
    for k in range(begin, end):
        there = buffers + base + ((end - 1 - k) % 2).to(tl.int64) * total  # the last one writes the result
        operate(here, there, source, tables + row * 256, ops + k * WORDS, channels, plane, size, height, width, BLOCK)
        tl.debug_barrier()
        here = there
