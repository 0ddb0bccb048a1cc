"""Transforms: random functions on a batch of pictures or graphs, each with a name and perhaps a magnitude.

geometry       ShearX ShearY TranslateX TranslateY Rotate        (geometry, tones, areas: AutoAugment's operations)
tones          AutoContrast Invert Equalize Solarize Posterize Contrast Color Brightness Sharpness
areas          Cutout SamplePairing
crops, flips   Flip VerticalFlip QuarterTurn PadCrop RandomCrop ResizedCrop Normalize
contrastive    Rotation ColorDistortion Sobel GaussianNoise GaussianBlur
graphs         DropNodes PermuteEdges Subgraph MaskNodes GraphCL
composites     Chain OneOf RandAugment RandGeometry RandTones TrivialAugment TrivialGeometry TrivialTones AutoAugment
your own       wrap (a function), Transform (a base class)
lists of them  Space; `spaces.images`, `spaces.graphs`, `spaces.simclr`, `spaces.auto`
"""

from augtree.transforms.automatic import (
    AutoAugment,
    RandAugment,
    RandGeometry,
    RandTones,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
)
from augtree.transforms.base import Identity, Policy, Transform
from augtree.transforms.composites import Chain, OneOf
from augtree.transforms.crops import Flip, Normalize, PadCrop, QuarterTurn, RandomCrop, ResizedCrop, VerticalFlip
from augtree.transforms.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY
from augtree.transforms.graphs import DropNodes, GraphCL, MaskNodes, PermuteEdges, Subgraph
from augtree.transforms.images import (
    AutoContrast,
    Brightness,
    Color,
    Contrast,
    Cutout,
    Equalize,
    Invert,
    Posterize,
    SamplePairing,
    Sharpness,
    Solarize,
)
from augtree.transforms.simclr import ColorDistortion, GaussianBlur, GaussianNoise, Rotation, Sobel
from augtree.transforms.spaces import Space
from augtree.transforms.wrap import Wrapped, wrap

_CLASSES: tuple[type[Transform], ...] = (
    *(Identity, Chain, OneOf, RandAugment, TrivialAugment, AutoAugment),
    *(RandGeometry, RandTones, TrivialGeometry, TrivialTones),
    *(ShearX, ShearY, TranslateX, TranslateY, Rotate, AutoContrast, Invert, Equalize, Solarize, Posterize),
    *(Contrast, Color, Brightness, Sharpness, Cutout, SamplePairing),
    *(RandomCrop, Rotation, ColorDistortion, Sobel, GaussianNoise, GaussianBlur),
    *(Flip, VerticalFlip, QuarterTurn, PadCrop, ResizedCrop, Normalize),
    *(DropNodes, PermuteEdges, Subgraph, MaskNodes, GraphCL),
)
BUILT_IN: dict[str, type[Transform]] = {cls.__name__: cls for cls in _CLASSES}
"""The transforms that policy files may name without `transforms=[...]`."""

# fmt: off
__all__ = [
    "BUILT_IN", "AutoAugment", "AutoContrast", "Brightness", "Chain", "Color", "ColorDistortion", "Contrast",
    "Cutout", "DropNodes", "Equalize", "Flip", "GaussianBlur", "GaussianNoise", "GraphCL", "Identity", "Invert",
    "MaskNodes", "Normalize", "OneOf", "PadCrop", "PermuteEdges", "Policy", "Posterize", "QuarterTurn", "RandAugment",
    "RandGeometry", "RandTones", "RandomCrop", "ResizedCrop", "Rotate", "Rotation", "SamplePairing", "Sharpness",
    "ShearX", "ShearY", "Sobel", "Solarize", "Space", "Subgraph", "Transform", "TranslateX", "TranslateY",
    "TrivialAugment", "TrivialGeometry", "TrivialTones", "VerticalFlip", "Wrapped", "wrap",
]
# fmt: on
