"""A policy as Python code: nested conditions for trees, a line for each operation.

The code calls operations by name (`rotate`, `adjust_color`, ...), which `parts` has for tensors, for Pillow images
and for graphs; draws are made at the same places and with the same counters as in augtree, so the same seed gives the
same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from augtree.errors import ArgumentError, printable
from augtree.policies import Forest, Tree
from augtree.transforms import BUILT_IN, Chain, OneOf, automatic, crops, geometry, graphs, images, simclr
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.base import Identity, Policy, Transform
from augtree.transforms.operation import Operation

Lines = list[str]


# ---- operations


@dataclass(frozen=True)
class Strength:
    """How strong an operation is, in code: its level, its sign, and the parameter at level 1."""

    level: str
    sign: str
    limit: Callable[[type[Operation]], str]


def at_magnitude(kind: type[Operation], magnitude: float) -> Strength:
    """A level drawn for a candidate."""
    return Strength(f"level(draws, {magnitude!r})", "sign(draws)", lambda _: repr(kind.limit))


def operation(kind: type[Operation], strength: Strength, arguments: dict[str, Any]) -> str:
    """The call of one of AutoAugment's operations."""
    name, level, limit = CALLS[kind], strength.level, strength.limit(kind)
    if issubclass(kind, geometry.Geometry):
        return f"{name}(sample, {limit} * {level} * {strength.sign}, {arguments['fill']})"
    if issubclass(kind, images.Enhancement):
        return f"{name}(sample, 1 + {limit} * {level} * {strength.sign})"
    if kind is images.Cutout:
        return f"{name}(sample, draws, {arguments['share']!r} * {level}, {arguments['fill']})"
    special = {
        images.Invert: "sample, 0",
        images.Solarize: f"sample, math.floor({limit} * (1 - {level}))",
        images.Posterize: f"sample, 8 - round({limit} * {level})",
        images.SamplePairing: f"sample, draws, {limit} * {level}",
    }
    return f"{name}({special.get(kind, 'sample')})"


CALLS: dict[type[Transform], str] = {
    geometry.ShearX: "shear_x",
    geometry.ShearY: "shear_y",
    geometry.TranslateX: "translate_x",
    geometry.TranslateY: "translate_y",
    geometry.Rotate: "rotate",
    images.AutoContrast: "autocontrast",
    images.Invert: "solarize_from",
    images.Equalize: "equalize_histogram",
    images.Solarize: "solarize_from",
    images.Posterize: "keep_bits",
    images.Contrast: "adjust_contrast",
    images.Color: "adjust_color",
    images.Brightness: "adjust_brightness",
    images.Sharpness: "adjust_sharpness",
    images.Cutout: "cutout",
    images.SamplePairing: "sample_pairing",
    graphs.DropNodes: "drop_nodes",
    graphs.MaskNodes: "mask_nodes",
    graphs.PermuteEdges: "permute_edges",
    graphs.Subgraph: "subgraph",
}
"""What the functions in `parts` are called."""


def plain_call(step: Transform) -> str | None:
    """The call of a transform that is no composite and has no strength."""
    match step:
        case simclr.Rotation():
            return "rotation(sample, draws)"
        case simclr.Sobel():
            return "edges(sample)"
        case simclr.GaussianNoise(sigma=(low, high)):
            return f"gaussian_noise(sample, draws, {low!r}, {high!r})"
        case simclr.GaussianBlur(sigma=(low, high)):
            return f"blur(sample, between({low!r}, {high!r}, draws.uniform()))"
        case simclr.ColorDistortion(strength=strength, jitter_p=jitter, grey_p=grey):
            return f"color_distortion(sample, draws, {strength!r}, {jitter!r}, {grey!r})"
        case crops.QuarterTurn():
            return "quarter_turn(sample, draws)"
        case crops.PadCrop(pad=pad, fill=fill):
            return f"pad_and_crop(sample, draws, {pad}, {fill})"
        case crops.RandomCrop(scale=scale, ratio=ratio):
            return f"random_crop(sample, draws, {scale!r}, {ratio!r})"
        case crops.ResizedCrop(scale=scale, ratio=ratio, size=size):
            both = size if isinstance(size, tuple) else (size, size)
            return f"random_crop(sample, draws, {scale!r}, {ratio!r}, {both!r})"
        case graphs.Subgraph(magnitude=ratio, length=length):
            return f"subgraph(sample, draws, {ratio!r}, {length})"
        case graphs.GraphTransform(magnitude=ratio):
            return f"{CALLS[type(step)]}(sample, draws, {ratio!r})"
    return None


# ---- the code


def indented(lines: Sequence[str]) -> Lines:
    """Lines one level further in."""
    return [f"    {line}" for line in lines]


def branch(condition: str, yes: Lines, no: Lines, otherwise: str) -> Lines:
    """An if with two branches, each of which may be empty; `otherwise` is the negated condition."""
    if yes and no:
        return [f"if {condition}:", *indented(yes), "else:", *indented(no)]
    if yes or no:
        return [f"if {condition if yes else otherwise}:", *indented(yes or no)]
    return []


def choice(draw: str, edges: Sequence[float], bodies: Sequence[Lines]) -> Lines:
    """One of several bodies: each up to its edge of a number in [0, 1), the last one from there on."""
    lines = [f"which = {draw}"]
    if len(bodies) == 1:
        return [*lines, *bodies[0]]
    for i, (edge, body) in enumerate(zip(edges, bodies, strict=True)):
        head = f"{'if' if i == 0 else 'elif'} which < {edge!r}:" if i < len(bodies) - 1 else "else:"
        lines += [head, *indented(body or ["pass"])]
    return lines


@dataclass
class Steps:
    """Writes the functions of a policy; alike composites share one."""

    functions: dict[str, Lines] = field(default_factory=dict)
    """Name to lines, in the order in which they are finished."""
    names: dict[Any, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def body(self, policy: Policy) -> Lines:
        """Lines that turn `sample` into the augmented one."""
        if isinstance(policy, Forest):
            return self.of_forest(policy)
        if isinstance(policy, Tree):
            return self.of_tree(policy) if policy.nodes else []
        return self.step(policy) if isinstance(policy, Transform) else []

    def step(self, step: Transform) -> Lines:
        """One transform, with the draws of its place."""
        if isinstance(step, Identity) or (isinstance(step, Tree) and not step.nodes):
            return []
        if isinstance(step, Operation):
            call = operation(type(step), at_magnitude(type(step), step.magnitude), step.arguments())
            return [f"sample = {call}"]
        if isinstance(step, crops.Flip | crops.VerticalFlip):
            name = "flip_left_right" if isinstance(step, crops.Flip) else "flip_up_down"
            return [] if not step.p else branch(f"draws.uniform() < {step.p!r}", [f"sample = {name}(sample)"], [], "")
        call = plain_call(step) or f"{self.function(step)}(sample, draws)"
        return [f"sample = {call}"]

    def function(self, step: Transform) -> str:
        """The name of the function of a composite, which is written if it is new."""
        if step not in self.names:
            body = self.composite(step)
            self.names[step] = name = self.new_name(step.name.lower())
            self.define(name, "sample: Sample, draws: Draws", str(step), body)
        return self.names[step]

    def new_name(self, word: str) -> str:
        """A name that no function has yet."""
        self.counts[word] = number = self.counts.get(word, 0) + 1
        return word if number == 1 else f"{word}_{number}"

    def define(self, name: str, parameters: str, doc: str, body: Lines) -> None:
        """Write a function."""
        doc = in_docstring(doc if len(doc) < 90 else f"{doc[:87]}...")
        head = [f"def {name}({parameters}) -> Sample:", f'    """{doc}."""']
        self.functions[name] = [*head, *indented([*body, "return sample"])]

    def composite(self, step: Transform) -> Lines:
        """The body of a composite."""
        match step:
            case Tree():
                return self.of_tree(step)
            case Chain():
                return list(self.of_chain(step))
            case OneOf():
                bodies = [self.step(part) for part, _ in step.pairs]
                draw, *chosen = choice("draws.uniform(8)", list(accumulate(step.shares)), bodies)
                return [draw, "draws = draws.at(0)", *chosen]
            case automatic.RandAugment():
                return self.of_randaugment(step)
            case automatic.TrivialAugment():
                palette = self.palette(step.palette, step.fill, wide=True)
                which = f"draws.below({len(step.palette)}, 8)"
                return [f"sample = {palette}(sample, {which}, draws.below(31, 0) / 30, draws)"]
            case automatic.AutoAugment():
                return self.of_autoaugment(step)
            case graphs.GraphCL(magnitude=ratio):
                bodies = [self.step(kind(ratio)) for kind in graphs.FOUR]
                return ["which = draws.below(4, 5)", *cases(dict(enumerate(bodies)))]
        raise ArgumentError("policy", "must be made of transforms that can be exported", str(step))

    def of_tree(self, tree: Tree) -> Lines:
        """The root, then the way down."""
        root = self.step(tree.nodes[1].transform)
        p = tree.nodes[1].p
        lines = ["start, draws = draws, draws.at(1)"] if tree.depth > 1 else ["draws = draws.at(1)"]
        if p:
            lines += root if p == 1 else branch(f"draws.uniform(64) < {p!r}", root, [], "")
        return lines + self.below(tree, 1)

    def below(self, tree: Tree, index: int) -> Lines:
        """Left or right below a node; a child that is missing is the end of the path."""
        left = tree.p_left(index)
        if left is None:
            return []
        sides = []
        for child, p in ((2 * index, left), (2 * index + 1, 1 - left)):
            there = child in tree.nodes and p > 0
            here = [f"draws = start.at({child})"]
            sides.append([*here, *self.step(tree.nodes[child].transform), *self.below(tree, child)] if there else [])
        if left in (0, 1):
            return sides[0 if left else 1]
        yes, no = sides
        return branch(f"draws.uniform(65) < {left!r}", yes, no, f"draws.uniform(65) >= {left!r}")

    def of_chain(self, chain: Chain) -> Iterator[str]:
        """Step by step, each with its own probability."""
        yield "start = draws"
        for i, (step, p) in enumerate(chain.pairs):
            body = self.step(step) if p and not isinstance(step, crops.Normalize) else []
            if body:
                draws = [f"draws = start.at({i}).at(1)", *body]
                yield from draws if p == 1 else branch(f"start.at({i}).uniform() < {p!r}", draws, [], "")

    def of_randaugment(self, step: automatic.RandAugment) -> Lines:
        """Operations in a row."""
        palette = self.palette(step.palette, step.fill, wide=False)
        call = f"{palette}(sample, here.below({len(step.palette)}, 8), {step.m} / 30, here)"
        return [f"for i in range({step.n}):", "    here = draws.at(i)", f"    sample = {call}"]

    def of_autoaugment(self, step: automatic.AutoAugment) -> Lines:
        """One of 25 pairs of operations."""
        table = POLICIES[step.policy]
        names = sorted({name for row in table for name, _, _ in row})
        palette = self.palette([automatic.KINDS[name] for name in names], step.fill, wide=False)
        rows = [tuple((names.index(name), p, level or 0) for name, p, level in row) for row in table]
        return [
            "pairs = [  # of operations: number, probability, level of 9",
            *indented([f"{row!r}," for row in rows]),
            "]",
            f"for i, (which, p, ninths) in enumerate(pairs[draws.below({len(table)}, 8)]):",
            "    here = draws.at(i)",
            "    if here.uniform(8) < p:",
            f"        sample = {palette}(sample, which, ninths / 9, here)",
        ]

    def palette(self, kinds: Sequence[type[Transform]], fill: int, *, wide: bool) -> str:
        """The function that applies one of several operations, by number."""
        key = (tuple(kinds), fill, wide)
        if key not in self.names:
            strength = Strength("level", "sign(draws)", wide_limit if wide else lambda kind: repr(kind.limit))
            bodies = {
                i: [f"sample = {operation(kind, strength, {'fill': fill})}"]
                for i, kind in enumerate(kinds)
                if issubclass(kind, Operation)
            }
            self.names[key] = name = self.new_name("wide_operation" if wide else "operation")
            doc = f"One of {len(kinds)} operations at a level from 0 to 1"
            self.define(name, "sample: Sample, which: int, level: float, draws: Draws", doc, cases(bodies))
        return self.names[key]

    def of_forest(self, forest: Forest) -> Lines:
        """The tree of the group; without a group, one drawn by weight."""
        names = list(forest.groups)
        edges = list(accumulate(member.weight for member in forest.groups.values()))
        drawn = choice("draws.uniform(66)", edges, [[f"group = {name!a}"] for name in names])
        lines = ["if group is None:", *indented(drawn)]
        for i, (name, member) in enumerate(forest.groups.items()):
            body = self.step(member.tree) or ["pass"]
            lines += [f"{'if' if i == 0 else 'elif'} group == {name!a}:", *indented(body)]
        return [*lines, "else:", f"    raise ValueError({'a group must be one of ' + ', '.join(names)!a})"]


def wide_limit(kind: type[Operation]) -> str:
    """The parameter at level 1 of TrivialAugment's wide range; that of translations is in pixels."""
    sides = {geometry.TranslateX: "width", geometry.TranslateY: "height"}
    return f"({kind.wide!r} / {sides[kind]}_of(sample))" if kind in sides else repr(kind.wide)


def cases(bodies: dict[int, Lines]) -> Lines:
    """A match over numbers."""
    lines = ["match which:"]
    for number, body in bodies.items():
        lines += [f"    case {number}:", *indented(indented(body))]
    return lines


def in_docstring(text: str) -> str:
    """Text that cannot end a docstring."""
    return printable(text, keep="\n").replace("\\", "\\\\").replace('"', '\\"')


def parts_of(policy: Policy) -> Iterator[Transform]:
    """All transforms of a policy that are no composites of augtree's, those never drawn left out."""
    if isinstance(policy, Forest):
        for member in policy.groups.values():
            yield from parts_of(member.tree)
    elif isinstance(policy, Tree):
        for node in policy.nodes.values():
            yield from parts_of(node.transform)
    elif isinstance(policy, Chain | OneOf):
        for part, weight in policy.pairs:
            if weight > 0:
                yield from parts_of(part)
    elif isinstance(policy, Transform) and not isinstance(policy, Identity):
        yield policy


def is_own(step: Transform) -> bool:
    """Whether a transform is a user's own."""
    return BUILT_IN.get(type(step).__name__) is not type(step)
