"""Trees and forests as text, as Graphviz and as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING

from augtree.errors import printable
from augtree.policies.tree import SUM_TOLERANCE, Tree, is_below
from augtree.transforms import Chain, OneOf
from augtree.transforms.base import Transform

if TYPE_CHECKING:
    from augtree.policies.forest import Forest


def escape(text: str) -> str:
    """Text for XML, which has no place for control characters."""
    return escape_html("".join(c if c.isprintable() else "�" for c in text))


def percent(p: float) -> str:
    """A probability as people read it."""
    return f"{100 * p:.3g} %"


# ---- text ------------------------------------------------------------------------------------------------------


def in_words(transform: Transform) -> str:
    """A transform as people read it: one step after the other, choices side by side.

    >>> from augtree.transforms import Flip, PadCrop, RandAugment, RandTones
    >>> in_words(Chain([(Flip(), 0.5), PadCrop(4), OneOf([RandAugment(), RandTones(m=14)])]))
    'Flip 50 %, PadCrop(4), then RandAugment | RandTones(m=14) (50 % each)'
    """
    if isinstance(transform, OneOf):
        shares = transform.shares
        if max(shares) - min(shares) < 1e-9:
            each = f" ({percent(shares[0])} each)" if len(shares) > 1 else ""
            return " | ".join(_in_one_piece(choice) for choice, _ in transform.pairs) + each
        pairs = zip(transform.pairs, shares, strict=True)
        return " | ".join(f"{_in_one_piece(choice)} {percent(share)}" for (choice, _), share in pairs)
    if isinstance(transform, Chain) and transform.pairs:
        steps = [in_words(step) + ("" if p == 1 else f" {percent(p)}") for step, p in transform.pairs]
        return ", then ".join([part for part in (", ".join(steps[:-1]), steps[-1]) if part])
    return str(transform)


def tree_in_words(tree: Tree) -> str:
    """A tree in one line."""
    if len(tree.nodes) != 1:
        return str(tree)
    root = tree.nodes[1]
    return in_words(root.transform) + ("" if root.p == 1 else f", on {percent(root.p)} of the samples")


def _in_one_piece(transform: Transform) -> str:
    """A choice, of which others stand beside it."""
    if isinstance(transform, Chain) and transform.pairs and all(p == 1 for _, p in transform.pairs):
        return " + ".join(str(step) for step, _ in transform.pairs)
    return str(transform)


def to_text(tree: Tree) -> str:
    """One line a node, children below their parent."""
    if not tree.nodes:
        return "Identity (the empty tree)"
    root = tree.nodes[1]
    return "\n".join([f"{in_words(root.transform)}  applied to {percent(root.p)}", *_below(tree, 1, "")])


def children(tree: Tree, index: int) -> list[tuple[int, float]]:
    """What is drawn below a node, with the probabilities: not an Identity to which a sibling leaves nothing."""
    left = tree.p_left(index)
    both = [] if left is None else [(2 * index, left), (2 * index + 1, 1 - left)]
    return [(child, p) for child, p in both if child in tree.nodes or p > SUM_TOLERANCE]


def _below(tree: Tree, index: int, indent: str) -> Iterable[str]:
    drawn = children(tree, index)
    for child, p in drawn:
        branch, rest = ("└─ ", "   ") if child == drawn[-1][0] else ("├─ ", "│  ")
        node = tree.nodes.get(child)
        yield f"{indent}{branch}{percent(p):>6} {'Identity' if node is None else in_words(node.transform)}"
        if node is not None:
            yield from _below(tree, child, indent + rest)


def forest_to_text(forest: Forest) -> str:
    """The trees one after the other."""
    return "\n\n".join(
        f"{printable(name)}  weight {weight:.3g}\n{to_text(tree)}" for name, (tree, weight) in forest.groups.items()
    )


# ---- Graphviz --------------------------------------------------------------------------------------------------


def to_dot(tree: Tree, name: str = "tree") -> str:
    """A digraph."""
    return "\n".join([f"digraph {_quoted(name)} {{", *_STYLE, *_dot_lines(tree, ""), "}", ""])


def forest_to_dot(forest: Forest) -> str:
    """A digraph with a cluster for each group."""
    lines = ['digraph "forest" {', *_STYLE]
    for number, (name, (tree, weight)) in enumerate(forest.groups.items()):
        lines += [f"  subgraph cluster_{number} {{", f"  label={_quoted(f'{name} (weight {weight:.3g})')};"]
        lines += [*_dot_lines(tree, f"g{number}_"), "  }"]
    return "\n".join([*lines, "}", ""])


_STYLE = (
    '  node [shape=box, style="rounded,filled", fillcolor="#eef2f7", color="#5b6b7f", fontname="Helvetica"];',
    '  edge [color="#5b6b7f", fontname="Helvetica", fontsize=11];',
)


def _dot_lines(tree: Tree, prefix: str) -> Iterable[str]:
    if not tree.nodes:
        yield f'  {prefix}1 [label="Identity"];'
    for index, node in tree.nodes.items():
        label = in_words(node.transform) + (f"\napplied to {percent(node.p)}" if index == 1 else "")
        yield f"  {prefix}{index} [label={_quoted(label)}];"
        for child, p in children(tree, index):
            if child not in tree.nodes:
                yield f'  {prefix}{child} [label="Identity", style="rounded,dashed"];'
            yield f'  {prefix}{index} -> {prefix}{child} [label="{percent(p)}"];'


def _quoted(text: str) -> str:
    text = printable(text, keep="\n").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


# ---- SVG -------------------------------------------------------------------------------------------------------

ROW, GAP, BOX_HEIGHT, MARGIN = 104.0, 26.0, 46.0, 24.0
LETTER = 8.1
"""About the width of a letter at 14 px."""
MOVES = "ShearX ShearY TranslateX TranslateY Rotate Rotation RandGeometry TrivialGeometry"
BASICS = "Flip VerticalFlip QuarterTurn PadCrop RandomCrop"
LIGHT = "Contrast Color Brightness Invert Solarize Posterize ColorDistortion AutoContrast Equalize"
FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("#e3eefb", "#2f6db3", f"{MOVES} {BASICS}"),
    ("#fdeedd", "#c2701c", f"{LIGHT} RandTones TrivialTones"),
    ("#e5f4e8", "#3a8a4d", "Sharpness Sobel GaussianNoise GaussianBlur PermuteEdges Subgraph"),
    ("#f3e8f7", "#86479f", "Cutout SamplePairing DropNodes MaskNodes"),
)
"""Fill, stroke and the transforms that have them: what moves, what recolours, what roughens, what hides."""
NAME = 'font-size="14" font-weight="600"'
SMALL = 'font-size="11.5" fill="#52606d"'
PERCENT = 'font-size="12" fill="#3e4c59"'
TITLE = 'font-size="16" font-weight="700"'
OTHER = ("#eef0f3", "#55606e")
COLOURS = {name: (fill, stroke) for fill, stroke, names in FAMILIES for name in names.split()}


@dataclass(frozen=True)
class Place:
    """Where a node stands: its middle, its width, its level."""

    x: float
    width: float
    level: int


def to_svg(tree: Tree) -> str:
    """A picture of the tree; colours tell kinds of transforms apart, dashed boxes are Identity."""
    body, width, height = _drawn(tree)
    return _svg(body, width, height)


def forest_to_svg(forest: Forest) -> str:
    """The trees side by side, under their group's name and weight."""
    body, across, tallest = [], 0.0, 0.0
    for name, (tree, weight) in forest.groups.items():
        part, width, height = _drawn(tree)
        title = f"{name}, weight {weight:.3g}"
        own, width = width, max(width, LETTER * len(title) + 2 * MARGIN)
        body.append(
            f'<g transform="translate({across + (width - own) / 2:.1f} 34)">{part}</g>'
            f'<text {TITLE} x="{across + width / 2:.1f}" y="26">{escape(title)}</text>'
        )
        across, tallest = across + width, max(tallest, height)
    return _svg("\n".join(body), across, tallest + 34)


def _svg(body: str, width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="Helvetica, Arial, sans-serif">\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<g text-anchor="middle" fill="#1f2933">\n{body}\n</g>\n</svg>\n'
    )


def _drawn(tree: Tree) -> tuple[str, float, float]:
    """The marks of a tree, and the space they need."""
    places: dict[int, Place] = {}
    _lay_out(tree, 1, 0, 0.0, places)
    left = min(place.x - place.width / 2 for place in places.values()) - MARGIN
    right = max(place.x + place.width / 2 for place in places.values()) + MARGIN
    deepest = max(place.level for place in places.values())
    marks = [_edge(tree, index, places, left) for index in places if index > 1]
    marks += [_box(tree, index, place, left) for index, place in places.items()]
    return "\n".join(marks), right - left, deepest * ROW + BOX_HEIGHT + 2 * MARGIN


def _lay_out(tree: Tree, index: int, level: int, start: float, places: dict[int, Place]) -> float:
    """Place a subtree from `start` on; its right end."""
    name, detail = _labels(tree, index)
    width = max(LETTER * len(name), 6.4 * len(detail), 50.0) + 26
    below = [child for child, _ in children(tree, index)]
    if not below:
        places[index] = Place(start + width / 2, width, level)
        return start + width
    end = start
    for i, child in enumerate(below):
        end = _lay_out(tree, child, level + 1, end + (GAP if i else 0), places)
    middle = (places[below[0]].x + places[below[-1]].x) / 2
    if end - start < width:  # a wide parent over narrow children
        shift = (width - (end - start)) / 2
        for i in [i for i in places if is_below(i, index)]:
            places[i] = Place(places[i].x + shift, places[i].width, places[i].level)
        middle, end = middle + shift, start + width
    places[index] = Place(max(middle, start + width / 2), width, level)
    return max(end, places[index].x + width / 2)


def _labels(tree: Tree, index: int) -> tuple[str, str]:
    """The big and the small line of a box."""
    node = tree.nodes.get(index)
    if node is None:
        return "Identity", ""
    if isinstance(node.transform, Chain | OneOf):
        name, then, rest = in_words(node.transform).partition(", then ")
        return (
            (name, _shortened(f"then {rest}"))
            if then and len(name) <= 60
            else (_shortened(in_words(node.transform)), "")
        )
    name, _, arguments = str(node.transform).partition("(")
    return name if len(name) <= 40 else name[:38] + "…", _shortened(arguments[:-1])


def _shortened(text: str) -> str:
    return text if len(text) <= 48 else text[:46] + "…"


def _box(tree: Tree, index: int, place: Place, left: float) -> str:
    name, detail = _labels(tree, index)
    x, y = place.x - left, MARGIN + place.level * ROW
    node = tree.nodes.get(index)
    fill, stroke = ("#ffffff", "#9aa5b1") if node is None else COLOURS.get(node.transform.name, OTHER)
    dash = ' stroke-dasharray="4 3"' if node is None else ""
    shade = ' fill="#7b8794"' if node is None else ""
    left_edge, size = x - place.width / 2, f'width="{place.width:.1f}" height="{BOX_HEIGHT:.0f}" rx="9"'
    paint = f'fill="{fill}" stroke="{stroke}" stroke-width="1.4"{dash}'
    whole = "" if node is None else f"<title>{escape(in_words(node.transform))}</title>"
    marks = [f'<rect x="{left_edge:.1f}" y="{y:.1f}" {size} {paint}>{whole}</rect>']
    if detail:
        marks.append(f'<text {NAME} x="{x:.1f}" y="{y + 20:.1f}">{escape(name)}</text>')
        marks.append(f'<text {SMALL} x="{x:.1f}" y="{y + 36:.1f}">{escape(detail)}</text>')
    else:
        marks.append(f'<text {NAME} x="{x:.1f}" y="{y + 28:.1f}"{shade}>{escape(name)}</text>')
    if node is not None and index == 1:
        marks.append(f'<text {PERCENT} x="{x:.1f}" y="{y - 7:.1f}">applied to {percent(node.p)}</text>')
    return "".join(marks)


def _edge(tree: Tree, index: int, places: dict[int, Place], left: float) -> str:
    child, parent = places[index], places[index // 2]
    p_left = tree.p_left(index // 2) or 0.0
    p = p_left if index % 2 == 0 else 1 - p_left
    x0, y0 = parent.x - left, MARGIN + parent.level * ROW + BOX_HEIGHT
    x1, y1 = child.x - left, MARGIN + child.level * ROW
    middle = (y0 + y1) / 2
    path = f"M{x0:.1f} {y0:.1f} C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    side, anchor = (-9, "end") if index % 2 == 0 else (9, "start")
    return (
        f'<path fill="none" stroke="#9aa5b1" d="{path}" stroke-width="{1.2 + 5 * p:.2f}"/>'
        f'<text {PERCENT} text-anchor="{anchor}" x="{x1 + side:.1f}" y="{y1 - 9:.1f}">{percent(p)}</text>'
    )
