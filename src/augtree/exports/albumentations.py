"""Policies as Albumentations pipelines with the same probabilities; what has no counterpart is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from augtree.errors import printable
from augtree.exports.modules import refuse
from augtree.exports.steps import in_docstring, parts_of
from augtree.keys import Key
from augtree.policies import Forest, Tree
from augtree.transforms import Chain, OneOf, Policy, automatic, crops, geometry, images, simclr
from augtree.transforms.base import Identity, Transform
from augtree.transforms.operation import BIN, Operation
from augtree.version import __version__

INDENT = " " * 4
LINE = 118
NEAREST = {"interpolation": "cv2.INTER_NEAREST", "border_mode": "cv2.BORDER_CONSTANT"}


@dataclass(frozen=True)
class Element:
    """A part of a pipeline: a transform, or `OneOf` or `Sequential` of others."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """Values of keywords, in code."""
    children: tuple[Element, ...] = ()
    p: float = 1.0

    def at(self, p: float) -> Element:
        """The element with a probability; as a child of OneOf, its share."""
        if p == 1:
            return self
        return replace(self, p=p) if self.p == 1 else Element("Sequential", children=(self,), p=p)

    def lines(self, indent: str = "") -> list[str]:
        """The element as code."""
        arguments = [f"{name}={in_code(value)}" for name, value in {**self.arguments, "p": self.p}.items()]
        line = f"{indent}A.{self.name}({', '.join(arguments)}),"
        if not self.children and len(line) <= LINE:
            return [line]
        inner = [line for child in self.children for line in child.lines(indent + 2 * INDENT)]
        inner = [f"{indent}{INDENT}[", *inner, f"{indent}{INDENT}],"] if inner else []
        return [f"{indent}A.{self.name}(", *inner, *(f"{indent}{INDENT}{each}," for each in arguments), f"{indent}),"]


def in_code(value: Any) -> str:
    """A value in code, its numbers to twelve digits."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{in_code(key)}: {in_code(each)}' for key, each in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(in_code, value))})"
    if isinstance(value, str):
        return value if value.startswith("cv2.") else f'"{value}"'
    return repr(round(value, 12) + 0.0 if isinstance(value, float) else value)


def albumentations_source(policy: Policy) -> str:
    """The policy as a module with a function that makes the pipeline."""
    refuse("Albumentations", (lacking(step) for step in parts_of(policy) if next(counterpart(step), None) is None))
    text = policy.to_text() if isinstance(policy, Tree | Forest) else str(policy)
    trees = {name: member.tree for name, member in policy.groups.items()} if isinstance(policy, Forest) else {}
    shown = [f"    {line}".rstrip() for line in in_docstring(text).splitlines()]
    usage = ["    augment = policy()", '    image = augment(image=image)["image"]  # uint8 [H,W,C]']
    if trees:
        usage.append('    image = policies()[group](image=image)["image"]  # by the tree of the group')
    head = [
        f'"""An augmentation policy, exported by augtree {printable(__version__)}; it needs Albumentations 2.',
        *["", *shown, "", *usage],
        '"""',
        *["", "import albumentations as A", "import cv2  # noqa: F401"],
    ]
    functions = [making("policy", "The pipeline", pipeline(policy))]
    if trees:
        by_group = [f"{2 * INDENT}{name!a}: tree_{i}(seed)," for i, name in enumerate(trees)]
        doc = f'{INDENT}"""A pipeline for each group."""'
        many = ["def policies(seed: int | None = None) -> dict[str, A.Compose]:", doc, f"{INDENT}return {{"]
        functions.append("\n".join([*many, *by_group, f"{INDENT}}}"]))
        functions += [
            making(f"tree_{i}", "The tree of a group", pipeline(tree)) for i, tree in enumerate(trees.values())
        ]
    return "\n\n\n".join(["\n".join(head), *functions]) + "\n"


def making(name: str, doc: str, elements: Sequence[Element]) -> str:
    """A function that makes a pipeline."""
    lines = [line for element in elements for line in element.lines(3 * INDENT)]
    body = [
        "return A.Compose(",
        f"{INDENT}[",
        *(line[len(INDENT) :] for line in lines),
        f"{INDENT}],",
        f"{INDENT}seed=seed,",
        ")",
    ]
    head = [f"def {name}(seed: int | None = None) -> A.Compose:", f'{INDENT}"""{doc}."""']
    return "\n".join([*head, *(f"{INDENT}{line}" for line in body)])


# ---- structure


def pipeline(policy: Policy) -> list[Element]:
    """A policy as elements, one after the other."""
    if isinstance(policy, Forest):
        members = policy.groups.values()
        return one_of((pipeline(member.tree), member.weight) for member in members)
    if isinstance(policy, Tree):
        return tree_pipeline(policy)
    if isinstance(policy, Chain):
        return [together(pipeline(step)).at(p) for step, p in policy.pairs if p and not is_nothing(step)]
    if isinstance(policy, OneOf):
        pairs = zip((choice for choice, _ in policy.pairs), policy.shares, strict=True)
        return one_of((pipeline(choice), share) for choice, share in pairs)
    return list(counterpart(policy)) if isinstance(policy, Transform) and not is_nothing(policy) else []


def is_nothing(step: Transform) -> bool:
    """Whether a transform leaves everything as it is."""
    return isinstance(step, Identity) or (isinstance(step, Tree) and not step.nodes)


def tree_pipeline(tree: Tree) -> list[Element]:
    """The root with its probability, then the way down."""
    if not tree.nodes:
        return []
    root = tree.nodes[1]
    first = [together(pipeline(root.transform)).at(root.p)] if root.p else []
    return [*first, *below(tree, 1)]


def below(tree: Tree, index: int) -> list[Element]:
    """One of the two children of a node, by their probabilities; a child that is missing is NoOp."""
    left = tree.p_left(index)
    if left is None:
        return []
    return one_of((node_pipeline(tree, child), p) for child, p in ((2 * index, left), (2 * index + 1, 1 - left)))


def node_pipeline(tree: Tree, index: int) -> list[Element]:
    """A node below the root, and what comes after it."""
    node = tree.nodes.get(index)
    return [] if node is None else [*pipeline(node.transform), *below(tree, index)]


def one_of(choices: Iterable[tuple[list[Element], float]]) -> list[Element]:
    """One of several, by their shares."""
    children = [(together(elements), share) for elements, share in choices if share > 0]
    if len(children) == 1:
        return [children[0][0]]
    return [Element("OneOf", children=tuple(child.at(share) for child, share in children))]


def together(elements: Sequence[Element]) -> Element:
    """Elements as one."""
    if not elements:
        return Element("NoOp")
    return elements[0] if len(elements) == 1 else Element("Sequential", children=tuple(elements))


# ---- operations


def lacking(step: Transform) -> str:
    """A transform that Albumentations has not; with those of its operations that it has not."""
    if not isinstance(step, automatic.Drawn):
        return str(step)
    kinds = [kind for choice, *_ in step.choices(Key.of(0, [0])) for kind in choice.kinds]
    names = dict.fromkeys(kind.__name__ for kind in kinds if issubclass(kind, WITHOUT_COUNTERPART))
    return f"{step} ({', '.join(names)})"


WITHOUT_COUNTERPART = (geometry.ShearX, geometry.ShearY, images.Sharpness)


def counterpart(step: Transform) -> Iterator[Element]:
    """What Albumentations has for a transform, one after the other; nothing where it has none."""
    if type(step) in SIMPLE:
        yield SIMPLE[type(step)]
    elif isinstance(step, Operation):
        yield from of_operation(step, max(step.magnitude - BIN, 0.0))
    match step:
        case crops.Flip(p=p):
            yield Element("HorizontalFlip", p=p)
        case crops.VerticalFlip(p=p):
            yield Element("VerticalFlip", p=p)
        case crops.PadCrop(pad=pad, fill=fill):
            shift = {"x": (-pad, pad), "y": (-pad, pad)}
            yield Element("Affine", {"translate_px": shift, **NEAREST, "fill": fill})
        case crops.Normalize(mean=mean, std=std):
            yield Element(
                "Normalize", {"mean": mean if len(mean) > 1 else mean[0], "std": std if len(std) > 1 else std[0]}
            )
        case simclr.GaussianNoise(sigma=sigma):
            yield Element("GaussNoise", {"std_range": sigma})
        case simclr.GaussianBlur(sigma=sigma):
            yield Element("GaussianBlur", {"sigma_limit": sigma, "blur_limit": 0})
        case simclr.ColorDistortion(strength=strength, jitter_p=jitter, grey_p=grey):
            reach, circle = 0.8 * strength, 0.2 * strength
            factors = dict.fromkeys(("brightness", "contrast", "saturation"), (1 - reach, 1 + reach))
            yield Element("ColorJitter", {**factors, "hue": (-circle, circle)}, p=jitter)
            yield Element("ToGray", p=grey)


TURNS = (
    Element("Sequential", children=(Element("Transpose"), Element("VerticalFlip"))),
    Element("Sequential", children=(Element("HorizontalFlip"), Element("VerticalFlip"))),
    Element("Sequential", children=(Element("Transpose"), Element("HorizontalFlip"))),
)
"""By 90, 180 and 270 degrees, counterclockwise."""
SIMPLE: dict[type[Transform], Element] = {
    images.AutoContrast: Element("AutoContrast", {"method": "pil"}),
    images.Equalize: Element("Equalize", {"mode": "pil"}),
    images.Invert: Element("InvertImg"),
    crops.QuarterTurn: Element("RandomRotate90"),
    simclr.Rotation: Element("OneOf", children=TURNS),
}


def of_operation(step: Operation, low: float) -> Iterator[Element]:
    """One of AutoAugment's operations, at levels from `low` to the magnitude."""
    high = step.magnitude
    filled = {**NEAREST, "fill": step.arguments().get("fill")}
    match step:
        case geometry.Rotate():
            yield both_ways(
                lambda a, b: Element("Rotate", {"limit": (a, b), **filled}), step.limit * low, step.limit * high
            )
        case geometry.TranslateX() | geometry.TranslateY():
            axis = "x" if isinstance(step, geometry.TranslateX) else "y"

            def moved(a: float, b: float) -> Element:
                shares = {"x": (0.0, 0.0), "y": (0.0, 0.0), axis: (a, b)}
                return Element("Affine", {"translate_percent": shares, **filled})

            yield both_ways(moved, step.limit * low, step.limit * high)
        case images.Brightness() | images.Contrast() | images.Color():
            neutral = {"brightness": (1.0, 1.0), "contrast": (1.0, 1.0), "saturation": (1.0, 1.0), "hue": (0.0, 0.0)}
            what = {"Color": "saturation"}.get(step.name, step.name.lower())
            yield both_ways(
                lambda a, b: Element("ColorJitter", {**neutral, what: (1 + a, 1 + b)}),
                step.limit * low,
                step.limit * high,
            )
        case images.Solarize():
            yield solarized(256 * (1 - high), 256 * (1 - low))
        case images.Posterize():
            yield from one_of(posterized(step.limit * low, step.limit * high))


def both_ways(make: Any, low: float, high: float) -> Element:
    """An element for values on either side of 0, both equally likely."""
    return Element("OneOf", children=(make(-high, -low).at(0.5), make(low, high).at(0.5)))


def solarized(low: float, high: float) -> Element:
    """Solarize from the whole part of a number in [low, high) on; Albumentations rounds its thresholds up."""
    inverted = max(0.0, 1 - low) / (high - low)  # the share of numbers below 1, from which all is inverted
    rest = Element("Solarize", {"threshold_range": (max(low - 1, 0.0) / 255, (high - 1) / 255)})
    return one_of([([Element("InvertImg")], inverted), ([rest], 1 - inverted)])[0]


def posterized(low: float, high: float) -> Iterator[tuple[list[Element], float]]:
    """For each number of bits that go, rounded from [low, high], what is done and its share."""
    for bits in range(round(low), round(high) + 1):
        share = max(0.0, min(bits + 0.5, high) - max(bits - 0.5, low)) / (high - low)
        yield ([Element("Posterize", {"num_bits": (8 - bits, 8 - bits)})] if bits else []), share
