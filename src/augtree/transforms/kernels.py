"""Batched operations on uint8 pictures [n,C,H,W], each row with its own parameters, equal to Pillow to the bit.

Every number that decides a pixel is a whole number, or a float that goes through single IEEE operations (eager
mode fuses nothing), so a CPU and a GPU agree as well. Pillow computes with C floats where it blends and with
16.16 fixed-point numbers where it warps; so do these. Nothing here draws or waits for the device.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from augtree.keys import element_bits, shift


def column(values: Tensor) -> Tensor:
    """One value a row, shaped to meet pictures."""
    return values.view(-1, 1, 1, 1)


def to_bytes(values: Tensor) -> Tensor:
    """Numbers from 0 to 255 cut to bytes, through int16, which torch does several times faster on a CPU."""
    return values.to(torch.int16).to(torch.uint8)


# ---- point operations ------------------------------------------------------------------------------------------


def solarize(pictures: Tensor, threshold: Tensor) -> Tensor:
    """Turn values from the threshold (0 to 256) up into their negatives."""
    # Bit by bit: comparisons and `where` are slow on a CPU. The shift leaves all ones below the threshold.
    below = (pictures.to(torch.int16) - column(threshold).to(torch.int16)) >> 15
    return pictures ^ (~below).to(torch.uint8)


def posterize(pictures: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest bits of every value."""
    return pictures & column(torch.full_like(bits, 255) << (8 - bits)).to(torch.uint8)


def blend(degenerate: Tensor, pictures: Tensor, factor: Tensor) -> Tensor:
    """Pillow's Image.blend(degenerate, pictures, factor), whole numbers; pictures in floats are written over."""
    out = pictures.float().sub_(degenerate).mul_(column(factor)).add_(degenerate)
    return to_bytes(out.clamp_(0, 255))


def brightness(pictures: Tensor, factor: Tensor) -> Tensor:
    """Blend with black."""
    return to_bytes(pictures.float().mul_(column(factor)).clamp_(0, 255))


def grey(values: Tensor) -> Tensor:
    """[n,1,H,W]: Pillow's convert("L"), for other channel counts than 3 the rounded mean.

    Whole numbers in floats, which hold the sums exactly: 65536 * 255.5 is less than 2^24.
    """
    channels = values.shape[1]
    if channels == 3:
        total = values[:, :1] * 19595
        total.add_(values[:, 1:2], alpha=38470).add_(values[:, 2:], alpha=7471).add_(0x8000)
        return total.mul_(1 / 65536).floor_()
    total = values.to(torch.int32).sum(1, keepdim=True)
    return ((2 * total + channels) // (2 * channels)).float()


def contrast(pictures: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey."""
    count, values = pictures.shape[2] * pictures.shape[3], pictures.float()
    total = grey(values).sum((1, 2, 3), dtype=torch.float64).long()
    return blend(column((2 * total + count) // (2 * count)).float(), values, factor)


def color(pictures: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey picture."""
    values = pictures.float()
    return blend(grey(values), values, factor)


def hue(pictures: Tensor, turn: Tensor) -> Tensor:
    """Turn the colour circle by steps of 1/256, through Pillow's HSV; pictures without colours stay."""
    if pictures.shape[1] == 1:
        return pictures
    hues, saturation, value = to_hsv(pictures)
    return from_hsv((hues + turn.view(-1, 1, 1)) & 255, saturation, value)


def to_hsv(pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pillow's convert("HSV"), whole numbers [n,H,W]; floats and doubles alternate as they do there."""
    red, green, blue = pictures.int().unbind(1)
    high, low = pictures.int().amax(1), pictures.int().amin(1)
    spread = (high - low).float()
    safe = spread.clamp(min=1)
    from_red, from_green, from_blue = ((high - band).float() / safe for band in (red, green, blue))
    sector = torch.where(
        red == high,
        (from_blue - from_green).double(),
        torch.where(
            green == high,
            2.0 + from_red.double() - from_blue.double(),
            4.0 + from_green.double() - from_red.double(),
        ),
    )
    six = torch.full((), 6.0, dtype=torch.float64, device=pictures.device)
    circle = torch.fmod(sector.float().double() / six + 1.0, 1.0).float()
    hues = (circle.double() * 255.0).long().clamp_(0, 255)
    saturation = ((spread / high.clamp(min=1).float()).double() * 255.0).long().clamp_(0, 255)
    coloured = spread > 0
    return hues * coloured, saturation * coloured, high


def from_hsv(hues: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """From HSV to RGB as Pillow does it."""
    most = torch.full((), 255.0, dtype=torch.float64, device=hues.device)
    position = hues.double() * 6.0 / most
    sector = position.floor()
    part = (position - sector).float().double()
    grey_part = (saturation.double() / most).float().double()
    top = value.double()
    low = (top * (1 - grey_part) + 0.5).floor()
    falling = (top * (1 - grey_part * part) + 0.5).floor()
    rising = (top * (1 - grey_part * (1 - part)) + 0.5).floor()
    levels = torch.stack([top, rising, falling, low]).to(torch.uint8)
    # Which level each band has in each of the six sectors.
    order = torch.tensor([[0, 2, 3, 3, 1, 0], [1, 0, 0, 2, 3, 3], [3, 3, 1, 0, 0, 2]])
    which = order.to(hues.device, non_blocking=True)[:, sector.long() % 6]
    return levels.gather(0, which).transpose(0, 1)


def look_up(pictures: Tensor, table: Tensor) -> Tensor:
    """Replace every value by its entry in the table [n,C,256] of its picture and channel."""
    flat = pictures.flatten(2)
    return table.gather(2, flat.long()).view_as(pictures)


def auto_contrast(pictures: Tensor) -> Tensor:
    """Stretch every channel to 0..255."""
    low = pictures.amin((2, 3)).double().unsqueeze(2)
    high = pictures.amax((2, 3)).double().unsqueeze(2)
    # Divided tensor by tensor: torch turns division of or by a Python number into a product with its reciprocal.
    scale = torch.full_like(low, 255) / (high - low)
    values = torch.arange(256, device=pictures.device, dtype=torch.float64)
    stretched = (values * scale + -low * scale).clamp_(0, 255)
    return look_up(pictures, torch.where(high > low, stretched, values).to(torch.uint8))


def histogram(pictures: Tensor) -> Tensor:
    """[n,C,256] counts."""
    if pictures.device.type == "cpu" and pictures.shape[2] * pictures.shape[3] >= 4096:
        planes = pictures.reshape(-1, pictures.shape[2] * pictures.shape[3])
        return torch.stack([plane.bincount(minlength=256) for plane in planes]).view(*pictures.shape[:2], 256)
    values = pictures.flatten(2).long()
    counts = torch.zeros(*pictures.shape[:2], 256, dtype=torch.int64, device=pictures.device)
    return counts.scatter_add_(2, values, torch.ones((), dtype=torch.int64, device=values.device).expand_as(values))


def equalize(pictures: Tensor) -> Tensor:
    """Flatten every channel's histogram."""
    counts = histogram(pictures)
    values = torch.arange(256, device=pictures.device)
    last = counts.gather(2, (values * (counts > 0)).amax(2, keepdim=True))
    step = (pictures.shape[2] * pictures.shape[3] - last) // 255
    # Whole numbers below 2^26 divide exactly enough in doubles, which torch does much faster than in int64.
    table = ((step >> 1) + counts.cumsum(2) - counts).double().div_(step.clamp(min=1).double()).floor_()
    return look_up(pictures, torch.where(step > 0, table.clamp_(max=255), values.double()).to(torch.uint8))


# ---- neighbourhoods --------------------------------------------------------------------------------------------


def smooth(pictures: Tensor) -> Tensor:
    """Pillow's ImageFilter.SMOOTH: weights 1 and, in the middle, 5, over 13; the border stays. Floats."""
    if min(pictures.shape[2:]) < 3:
        return pictures.float()
    # Summed over the flat memory, where neighbours of border pixels are wrong ones: those are put back below.
    flat, width = pictures.to(torch.int16).view(-1), pictures.shape[3]
    across = (flat[2:] + flat[:-2]).add_(flat[1:-1])
    total = (across[2 * width :] + across[: -2 * width]).add_(across[width:-width])
    total.add_(flat[width + 1 : -width - 1], alpha=4)
    out = torch.empty(pictures.shape, device=pictures.device)
    # A thirteenth never falls on a half, so rounding is the same with whatever float errors are made on the way.
    inner = out.view(-1)[width + 1 : -width - 1].copy_(total)
    inner.add_(6.5).mul_(1 / 13).floor_()
    for edge in (slice(0, 1), slice(-1, None)):
        out[:, :, edge], out[..., edge] = pictures[:, :, edge], pictures[..., edge]
    return out


def sharpness(pictures: Tensor, factor: Tensor) -> Tensor:
    """Blend with the smoothed picture."""
    return blend(smooth(pictures), pictures, factor)


def sobel(pictures: Tensor) -> Tensor:
    """The length of Sobel's gradient in every channel, cut at 255; the border is continued."""
    padded = F.pad(pictures.float(), (1, 1, 1, 1), mode="replicate")
    down = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    across = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    x = down[..., 2:] - down[..., :-2]
    y = across[:, :, 2:] - across[:, :, :-2]
    return to_bytes((x * x + y * y).sqrt_().clamp_(max=255))


def box_blur(values: Tensor, weights: Tensor) -> Tensor:
    """One pass of Pillow's box blur along the last dimension: weights [n, reach] by distance, in 24 bits.

    Sums stay below 2^32: in int32 they wrap around, and the highest 8 bits, which are the result, are right.
    """
    size, reach = values.shape[-1], weights.shape[1] - 1
    before, after = (edge.expand(*values.shape[:-1], reach) for edge in (values[..., :1], values[..., -1:]))
    padded = torch.cat([before, values, after], dim=-1)
    total = values * column(weights[:, 0]) + (1 << 23)
    for far in range(1, reach + 1):
        sides = padded[..., reach - far : reach - far + size] + padded[..., reach + far : reach + far + size]
        total.addcmul_(sides, column(weights[:, far]))
    return total.bitwise_right_shift_(24).bitwise_and_(255)


def gaussian_blur(pictures: Tensor, weights: Tensor) -> Tensor:
    """Pillow's ImageFilter.GaussianBlur: three box blurs across, three down."""
    values, weights = pictures.int(), weights.int()
    for _ in range(2):
        for _ in range(3):
            values = box_blur(values, weights)
        values = values.transpose(2, 3)
    return values.to(torch.uint8)


def add_noise(pictures: Tensor, states: Tensor, sigma: Tensor) -> Tensor:
    """Add normal noise, a draw a value, from a table so that every device draws the same."""
    numbers = torch.arange(pictures[0].numel(), device=pictures.device).view(1, *pictures.shape[1:])
    which = shift(element_bits(column(states), numbers), 48) & 0x3FFF
    noise = normal_table(pictures.device)[which].mul_(column(sigma))
    return to_bytes(noise.add_(pictures).round_().clamp_(0, 255))


def normal_table(device: torch.device) -> Tensor:
    """The normal distribution at the middles of 2^14 equal steps of probability."""
    if device not in _NORMAL:
        steps = (torch.arange(1 << 14, dtype=torch.float64) + 0.5) / (1 << 14)
        _NORMAL[device] = torch.special.ndtri(steps).float().to(device)
    return _NORMAL[device]


_NORMAL: dict[torch.device, Tensor] = {}


# ---- geometry --------------------------------------------------------------------------------------------------


def warp(pictures: Tensor, coefficients: Tensor, fill: Tensor) -> Tensor:
    """Take each pixel from where an affine map, in 16.16 fixed-point numbers, says; nearest neighbour."""
    count, channels, height, width = pictures.shape
    a = coefficients.to(torch.int32).view(count, 6, 1, 1)
    xs = torch.arange(width, dtype=torch.int32, device=pictures.device)
    ys = torch.arange(height, dtype=torch.int32, device=pictures.device).view(-1, 1)
    # A frame of the fill colour stands for everything outside, hence one more in each direction.
    x = (a[:, 0] * xs + (a[:, 1] * ys + (a[:, 2] + 65536))).bitwise_right_shift_(16).clamp_(0, width + 1)
    y = (a[:, 3] * xs + (a[:, 4] * ys + (a[:, 5] + 65536))).bitwise_right_shift_(16).clamp_(0, height + 1)
    source = y.mul_(width + 2).add_(x).long().view(count, 1, -1).expand(-1, channels, -1)
    framed = column(fill).to(torch.uint8).expand(count, channels, height + 2, width + 2).contiguous()
    framed[:, :, 1:-1, 1:-1] = pictures
    return framed.flatten(2).gather(2, source).view_as(pictures)


def mirror(pictures: Tensor) -> Tensor:
    """Left becomes right."""
    return pictures.flip(3)


def upend(pictures: Tensor) -> Tensor:
    """Top becomes bottom."""
    return pictures.flip(2)


def half_turn(pictures: Tensor) -> Tensor:
    """Turn by two quarters."""
    return pictures.flip(2, 3)


def quarter_turn(pictures: Tensor, quarters: Tensor) -> Tensor:
    """Turn counterclockwise by this many quarters."""
    quarters = column(quarters)
    half = torch.where(quarters >= 2, pictures.flip(2, 3), pictures)
    return torch.where(quarters % 2 == 1, half.transpose(2, 3).flip(2), half)


def resize(pictures: Tensor, left: Tensor, across: Tensor, top: Tensor, down: Tensor) -> Tensor:
    """Pillow's resize with a box: first sources [n,out] and weights [n,out,taps] (22 bits), across and then down.

    Pillow 13 goes down first where the height shrinks much more than the width; that may differ by one.
    """
    wide = resample(pictures.transpose(2, 3).contiguous(), left, across)
    return resample(wide.transpose(2, 3).contiguous(), top, down)


def stretch(pictures: Tensor, box: Tensor) -> Tensor:
    """Stretch a box (left, right, top, bottom) to the size of the picture, as `resize`."""
    left, right, top, bottom = box.unbind(1)
    across, down = bilinear(pictures.shape[3], left, right), bilinear(pictures.shape[2], top, bottom)
    return resize(pictures, *across, *down)


def bilinear(size: int, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """`crops.bilinear` on the device, for stretching parts of a side to the whole: [n,size] and [n,size,3]."""
    scale = (stop - start).double()[:, None] / torch.full_like(start, size).double()[:, None]
    middle = start[:, None] + (torch.arange(size, device=start.device) + 0.5) * scale
    first = (middle - 1 + 0.5).long().clamp_(min=0)
    count = (middle + 1 + 0.5).long().clamp_(max=size) - first
    taps = torch.arange(3, device=start.device)
    distance = (taps + first[..., None] - middle[..., None] + 0.5).abs_()
    weights = (1 - distance).clamp_(min=0) * (taps < count[..., None])
    total = (weights[..., :1] + weights[..., 1:2]) + weights[..., 2:]
    return first, (weights / total * (1 << 22) + 0.5).long()


def resample(pictures: Tensor, first: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums of neighbouring lines."""
    count, channels, size, length = pictures.shape
    flat = pictures.view(-1, length)
    planes = torch.arange(0, count * channels * size, size, device=pictures.device).view(count, channels, 1)
    shape = (count, channels, first.shape[1], length)
    total = torch.full(shape, 1 << 21, dtype=torch.int32, device=pictures.device)
    for tap, weight in enumerate(weights.to(torch.int32).unbind(2)):
        if not pictures.is_cuda and not weight.any():
            continue
        source = (first + tap).clamp_(max=size - 1).unsqueeze(1) + planes
        lines = flat.index_select(0, source.view(-1)).view(shape).to(torch.int32)
        total.addcmul_(lines, weight[:, None, :, None])
    return total.bitwise_right_shift_(22).clamp_(0, 255).to(torch.uint8)


def fill_box(pictures: Tensor, box: Tensor, fill: Tensor) -> Tensor:
    """Paint a box (left, top, right, bottom; right and bottom outside) in the fill value."""
    left, top, right, bottom = (column(edge) for edge in box.unbind(1))
    xs = torch.arange(pictures.shape[3], device=pictures.device)
    ys = torch.arange(pictures.shape[2], device=pictures.device).view(-1, 1)
    inside = ((xs >= left) & (xs < right)).to(torch.uint8) * ((ys >= top) & (ys < bottom)).to(torch.uint8)
    return pictures + (column(fill).to(torch.uint8) - pictures) * inside  # modulo 256


def pair(pictures: Tensor, partners: Tensor, weight: Tensor) -> Tensor:
    """Blend each picture with its partner."""
    return blend(pictures.float(), partners, weight)


def grey_out(pictures: Tensor) -> Tensor:
    """The grey picture in every channel."""
    return grey(pictures.float()).to(torch.uint8).expand_as(pictures)


def normalize(pictures: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Floats with about zero mean and unit deviation, from bytes or from floats within [0,1]."""
    floats = pictures if pictures.is_floating_point() else pictures.float() / pictures.new_full((), 255).float()
    return (floats - mean.view(1, -1, 1, 1)) / deviation.view(1, -1, 1, 1)
