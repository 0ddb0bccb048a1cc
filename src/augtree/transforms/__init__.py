"""Transforms: random functions on a batch of pictures or graphs, each with a name and perhaps a magnitude."""

from augtree.transforms.base import Identity, Policy, Transform
from augtree.transforms.composites import (
    AutoAugment,
    Chain,
    OneOf,
    RandAugment,
    RandGeometry,
    RandTones,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
)
from augtree.transforms.crops import Flip, Normalize, PadCrop, QuarterTurn, RandomCrop, ResizedCrop, VerticalFlip
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
    Rotate,
    SamplePairing,
    Sharpness,
    ShearX,
    ShearY,
    Solarize,
    TranslateX,
    TranslateY,
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
"""The transforms that files may name without more ado."""

__all__ = [
    "BUILT_IN",
    "AutoAugment",
    "AutoContrast",
    "Brightness",
    "Chain",
    "Color",
    "ColorDistortion",
    "Contrast",
    "Cutout",
    "DropNodes",
    "Equalize",
    "Flip",
    "GaussianBlur",
    "GaussianNoise",
    "GraphCL",
    "Identity",
    "Invert",
    "MaskNodes",
    "Normalize",
    "OneOf",
    "PadCrop",
    "PermuteEdges",
    "Policy",
    "Posterize",
    "QuarterTurn",
    "RandAugment",
    "RandGeometry",
    "RandTones",
    "RandomCrop",
    "ResizedCrop",
    "Rotate",
    "Rotation",
    "SamplePairing",
    "Sharpness",
    "ShearX",
    "ShearY",
    "Sobel",
    "Solarize",
    "Space",
    "Subgraph",
    "Transform",
    "TranslateX",
    "TranslateY",
    "TrivialAugment",
    "TrivialGeometry",
    "TrivialTones",
    "VerticalFlip",
    "Wrapped",
    "wrap",
]
