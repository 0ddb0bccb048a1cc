"""A picture of samples: a row a class. Graphs are drawn, pictures shown as they are."""

from __future__ import annotations

import base64
import struct
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data import Dataset
from augtree.data.splits import SPLITS, UNLABELLED
from augtree.errors import need
from augtree.keys import Key
from augtree.report.sheet import Row, draw_sheet

MOST_CLASSES, EACH = 12, 7
SIDE, EDGE, NODE = 192, (154, 165, 177), (3, 105, 161)
LARGEST, ROUNDS = 300, 60
"""Graphs with more nodes are drawn only where a class has no smaller ones, and then a part of them."""


def sample_sheet(data: Dataset, *, seed: int = 0, each: int = EACH) -> bytes:
    """Draw some samples of each of the largest classes, with their groups and splits.

    Parameters
    ----------
    data
        The data set; pictures are shown, graphs drawn as dots and lines.
    seed
        Of the samples drawn.
    each
        Samples of each class.

    Returns
    -------
    bytes
        A PNG file.

    Examples
    --------
    >>> from augtree.data import load
    >>> sample_sheet(load("digits", train=20), each=2)[1:4]
    b'PNG'

    """
    rows = [row for name in largest_classes(data) if (row := row_of(data, name, each, seed)) is not None]
    return draw_sheet(f"{data.name}: {len(data):,} samples, {data.num_classes} classes", rows)


def largest_classes(data: Dataset) -> list[int]:
    """The numbers of the classes that are shown, in order."""
    labels = data.labels[torch.from_numpy(np.flatnonzero(data.split != UNLABELLED))]
    counts = (
        labels.sum(0, dtype=torch.int64) if data.multilabel else torch.bincount(labels, minlength=data.num_classes)
    )
    most = counts.argsort(descending=True, stable=True)[:MOST_CLASSES]
    return sorted(int(i) for i in most if counts[i])


def row_of(data: Dataset, number: int, each: int, seed: int) -> Row | None:
    """Some random samples of a class, each with its group and split."""
    member = data.labels[:, number] > 0 if data.multilabel else data.labels == number
    rows = np.flatnonzero(member.numpy() & (data.split != UNLABELLED))
    if not isinstance(data.samples, Tensor):
        small = np.array([data.samples[i].num_nodes <= LARGEST for i in rows])
        rows = rows[small] if small.any() else rows
    chosen = rows[np.argsort(Key.of(seed, rows, role="samples").uniform(), kind="stable")[:each]]
    pictures = [as_picture(data.samples[int(i)]) for i in chosen]
    group = data.group_names if len(data.group_names) > 1 else None
    captions = [(*([group[data.groups[i]]] if group else []), SPLITS[data.split[i]]) for i in chosen]
    others = torch.stack(pictures[1:]) if len(pictures) > 1 else pictures[0][None][:0]
    return Row(data.classes[number], pictures[0], others, captions[1:])


def as_picture(sample: Any) -> Tensor:
    """A picture as it is, of two channels the first, of more than three the first three; a graph drawn."""
    if not isinstance(sample, Tensor):
        return graph_picture(sample)
    return sample if len(sample) in (1, 3) else sample[: 1 if len(sample) == 2 else 3]


def graph_picture(graph: Any) -> Tensor:
    """A graph as dots and lines, uint8 [3,SIDE,SIDE]."""
    image, draw_module = need("PIL.Image", "train"), need("PIL.ImageDraw", "train")
    count = min(int(graph.num_nodes), LARGEST)
    edges = graph.edge_index.numpy() if graph.edge_index is not None else np.empty((2, 0), np.int64)
    edges = edges[:, (edges < count).all(axis=0)]
    canvas = image.new("RGB", (4 * SIDE, 4 * SIDE), (255, 255, 255))
    draw = draw_module.Draw(canvas)
    spots = [tuple(spot) for spot in (0.06 + 0.88 * layout(count, edges)) * 4 * SIDE]
    for one, other in edges.T.tolist():
        draw.line([spots[one], spots[other]], fill=EDGE, width=4)
    radius = max(6.0, 40 / (1 + count / 12))
    for x, y in spots:
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=NODE)
    small = canvas.resize((SIDE, SIDE), image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(small).transpose(2, 0, 1).copy())


def layout(count: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Places in the unit square: neighbours attract, all others repel (Fruchterman and Reingold); no chance in it."""
    angle = np.arange(count) * 2.399963  # the golden angle: even at the start
    spots = (
        np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt((np.arange(count) + 0.5) / max(count, 1))[:, None]
    )
    near = np.zeros((count, count), bool)
    near[edges[0], edges[1]] = near[edges[1], edges[0]] = True
    ideal = 2 / np.sqrt(max(count, 1))
    for step in range(ROUNDS):
        apart = spots[:, None] - spots[None]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-3)
        force = ideal**2 / distance**2 - np.where(near, distance / ideal, 0)
        move = (apart * force[:, :, None]).sum(axis=1) - 0.3 * spots
        length = np.maximum(np.sqrt((move**2).sum(axis=1, keepdims=True)), 1e-9)
        spots = spots + move / length * np.minimum(length, 0.2 * (1 - step / ROUNDS))
    low, high = (spots.min(axis=0), spots.max(axis=0)) if count else (np.zeros(2), np.ones(2))
    centred: NDArray[np.float64] = 0.5 + (spots - (low + high) / 2) / max(float((high - low).max()), 1e-9)
    return centred


def as_svg(png: bytes) -> bytes:
    """A PNG file inside an SVG file of its size."""
    width, height = struct.unpack(">II", png[16:24])
    data = base64.b64encode(png).decode()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    return f'{head}<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/></svg>\n'.encode()
