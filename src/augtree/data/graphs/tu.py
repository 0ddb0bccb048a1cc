"""Reads the TU graph sets in their official text form (graphlearning.io): NAME_A.txt and its companions."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.bounded import zip_member
from augtree.data.dataset import Dataset
from augtree.data.splits import make_split
from augtree.errors import ArgumentError, DataError, need, one_of

Ints = NDArray[np.int64]
HIGHEST_DEGREE = 64
"""Nodes with more neighbours share a column."""


def read_tu(path: str | Path) -> list[Any]:
    r"""Read the graphs of a TU set as PyG Data.

    Self-loops and doubled edges are removed, and every edge stands in both directions. Node labels become one-hot
    columns of x, followed by node attributes; edge labels and attributes likewise edge_attr; y is the class as
    0, 1, ... in the order of the labels in the file. A set without node labels and attributes has num_nodes and no x.

    Parameters
    ----------
    path
        The set's zip file, or its unpacked folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}.items():
    ...         _ = Path(folder, f"TINY_{name}.txt").write_text(text)
    ...     read_tu(folder)
    [Data(edge_index=[2, 2], y=[1], num_nodes=2)]

    """
    need("torch_geometric.data", "graph")
    return graphs_of(Tables.open(Path(path)))


def tu_dataset(path: str | Path, *, features: str | None = None, seed: int = 0) -> Dataset:
    """A TU set as a data set, 80/10/10 by class; the classes have the names that the file gives them.

    With features="degree", nodes of a set that says nothing of its nodes get the one-hot degree that they have in
    the file as x, which augmentation then treats as a feature like any other. Without, gin takes the degrees that
    nodes have once the graph is augmented, as resgcn always does.
    """
    need("torch_geometric.data", "graph")
    if features is not None:
        one_of("features", features, ("degree",))
    tables = Tables.open(Path(path))
    graphs = tuple(graphs_of(tables))
    notes = [f"split made: 80/10/10 by class, seed {seed}"]
    if features is not None:
        if "x" in graphs[0]:
            raise ArgumentError("features", f"must be left out for {tables.name}: its nodes have features", features)
        width = add_degrees(graphs)
        notes.append(f"node features: the degree, one-hot, the last of {width} columns for {width - 1} and more")
    labels = torch.cat([graph.y for graph in graphs])
    return Dataset(
        name=tables.name,
        samples=graphs,
        labels=labels,
        classes=tuple(str(label) for label in np.unique(tables.ints("graph_labels")[:, 0])),
        split=make_split(labels, shares=(0.8, 0.1, 0.1), seed=seed),
        groups=np.zeros(len(graphs), np.int64),
        group_names=("all",),
        source={
            "source": str(Path(path).resolve()),
            **({} if features is None else {"features": features}),
            "seed": seed,
        },
        notes=tuple(notes),
    )


def add_degrees(graphs: tuple[Any, ...]) -> int:
    """Give the nodes their degrees as one-hot x; the number of columns, which is the same for all graphs."""
    degrees = [torch.bincount(graph.edge_index[0], minlength=graph.num_nodes) for graph in graphs]
    width = 1 + min(HIGHEST_DEGREE, max(int(degree.max()) for degree in degrees))
    for graph, degree in zip(graphs, degrees, strict=True):
        graph.x = torch.eye(width)[degree.clamp(max=width - 1)]
        del graph.num_nodes
    return width


def is_tu(path: Path) -> bool:
    """Whether a folder or a zip file holds a TU set."""
    try:
        if path.is_dir():
            return next(path.glob("*_A.txt"), None) is not None
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("_A.txt") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def graphs_of(tables: Tables) -> list[Any]:
    """The graphs that the tables tell of."""
    data = need("torch_geometric.data", "graph")
    graph_of = tables.ints("graph_indicator")[:, 0] - 1
    labels = tables.ints("graph_labels")[:, 0]
    if len(graph_of) == 0 or graph_of.min() < 0 or graph_of.max() >= len(labels) or (np.diff(graph_of) < 0).any():
        raise tables.broken("graph_indicator", f"must rise from 1 to {len(labels)}, the number of graph labels")
    ends = tables.ints("A") - 1
    if ends.shape[1] != 2:
        raise tables.broken("A", f"must have two node numbers on each line, got {ends.shape[1]}")
    if ends.size and (ends.min() < 0 or ends.max() >= len(graph_of)):
        raise tables.broken("A", f"must have node numbers from 1 to {len(graph_of)}")
    if (graph_of[ends[:, 0]] != graph_of[ends[:, 1]]).any():
        raise tables.broken("A", "must not have an edge between two graphs")
    x = features(tables, "node", len(graph_of))
    edge_attr = features(tables, "edge", len(ends))
    ends, origin = simple(ends, len(graph_of))

    nodes = np.bincount(graph_of, minlength=len(labels))
    edges = np.bincount(graph_of[ends[:, 0]], minlength=len(labels))
    first_node = np.cumsum(nodes) - nodes
    local = torch.from_numpy((ends - first_node[graph_of[ends[:, 0]]][:, None]).T.copy())
    fields: dict[str, list[Any]] = {
        "edge_index": own(local.split(edges.tolist(), dim=1)),
        "y": own(torch.from_numpy(np.unique(labels, return_inverse=True)[1]).split(1)),
    }
    if x is not None:
        fields["x"] = own(torch.from_numpy(x).split(nodes.tolist()))
    else:
        fields["num_nodes"] = nodes.tolist()
    if edge_attr is not None:
        fields["edge_attr"] = own(torch.from_numpy(edge_attr[origin]).split(edges.tolist()))
    return [data.Data(**{key: column[i] for key, column in fields.items()}) for i in range(len(labels))]


def own(parts: Sequence[Tensor]) -> list[Tensor]:
    """Each part in memory of its own: a part of a tensor is pickled with the whole of it."""
    return [part.clone() for part in parts]


def simple(ends: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Edges without self-loops and doubles, both directions, sorted; and the row that each comes from."""
    rows = np.flatnonzero(ends[:, 0] != ends[:, 1])
    one, other = ends[rows].T
    # The given direction comes first, so that it is the one whose row is kept.
    code, which = np.unique(np.concatenate([one * nodes + other, other * nodes + one]), return_index=True)
    return np.stack([code // nodes, code % nodes], axis=1), np.concatenate([rows, rows])[which]


def features(tables: Tables, what: str, rows: int) -> NDArray[np.float32] | None:
    """One-hot labels, then attributes, of nodes or edges."""
    columns = []
    for kind in ("labels", "attributes"):
        name = f"{what}_{kind}"
        if not tables.has(name):
            continue
        values = tables.numbers(name)
        if len(values) != rows:
            raise tables.broken(name, f"must have a line for each of the {rows} {what}s, got {len(values)}")
        columns += [one_hot(column) for column in values.T] if kind == "labels" else [values.astype(np.float32)]
    return np.concatenate(columns, axis=1) if columns else None


def one_hot(labels: NDArray[np.float64]) -> NDArray[np.float32]:
    """A column for each label that occurs."""
    known, which = np.unique(labels, return_inverse=True)
    return np.eye(len(known), dtype=np.float32)[which]


@dataclass(frozen=True)
class Tables:
    """The text files of one set."""

    place: Path
    name: str
    texts: dict[str, bytes]

    @staticmethod
    def open(path: Path) -> Tables:
        """Read all tables of a zip file or a folder."""
        try:
            if path.is_dir():
                files = {file.name: file.read_bytes() for file in sorted(path.glob("*.txt"))}
            else:
                with zipfile.ZipFile(path) as archive:
                    names = [name for name in archive.namelist() if name.endswith(".txt")]
                    files = {Path(name).name: zip_member(archive, name) for name in names}
        except Exception as error:  # a damaged zip file raises many kinds
            raise DataError(f"{path}: must be a TU set, a folder or a zip file ({error})") from error
        name = next((file[: -len("_A.txt")] for file in files if file.endswith("_A.txt")), None)
        if name is None:
            raise DataError(f"{path}: must have a file NAME_A.txt, got {', '.join(files) or 'no .txt file'}")
        prefix = f"{name}_"
        return Tables(path, name, {f[len(prefix) : -4]: text for f, text in files.items() if f.startswith(prefix)})

    def has(self, table: str) -> bool:
        """Whether the set has this table."""
        return table in self.texts

    def numbers(self, table: str) -> NDArray[np.float64]:
        """A table, line by line."""
        if table not in self.texts:
            raise DataError(f"{self.place}: must have {self.name}_{table}.txt")
        if not self.texts[table].strip():
            return np.empty((0, 2))
        try:
            lines = io.BytesIO(self.texts[table])
            return np.loadtxt(lines, dtype=np.float64, delimiter=",", comments=None, ndmin=2)
        except ValueError as error:
            raise self.broken(table, f"must have numbers only, as many on each line ({error})") from error

    def ints(self, table: str) -> Ints:
        """A table of whole numbers."""
        found = self.numbers(table)
        if not np.isfinite(found).all() or (found != np.rint(found)).any():
            raise self.broken(table, "must have whole numbers")
        return found.astype(np.int64)

    def broken(self, table: str, rule: str) -> DataError:
        """The error for a table."""
        return DataError(f"{self.place}: {self.name}_{table}.txt {rule}")
