"""The policies, drawn large: each part of them says what it is, and shows what it does to the same few samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.policies import Tree
from augtree.policies.drawing import children, percent
from augtree.report.gather import Record
from augtree.report.markup import Html, breakable, join, tag
from augtree.report.parts import Part, is_mixture, node_parts, out_of_play, out_parts, stages_of, whole
from augtree.report.paths import Column, Shown, chosen, columns, strip, thumbnail
from augtree.report.pictures import Pictures, are_pixels
from augtree.report.sections import Section
from augtree.report.sections.evidence import in_words
from augtree.report.sections.rivals import rivals, scored, table_of
from augtree.runs.failures import attempt
from augtree.search.play import UNGROUPED

ONE = (
    "What happens to each sample in training. Point at a box, or tap it, to see what it does to the same few"
    " samples; boxes with a dashed border are out of play."
)
SAMPLES = ((24, 4), (60, 3), (200, 2))
"""The samples of a figure, by how many parts there are on the page at most."""


def section(record: Record, pictures: Pictures) -> Section | None:
    """A figure for each group; groups with one and the same policy share one."""
    if not record.policies:
        if not record.no_policy:
            return None
        why = tag("p", f"It cannot be drawn: {record.no_policy}.", class_="absent")
        return Section("policy", "The policy", "", join(why, tag("p", str(record.result.get("tree", "")))))
    shared = by_policy(record)
    parts = sum(count_parts(record, groups) for groups in shared)
    samples = next((count for most, count in SAMPLES if parts <= most), 1)
    figures = [figure(record, groups, pictures, i, samples) for i, groups in enumerate(shared)]
    absent = (
        tag("p", f"There are no pictures here: {record.no_data}.", class_="absent") if record.data is None else None
    )
    title = "The policy" if len(record.policies) == 1 else "A policy for each group"
    title += " so far" if record.is_open else ""
    return Section("policy", title, ONE, join(absent, figures))


def by_policy(record: Record) -> list[list[str]]:
    """The groups of each policy: those of one search, with the same tree and the same out of play, are together."""
    found: dict[Any, list[str]] = {}
    for group, tree in record.policies.items():
        own = group if group in record.groups else None  # it was searched by itself
        found.setdefault((tree, tuple(sorted(out_of_play(record, group))), own), []).append(group)
    return list(found.values())


def count_parts(record: Record, groups: Sequence[str]) -> int:
    """The number of parts in the figure of these groups."""
    tree = record.policies[groups[0]]
    inner = sum(len(stage.parts) for stage in stages_of(tree)) if is_mixture(tree) else len(tree)
    return 1 + inner + len(out_parts(record, groups))


def figure(record: Record, groups: Sequence[str], pictures: Pictures, number: int, samples: int) -> Html:
    """The policy of some groups: the drawing, and a panel for each part."""
    tree = record.policies[groups[0]]
    shown = None if record.data is None else chosen(record.data, groups, samples)
    made = Figure(record, groups, pictures, f"{record.folder.name}-{number}", shown)
    drawn = made.flow(tree) if is_mixture(tree) else made.tree(tree)
    title = tag("h3", heading(record, groups), class_="group-name") if groups != [UNGROUPED] else None
    panels = tag("div", made.panels, class_="panels", aria_live="polite")
    kind = f"explorer policy{' pixels' if shown is not None and are_pixels(shown.samples) else ''}"
    return tag("div", title, tag("div", drawn, panels, class_=kind), class_="policy-figure")


def heading(record: Record, groups: Sequence[str]) -> Html:
    """The names of the groups and their weights."""
    marks: list[Html] = []
    for group in groups:
        weight = record.weights.get(group)
        more = None if weight is None else tag("span", f"weight {weight:.3f}", class_="weight")
        marks.append(tag("span", group, " ", more, class_="group"))
    return join(marks)


class Figure:
    """The drawing of one policy; it collects the panels of its parts."""

    def __init__(
        self, record: Record, groups: Sequence[str], pictures: Pictures, name: str, shown: Shown | None
    ) -> None:
        self.record, self.groups, self.pictures, self.name, self.shown = record, groups, pictures, name, shown
        self.panels: list[Html] = []

    def flow(self, tree: Tree) -> Html:
        """A mixture: its steps one after the other, choices side by side."""
        root = tree.nodes[1]
        marks = [self.step([whole(tree)])]
        if root.p < 1:
            marks.append(
                tag(
                    "p", f"{percent(root.p)} of the samples go this way; the others stay as they are.", class_="aside"
                )
            )
        marks += [self.step(stage.parts, stage.title) for stage in stages_of(tree)]
        return tag(
            "div",
            tag("div", marks, class_="flow"),
            self.removed(),
            class_="drawing",
            role="group",
            aria_label=self.label,
        )

    def step(self, parts: Sequence[Part], title: str = "") -> Html:
        """One step of a mixture: a box, or several side by side under a title."""
        boxes = [self.box(part) for part in parts]
        if not title:
            return tag("div", boxes, class_="step")
        return tag(
            "div", tag("p", title, class_="stage-title"), tag("div", boxes, class_="choices"), class_="step one-of"
        )

    def tree(self, tree: Tree) -> Html:
        """A tree: children below their parent."""
        if not tree.nodes:
            words = "The tree is empty: samples stay as they are."
            tried = table_of(scored(self.record.groups.get(self.groups[0], self.record), 1))
            return tag("div", tag("p", words, class_="aside"), tried, self.removed(), class_="drawing")
        first, parts = self.step([whole(tree)]), node_parts(tree)
        body = tag("ul", self.branch(tree, 1, parts), class_=f"tree depth-{tree.depth}")
        return tag(
            "div",
            first,
            tag("div", body, class_="tree-room"),
            self.removed(),
            class_="drawing",
            role="group",
            aria_label=self.label,
        )

    @property
    def label(self) -> str:
        """What the drawing is called."""
        return f"The policy of {', '.join(self.groups)}" if self.groups != [UNGROUPED] else "The policy"

    def branch(self, tree: Tree, index: int, parts: Mapping[int, Part]) -> Html:
        """A node and what stands below it."""
        below = children(tree, index) if index in tree.nodes else []
        inner = tag("ul", [self.branch(tree, child, parts) for child, _ in below]) if below else None
        return tag("li", self.box(parts[index]), inner)

    def removed(self) -> Html | None:
        """What is out of play, below the policy."""
        parts = out_parts(self.record, self.groups)
        if not parts:
            return None
        boxes = [self.box(part, out=True) for part in parts]
        return tag(
            "div",
            tag("p", "out of play", class_="stage-title"),
            tag("div", boxes, class_="choices"),
            class_="removed",
        )

    def box(self, part: Part, *, out: bool = False) -> Html:
        """A part in the drawing, with its panel."""
        name, first = f"{self.name}-{part.key}", not self.panels
        found: Sequence[Column] | None = None
        reason = ""
        if self.shown is not None and not self.pictures.is_full:
            shown = self.shown
            found, reason = attempt(lambda: columns(part, shown))
        self.panels.append(self.panel(part, name, found, reason, hidden=not first))
        thumb = thumbnail(found, self.pictures) if part.key != "whole" else None
        texts = tag(
            "span",
            tag("span", breakable(part.label), class_="label"),
            tag("span", part.share, class_="share"),
            class_="words",
        )
        kind = f"node {part.kind}{' out' if out else ''}"
        pressed = {"aria_pressed": "true" if first else "false", "tabindex": "0" if first else "-1"}
        return tag("button", thumb, texts, type="button", class_=kind, data_panel=name, **pressed)

    def panel(self, part: Part, name: str, found: Sequence[Column] | None, reason: str, *, hidden: bool) -> Html:
        """What there is to say of a part."""
        said = in_words(self.record, part.factors, self.groups)
        pictures = None if self.shown is None else strip(found, self.shown, self.pictures, reason)
        facts = tag("ul", [tag("li", each) for each in said], class_="evidence") if said else None
        others = rivals(self.record, self.groups, part)
        kind = tag("p", part.share, class_="share")
        return tag(
            "div",
            tag("h4", part.label),
            kind,
            tag("p", part.about) if part.about else None,
            pictures,
            facts,
            others,
            class_=f"panel {part.kind}",
            data_name=name,
            hidden=hidden,
        )
