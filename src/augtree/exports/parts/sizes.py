"""Parameters of operations that depend on the size of a picture, for tensors and for Pillow images alike."""

from __future__ import annotations

import math

from augtree.exports.parts.draws import Draws, between


def random_box(
    draws: Draws, width: int, height: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a random part of a picture."""
    area = height * width * between(*scale, draws.uniform(0))
    form = math.exp(between(math.log(ratio[0]), math.log(ratio[1]), draws.uniform(1)))
    across = min(max(round(math.sqrt(area * form)), 1), width)
    down = min(max(round(math.sqrt(area / form)), 1), height)
    left, top = draws.below(width - across + 1, 2), draws.below(height - down + 1, 3)
    return left, top, left + across, top + down


def covered_box(draws: Draws, width: int, height: int, share: float) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a square that is centred anywhere in a picture."""
    side = max(round(share * min(height, width)), 1)
    left, top = draws.below(width, 2) - side // 2, draws.below(height, 3) - side // 2
    return left, top, left + side, top + side


def random_quarters(draws: Draws, width: int, height: int) -> int:
    """How many quarter turns: 0 to 3, or 0 and 2 for pictures that are not square."""
    return draws.below(4) if width == height else 2 * draws.below(2)


def random_turn(draws: Draws, width: int, height: int) -> int:
    """90, 180 or 270 degrees, or 180 for pictures that are not square."""
    return 90 * (1 + draws.below(3)) if width == height else 180
