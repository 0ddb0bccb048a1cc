"""The parts of a tree that can be pointed at: nodes, or the steps and choices of a mixture, and what left play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from augtree.policies import Tree
from augtree.policies.codec import Reader
from augtree.policies.drawing import FAMILIES, children, in_words, percent
from augtree.report.gather import Record, tried
from augtree.runs.spec import restore_space
from augtree.search.play import factor_in_words
from augtree.transforms import Chain, Identity, OneOf, Space
from augtree.transforms.base import Policy, Transform
from augtree.transforms.traits import traits

KINDS = ("moves", "tones", "texture", "hides")
"""What the families of transforms do, in the order of FAMILIES."""
KIND_OF = {name: kind for kind, (*_, names) in zip(KINDS, FAMILIES, strict=True) for name in names.split()}
WHOLE = "whole"


@dataclass(frozen=True)
class Part:
    """A part of a policy."""

    key: str
    """Its name within the figure: whole, a node's index, a step's place, out-FACTOR."""
    label: str
    about: str
    """What it does, in a sentence."""
    share: str
    """Which samples it is for."""
    path: tuple[Policy, ...]
    """What happens to a sample on the way to it, and itself."""
    factors: frozenset[str]
    """The factors whose evidence is about it."""
    kind: str
    """The family that it has its colour of."""
    node: int | None = None
    """The node of the tree."""


@dataclass(frozen=True)
class Stage:
    """A place in a mixture: one step, or several of which one is drawn."""

    title: str
    parts: Sequence[Part]


def label_of(transform: Transform) -> str:
    """A transform in few words."""
    if isinstance(transform, Chain) and all(p == 1 for _, p in transform.pairs):
        return " + ".join(str(step) for step, _ in transform.pairs)
    return in_words(transform)


def about(transform: Transform) -> str:
    """What a transform does, in the words of its documentation."""
    if isinstance(transform, Chain):
        return "One after the other: " + ", then ".join(label_of(step) for step, _ in transform.pairs) + "."
    if isinstance(transform, OneOf):
        return "One of several, drawn anew for each sample."
    doc = (type(transform).__doc__ or "").strip().split("\n\n")[0]
    return " ".join(doc.split()) if not doc.startswith(f"{type(transform).__name__}(") else ""


def kind_of(transform: Transform) -> str:
    """The family of a transform: what it does to a sample."""
    return "none" if isinstance(transform, Identity) else KIND_OF.get(transform.name, "mixed")


def part_of(key: str, transform: Transform, share: str, path: Sequence[Policy], node: int | None = None) -> Part:
    """A part of a policy that is one transform."""
    factors = traits(transform)
    return Part(
        key, label_of(transform), about(transform), share, (*path, transform), factors, kind_of(transform), node
    )


def whole(tree: Tree) -> Part:
    """The policy as a whole."""
    words = "Every sample goes through the whole policy; each time, it comes out otherwise."
    return Part(WHOLE, "The whole policy", words, "all samples", (tree,), frozenset(), WHOLE, 1)


def is_mixture(tree: Tree) -> bool:
    """Whether a tree is one node made of others, as the policies of a trunk are."""
    return len(tree.nodes) == 1 and isinstance(tree.nodes[1].transform, Chain | OneOf)


def stages_of(tree: Tree) -> list[Stage]:
    """The steps of a mixture, in order."""
    root = tree.nodes[1].transform
    steps = root.pairs if isinstance(root, Chain) else ((root, 1.0),)
    found: list[Stage] = []
    for i, (step, p) in enumerate(steps):
        before = (Chain(steps[:i]),) if i else ()
        found.append(stage_of(f"{i}", step, p, before))
    return found


def stage_of(key: str, step: Transform, p: float, before: Sequence[Policy]) -> Stage:
    """One step of a mixture."""
    if isinstance(step, OneOf):
        shares = step.shares
        even = max(shares) - min(shares) < 1e-9
        parts = [
            part_of(f"{key}-{j}", choice, f"{percent(share)} of the samples", before)
            for j, ((choice, _), share) in enumerate(zip(step.pairs, shares, strict=True))
        ]
        return Stage(f"one of these {len(parts)}" + (", each as likely as the others" if even else ""), parts)
    share = "all samples" if p == 1 else f"{percent(p)} of the samples"
    return Stage("", [part_of(key, step, share, before)])


def node_parts(tree: Tree) -> dict[int, Part]:
    """The nodes of a tree, by index, an Identity where a sample may go on unchanged."""
    found: dict[int, Part] = {}
    for index, node in tree.nodes.items():
        path = path_to(tree, index)
        share = f"applied to {percent(node.p)} of the samples" if index == 1 else f"{percent(node.p)} go this way"
        found[index] = part_of(str(index), node.transform, share, path, index)
        for child, p in children(tree, index):
            if child not in tree.nodes:
                found[child] = part_of(
                    str(child), Identity(), f"{percent(p)} go this way", (*path, node.transform), child
                )
    return found


def path_to(tree: Tree, index: int) -> tuple[Transform, ...]:
    """The transforms above a node, from the root on."""
    above = []
    while index > 1:
        index //= 2
        above.append(tree.nodes[index].transform)
    return tuple(reversed(above))


# ---- what is out of play


def out_of_play(record: Record, group: str) -> list[str]:
    """The factors that have left a group's play, or did not come into it."""
    listed: Mapping[str, Any] = record.result.get("out_of_play", {})
    if group in listed:
        return list(listed[group])
    last = {finding["factor"]: finding for finding in record.findings}
    return [factor for factor, finding in last.items() if group in finding["left"]]


def space_of(record: Record) -> Space | None:
    """The space that a run searched."""
    if "space" not in record.spec:
        return None
    reader = Reader(record.folder / "spec.json", ())
    found, _ = tried(lambda: restore_space(record.spec["space"], reader))
    return found


def out_parts(record: Record, groups: Iterable[str]) -> list[Part]:
    """What is out of play in a group, each with a transform that shows it."""
    space = space_of(record)
    factors = dict.fromkeys(factor for group in groups for factor in out_of_play(record, group))
    if space is None:
        return []
    return [part for factor in factors if (part := out_part(factor, space)) is not None]


def out_part(factor: str, space: Space) -> Part | None:
    """A factor that is out of play, shown by the transform of the space that has it and least else."""
    having = [each for each in (*space.basics, *space.own, *space) if factor in {each.name, *traits(each)}]
    shown = min(having, key=lambda each: (len(traits(each)), isinstance(each, Chain)), default=None)
    if shown is None:
        return None
    kind, words = kind_of(cast(Transform, shown)), about(shown)
    return Part(f"out-{factor}", factor_in_words(factor), words, "out of play", (shown,), frozenset({factor}), kind)
