"""The same few samples before and after, along the path to a part of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data import Dataset
from augtree.keys import Key
from augtree.report.markup import Html, breakable, tag
from augtree.report.parts import Part, label_of
from augtree.report.pictures import Pictures, graph_source, picture_source, with_origins
from augtree.transforms import Chain
from augtree.transforms.base import Policy

COLUMNS = 5
"""Pictures in a row: the original, those along the path, and versions of the last."""
SEED = 0
MOST_NODES = 60
"""Graphs with more nodes are shown only where there are no smaller ones."""
MOST_CHARACTERS = 60
"""Longer descriptions of what was drawn are cut."""
Ints = NDArray[np.int64]


class Shown(NamedTuple):
    """The samples that a figure shows: their places in the data set, and themselves."""

    rows: Ints
    samples: Any
    names: Sequence[str]
    """What each is called: its class."""


def chosen(data: Dataset, groups: Sequence[str], count: int) -> Shown | None:
    """Some training samples of these groups, of different classes where they can be; None where there are none."""
    known = [group for group in groups if group in data.group_names]
    parts = [data.indices("train", group) for group in known] or [data.indices("train")]
    rows = np.concatenate(parts)
    if not isinstance(data.samples, Tensor):
        small = np.array([data.samples[i].num_nodes <= MOST_NODES for i in rows], bool)
        rows = rows[small] if small.any() else rows
    if not len(rows):
        return None
    rows = rows[np.argsort(Key.of(SEED, rows, role="shown").uniform(), kind="stable")]
    classes = [class_of(data, int(i)) for i in rows]
    places = [classes[:i].count(name) for i, name in enumerate(classes[:400])]  # the first of each class come first
    order = np.argsort(places, kind="stable")[:count]
    picked = rows[order]
    return Shown(picked, samples_at(data, picked), [classes[i] for i in order])


def class_of(data: Dataset, row: int) -> str:
    """The name of a sample's class; of its labels, where it has several."""
    if not data.multilabel:
        return data.classes[int(data.labels[row])]
    names = [data.classes[int(i)] for i in torch.nonzero(data.labels[row] > 0).flatten()]
    return ", ".join(names) or "no label"


def samples_at(data: Dataset, rows: Ints) -> Any:
    """Samples as a policy takes them; graphs know which node each was."""
    if isinstance(data.samples, Tensor):
        return data.samples[torch.from_numpy(rows)]
    from torch_geometric.data import Batch

    return Batch.from_data_list([with_origins(data.samples[int(i)]) for i in rows])


class Column(NamedTuple):
    """A column of pictures: its head, a picture each, and what each sample got."""

    head: str
    sources: Sequence[str]
    captions: Sequence[str]

    @property
    def tells(self) -> bool:
        """Whether captions say more than the head does."""
        return len({*self.captions}) > 1


def columns(part: Part, shown: Shown) -> list[Column]:
    """The originals, the samples along the path, and versions of the last step."""
    found = [Column("original", sources_of(shown.samples, None), shown.names)]
    here = shown.samples
    *before, last = part.path
    for policy in before:
        here = applied(policy, here, shown.rows, 0)
        head = "after the steps before" if isinstance(policy, Chain) else f"after {label_of(policy)}"  # type: ignore[arg-type]
        found.append(Column(head, sources_of(here, shown.samples), captions_of(policy, shown.rows, 0)))
    versions = max(1, COLUMNS - len(found)) if last.random is not False else 1  # type: ignore[attr-defined]
    for version in range(versions):
        after = applied(last, here, shown.rows, version)
        captions = captions_of(last, shown.rows, version)
        head = f"after {part.label}" if part.key != "whole" else "what becomes of it"
        found.append(Column(head if not version else "", sources_of(after, shown.samples), captions))
    return found


def applied(policy: Policy, samples: Any, rows: Ints, version: int) -> Any:
    """Samples after a policy, the same each time."""
    return policy(samples, seed=SEED, index=rows, step=version)


def captions_of(policy: Policy, rows: Ints, version: int) -> list[str]:
    """What each sample got, in words."""
    steps = policy.describe(Key.of(SEED, rows, step=version))
    return [", ".join(each) or "unchanged" for each in steps]


def sources_of(samples: Any, before: Any) -> list[str]:
    """Each sample as a picture; graphs beside what they were."""
    if isinstance(samples, Tensor):
        return [picture_source(picture) for picture in samples]
    graphs = samples.to_data_list()
    originals: Sequence[Any] = [None] * len(graphs) if before is None else before.to_data_list()
    return [graph_source(graph, original) for graph, original in zip(graphs, originals, strict=True)]


def strip(found: Sequence[Column] | None, shown: Shown, pictures: Pictures, reason: str) -> Html:
    """The pictures of a part, a row for each sample; or why there are none."""
    if found is None:
        words = f"No pictures: {reason}." if reason else "The page is full: the pictures of this part are left out."
        return tag("p", words, class_="absent")
    kind = "graph" if not isinstance(shown.samples, Tensor) else "picture"
    cells = [tag("div", cell_heads(found), class_="strip-head", aria_hidden="true")]
    for i, name in enumerate(shown.names):
        row = [cell(column, i, name, j, pictures, kind) for j, column in enumerate(found)]
        cells.append(tag("div", row, class_="strip-row"))
    return tag("div", *cells, class_=f"strip {kind}s", style=f"--columns:{len(found)}")


def cell_heads(found: Sequence[Column]) -> list[Html]:
    """The heads of the columns; one for all versions of the last step."""
    heads = [column.head for column in found]
    named = [i for i, head in enumerate(heads) if head]
    spans = [after - i for i, after in zip(named, [*named[1:], len(heads)], strict=True)]
    return [tag("span", heads[i], style=f"grid-column: span {span}") for i, span in zip(named, spans, strict=True)]


def cell(column: Column, i: int, name: str, place: int, pictures: Pictures, kind: str) -> Html:
    """One picture with its caption."""
    caption = column.captions[i]
    words = f"{name}: the original {kind}" if not place else f"{name}: {caption}"
    short = caption if len(caption) <= MOST_CHARACTERS else f"{caption[: MOST_CHARACTERS - 1]}…"
    tells = column.tells or not place
    image = tag("img", data_picture=pictures.add(column.sources[i]), alt=words, title=caption)
    return tag("figure", image, tag("figcaption", breakable(short)) if tells else None)


def thumbnail(found: Sequence[Column] | None, pictures: Pictures) -> Html | None:
    """What a part does to the first sample, as a small picture in its box."""
    if not found or not found[-1].sources:
        return None
    versions = [column.sources[0] for column in found if column.head in ("", found[-1].head)] or [
        found[-1].sources[0]
    ]
    return tag(
        "img", data_picture=pictures.add(max(versions, key=len)), alt="", class_="thumb"
    )  # the least empty one
