"""Small pictures for a page: samples as data URIs, each kept once, and drawings of graphs."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import need
from augtree.report.samples import as_picture, layout

SIDE = 112
"""Larger pictures are shrunk to this side."""
SHARP = 64
"""Pictures up to this side are kept pixel by pixel."""
PIXELS = 40
"""Of pictures up to this side, pixels are shown as squares; larger ones are smoothed."""
MOST_BYTES = 2_600_000
"""The pictures of a page take at most about so much; what comes after is left out."""
ORIGIN = "augtree_node"
"""The field of a graph that says which node of the original each node was."""


@dataclass
class Pictures:
    """The pictures of a page by number: equal ones are kept once."""

    sources: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether no further picture should be added."""
        return self.size > MOST_BYTES

    def add(self, source: str) -> int:
        """The number of a picture."""
        if source not in self.numbers:
            self.numbers[source] = len(self.sources)
            self.sources.append(source)
            self.size += len(source)
        return self.numbers[source]


def are_pixels(samples: Any) -> bool:
    """Whether samples are pictures so small that their pixels are to be seen."""
    return isinstance(samples, Tensor) and max(samples.shape[-2:]) <= PIXELS


def picture_source(picture: Tensor) -> str:
    """A picture uint8 [C,H,W] as a data URI: small ones without loss, large ones shrunk."""
    image = need("PIL.Image", "train")
    array = as_picture(picture).permute(1, 2, 0).numpy()
    shown = image.fromarray(array[..., 0] if array.shape[2] == 1 else array)
    buffer = io.BytesIO()
    if max(shown.size) <= SHARP:
        shown.save(buffer, "PNG", optimize=True)
        return data_uri("image/png", buffer.getvalue())
    scale = min(1.0, SIDE / max(shown.size))
    shown = shown.resize([max(1, round(side * scale)) for side in shown.size], image.Resampling.LANCZOS)
    shown.convert("RGB").save(buffer, "JPEG", quality=82)
    return data_uri("image/jpeg", buffer.getvalue())


def data_uri(kind: str, content: bytes) -> str:
    """Bytes as an address that needs no request."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


# ---- graphs

BOX, EDGE = 112.0, 9.0
LINE, NODE, ADDED, GONE = "#8593a3", "#3f7fc4", "#d9822b", "#9aa5b1"
"""Colours that stand out on light and on dark paper."""
MOST_NODES = 120
"""Of larger graphs, a part is drawn."""


def edges_of(graph: Any) -> set[tuple[int, int]]:
    """The edges of a graph without directions and loops."""
    pairs = [] if graph.edge_index is None else graph.edge_index.T.tolist()
    return {(min(a, b), max(a, b)) for a, b in pairs if a != b}


def with_origins(graph: Any) -> Any:
    """The graph with the numbers of its nodes in a field, which goes with them through any transform."""
    import torch

    marked = graph.clone()
    marked[ORIGIN] = torch.arange(int(graph.num_nodes))
    return marked


def spots_of(graph: Any) -> NDArray[np.float64]:
    """Where the nodes of a graph are drawn."""
    count = min(int(graph.num_nodes), MOST_NODES)
    kept = [edge for edge in edges_of(graph) if max(edge) < count]
    edges = np.array(sorted(kept), np.int64).reshape(-1, 2).T
    return np.asarray(EDGE + (BOX - 2 * EDGE) * layout(count, edges))


def graph_source(graph: Any, before: Any = None) -> str:
    """A graph as a data URI; beside the graph before, with what has gone and what is new."""
    whole = graph if before is None else before
    spots = spots_of(whole)
    origins = list(range(len(spots))) if before is None else graph[ORIGIN].tolist()
    own = {(min(origins[a], origins[b]), max(origins[a], origins[b])) for a, b in edges_of(graph)}
    old = edges_of(whole)
    there = set(origins)
    masked = masked_nodes(graph, before, origins)
    radius = max(1.8, 5.2 - len(spots) / 16)
    marks = [
        edge_mark(spots, edge, GONE, "1", ' stroke-dasharray="2 2.5" opacity=".55"') for edge in sorted(old - own)
    ]
    marks += [edge_mark(spots, edge, LINE, "1.5") for edge in sorted(old & own)]
    marks += [edge_mark(spots, edge, ADDED, "1.8") for edge in sorted(own - old)]
    for i, (x, y) in enumerate(spots.tolist()):
        style = f'fill="{NODE}"' if i in there else f'fill="none" stroke="{GONE}" stroke-dasharray="2 2"'
        style = f'fill="none" stroke="{ADDED}" stroke-width="1.8"' if i in masked else style
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {style}/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {BOX:.0f} {BOX:.0f}">'
    return "data:image/svg+xml," + quote(f"{head}{''.join(marks)}</svg>", safe=" ='/:.")


def edge_mark(spots: NDArray[np.float64], edge: tuple[int, int], colour: str, width: str, more: str = "") -> str:
    """An edge; one of a node that is not drawn is left out."""
    if max(edge) >= len(spots):
        return ""
    (x0, y0), (x1, y1) = spots[edge[0]].tolist(), spots[edge[1]].tolist()
    return f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" stroke-width="{width}"{more}/>'


def masked_nodes(graph: Any, before: Any, origins: list[int]) -> set[int]:
    """The nodes whose features have changed."""
    x = getattr(graph, "x", None)
    if before is None or x is None or getattr(before, "x", None) is None:
        return set()
    changed = (x != before.x[origins]).any(dim=1) if len(origins) else []
    return {origin for origin, differs in zip(origins, changed, strict=True) if differs}
