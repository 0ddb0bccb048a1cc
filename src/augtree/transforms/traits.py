"""What a candidate is made of, as far as a search can find it harmful: geometry, tones, or something by its name."""

from __future__ import annotations

from collections.abc import Iterable

from augtree.transforms import automatic, graphs, images, simclr
from augtree.transforms.base import Identity, Transform
from augtree.transforms.composites import Chain, OneOf
from augtree.transforms.crops import RandomCrop
from augtree.transforms.geometry import Geometry

GEOMETRY, TONES, STRONG = "geometry", "tones", "strong ratios"
EVERY_SAMPLE = "samples left alone"
"""The factor "augment every sample"; without it, half of the samples stay unaugmented."""
SYMMETRIES = ("Flip", "VerticalFlip", "QuarterTurn")
"""Basics that lead from a picture to another orientation, which data either bear or do not."""
STRONGER_THAN = 0.25
"""Ratios of graphs from here on are strong."""
TRAIT_WORDS = {
    "Flip": "flips left-right",
    "VerticalFlip": "flips up-down",
    "QuarterTurn": "quarter turns",
    "PadCrop": "crops",
    GEOMETRY: "geometry (shears, shifts, small turns)",
    TONES: "tones (brightness, colours, contrast, ...)",
    STRONG: "strong ratios",
    EVERY_SAMPLE: "augmenting every sample",
}
"""What factors are called in sentences."""
TONAL = (
    *(automatic.RandTones, automatic.TrivialTones, simclr.ColorDistortion),
    *(images.Enhancement, images.Plain, images.Solarize, images.Posterize),
)
GEOMETRIC = (automatic.RandGeometry, automatic.TrivialGeometry, Geometry, RandomCrop, simclr.Rotation)
BOTH = (automatic.RandAugment, automatic.TrivialAugment, automatic.AutoAugment)


def traits(transform: Transform) -> frozenset[str]:
    """The traits of a transform and of all that it is made of.

    >>> from augtree.transforms import Chain, Cutout, RandTones, TrivialAugment
    >>> sorted(traits(TrivialAugment())), sorted(traits(Chain([RandTones(), Cutout(1.0)])))
    (['geometry', 'tones'], ['Cutout', 'tones'])
    """
    if isinstance(transform, Identity):
        return frozenset()
    if isinstance(transform, Chain | OneOf):
        return union(part for part, weight in transform.pairs if weight > 0)
    if hasattr(transform, "nodes"):  # a tree
        return union(node.transform for node in transform.nodes.values())
    if isinstance(transform, GEOMETRIC):
        return frozenset({GEOMETRY})
    if isinstance(transform, TONAL):
        return frozenset({TONES})
    if isinstance(transform, BOTH):
        return frozenset({GEOMETRY, TONES})
    strong = transform.domain == "graph" and (transform.magnitude or 0) > STRONGER_THAN
    names = [kind.__name__ for kind in graphs.FOUR] if isinstance(transform, graphs.GraphCL) else [transform.name]
    return frozenset([*names, *([STRONG] if strong else [])])


def union(parts: Iterable[Transform]) -> frozenset[str]:
    """The traits of several."""
    return frozenset().union(*(traits(part) for part in parts))
