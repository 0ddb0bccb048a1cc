"""Reads protein graphs with Gene Ontology labels from a folder that was built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.proteins.build.annotations import Labels
from augtree.data.proteins.build.edges import both_ways, unpacked
from augtree.data.proteins.build.layout import ARRAYS, FORMAT, KIND, LABELS, MANIFEST, PROTEINS
from augtree.data.proteins.build.ontology import NAMESPACES, text_lines
from augtree.data.proteins.build.structures import UNKNOWN
from augtree.data.splits import choose, make_split
from augtree.errors import ArgumentError, DataError, need, one_of, whole_number

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Proteins:
    """All graphs of a set in a few arrays, one graph behind the other, and their labels."""

    ids: tuple[str, ...]
    accessions: tuple[str, ...]
    num_nodes: Ints
    num_edges: Ints
    residues: NDArray[np.uint8]
    plddt: NDArray[np.float32] | None
    up_degree: NDArray[Any]
    offset: NDArray[Any]
    labels: Labels

    @cached_property
    def places(self) -> list[tuple[slice, slice]]:
        """Where each graph's nodes and edges are."""
        ends = [np.cumsum([0, *count]).tolist() for count in (self.num_nodes, self.num_edges)]
        nodes, edges = ([slice(*pair) for pair in pairwise(end)] for end in ends)
        return list(zip(nodes, edges, strict=True))

    def graph(self, i: int) -> Any:
        """A graph as PyG Data; it has its own memory, so that it can be pickled without the others."""
        nodes, edges = self.places[i]
        up_degree, offset = self.up_degree[nodes], self.offset[edges]
        if int(up_degree.sum()) != len(offset):
            raise DataError(f"{self.ids[i]}: up_degree must sum to its {len(offset)} edges, got {up_degree.sum()}")
        pairs = unpacked(up_degree, offset)
        if pairs.size and int(pairs.max()) >= len(up_degree):
            raise DataError(f"{self.ids[i]}: edges must end below node {len(up_degree)}, got {pairs.max()}")
        types = torch.from_numpy(self.residues[nodes].astype(np.int64))
        x = torch.nn.functional.one_hot(types, UNKNOWN + 1).to(torch.float32)
        if self.plddt is not None:
            x = torch.cat([x, torch.from_numpy(self.plddt[nodes] / np.float32(100))[:, None]], dim=1)
        edge_index = torch.from_numpy(both_ways(pairs, len(types)))
        return need("torch_geometric.data", "graph").Data(x=x, edge_index=edge_index)

    def digest(self, i: int) -> bytes:
        """What is the same for graphs with the same residues and edges."""
        nodes, edges = self.places[i]
        parts = (self.residues[nodes], self.up_degree[nodes], self.offset[edges])
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).digest()


def read_proteins(
    folder: str | Path,
    *,
    terms: int | None = None,
    namespace: str | None = None,
    limit: int | None = None,
    annotated: bool = False,
    plddt: bool = True,
    seed: int = 0,
) -> Dataset:
    """Read a folder that `build_proteins` made: several labels a protein, 60/20/20 by the rarest.

    Parameters
    ----------
    folder
        The folder.
    terms
        Keep the most frequent terms, this many.
    namespace
        Keep the terms of one namespace: P, F, C, or its full name.
    limit
        Draw this many proteins.
    annotated
        Leave out proteins that have none of the terms.
    plddt
        Whether the last column of x is pLDDT / 100; those before are the one-hot residue type, the last for unknown.
    seed
        Of the split and of the proteins drawn.

    Examples
    --------
    >>> read_proteins("human", namespace="F", terms=100)  # doctest: +SKIP

    """
    place = Path(folder)
    manifest = read_manifest(place)
    try:
        arrays = {name: np.load(place / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
        with np.load(place / LABELS, allow_pickle=False) as file:
            labels = Labels(
                file["indptr"], file["indices"], *(texts(file[n]) for n in ("terms", "namespaces", "names"))
            )
        accessions = tuple(line.split(",")[1] for _, line in text_lines(place / PROTEINS))[1:]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{place}: must be a folder that `augtree data build proteins` has finished ({error})"
        ) from error
    if not plddt:
        arrays["plddt"] = None
    proteins = check_lengths(place, Proteins(texts(arrays.pop("ids")), accessions, **arrays, labels=labels))
    options = {"terms": terms, "namespace": namespace, "limit": limit, "annotated": annotated}
    again = {"source": str(place.resolve()), "seed": seed, **({} if plddt else {"plddt": False})}
    note = f"edges: Calpha closer than {manifest['options']['cutoff']:g} angstrom"
    return dataset_of(proteins, place.resolve().name, options, again, (note,), seed)


def is_proteins(path: Path) -> bool:
    """Whether a folder was made by `build_proteins`."""
    try:
        return bool(json.loads((path / MANIFEST).read_bytes()).get("kind") == KIND)
    except (OSError, ValueError, AttributeError):
        return False


def read_manifest(place: Path) -> dict[str, Any]:
    """The manifest of a folder that was built."""
    if not is_proteins(place):
        raise DataError(f"{place}: must be a folder that `augtree data build proteins` has finished: no {MANIFEST}")
    manifest: dict[str, Any] = json.loads((place / MANIFEST).read_bytes())
    if manifest.get("format") != FORMAT:
        raise DataError(f"{place}: {MANIFEST} must have format {FORMAT}, got {manifest.get('format')!r}")
    return manifest


def check_lengths(place: Path, found: Proteins) -> Proteins:
    """The arrays, if they fit each other."""
    count, nodes, edges = len(found.ids), int(found.num_nodes.sum()), int(found.num_edges.sum())
    lengths = {
        "num_nodes": (len(found.num_nodes), count),
        "num_edges": (len(found.num_edges), count),
        "accessions": (len(found.accessions), count),
        "labels": (len(found.labels.indptr), count + 1),
        "residues": (len(found.residues), nodes),
        "up_degree": (len(found.up_degree), nodes),
        "offset": (len(found.offset), edges),
        "label indices": (len(found.labels.indices), int(found.labels.indptr[-1])),
    }
    for name, (length, wanted) in lengths.items():
        if length != wanted:
            raise DataError(f"{place}: {name} must have {wanted} values, got {length}")
    return found


def dataset_of(
    found: Proteins, name: str, options: dict[str, Any], again: dict[str, Any], notes: tuple[str, ...], seed: int
) -> Dataset:
    """The selected graphs and terms, with a split."""
    need("torch_geometric.data", "graph")
    columns = columns_of(found.labels, options["terms"], options["namespace"])
    rows = np.arange(len(found.ids))
    labels = matrix(found.labels, rows, columns)
    unlabelled = ~labels.any(axis=1)
    if options["annotated"]:
        rows = rows[~unlabelled]
        if not len(rows):
            raise ArgumentError("annotated", "must be false where no protein has one of the terms", True)
    elif unlabelled.any():
        notes = (*notes, f"{int(unlabelled.sum())} proteins have none of the terms: all their labels are 0")
    stratum = rarest(labels)
    if options["limit"] is not None:
        some = whole_number("limit", options["limit"], 1, len(rows))
        rows = rows[choose(stratum[rows], some, seed=seed, role="proteins")]
    clusters = together(*zip(*((found.accessions[i], found.digest(i)) for i in rows.tolist()), strict=True))
    # Of proteins that stay together the first is drawn, and the others follow. The terms that are somebody's rarest
    # are small strata: as groups of one label they share their rounding, and the shares are met as a whole.
    first, cluster = np.unique(clusters, return_index=True, return_inverse=True)[1:]
    split = make_split(np.zeros(len(first)), groups=stratum[rows[first]], seed=seed)[cluster]
    kept = {key: value for key, value in options.items() if value not in (None, False)}
    text = ", ".join(f"{key}={value}" for key, value in kept.items())
    note = f"split made: 60/20/20 by the rarest term, seed {seed}"
    if len(first) < len(rows):
        note += f"; {len(rows) - len(first)} graphs are in the split of one that is identical or of the same protein"
    return Dataset(
        name=f"{name}[{text}]" if text else name,
        samples=tuple(found.graph(i) for i in rows.tolist()),
        labels=torch.from_numpy(labels[rows]),
        classes=tuple(found.labels.terms[i] for i in columns.tolist()),
        split=split,
        groups=np.zeros(len(rows), np.int64),
        group_names=("all",),
        source={**again, **kept},
        notes=(*notes, note),
        columns={"id": tuple(found.ids[i] for i in rows.tolist())},
    )


def together(*keys: Sequence[Hashable]) -> Ints:
    """A number for each sample; samples that share one of their keys, also by way of others, share the number.

    >>> together(["a", "b", "b", "c"], [1, 2, 3, 1]).tolist()
    [0, 1, 1, 0]
    """
    parent = list(range(len(keys[0])))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for column in keys:
        first: dict[Hashable, int] = {}
        for i, key in enumerate(column):
            ends = root(i), root(first.setdefault(key, i))
            parent[max(ends)] = min(ends)
    return np.array([root(i) for i in range(len(parent))], np.int64)


def columns_of(labels: Labels, terms: int | None, namespace: str | None) -> Ints:
    """Which terms: of a namespace, and of these the most frequent, in the order of ids."""
    if not labels.terms:
        raise DataError("labels must have at least one term: build with a smaller min_proteins")
    columns = np.arange(len(labels.terms))
    if namespace is not None:
        one_of("namespace", namespace, [*NAMESPACES, *NAMESPACES.values()])
        wanted = NAMESPACES.get(namespace, namespace)
        columns = columns[np.array(labels.namespaces) == wanted]
    if terms is not None:
        most = whole_number("terms", terms, 1, len(columns))
        count = np.bincount(labels.indices, minlength=len(labels.terms))[columns]
        columns = np.sort(columns[np.argsort(-count, kind="stable")[:most]])
    if not len(columns):
        raise ArgumentError("namespace", "must be one that has terms here", namespace)
    return columns


def matrix(labels: Labels, rows: Ints, columns: Ints) -> NDArray[np.uint8]:
    """Labels as 0 and 1."""
    out = np.zeros((len(rows), len(labels.terms)), np.uint8)
    out[np.repeat(rows, np.diff(labels.indptr)), labels.indices] = 1
    return np.ascontiguousarray(out[:, columns])


def rarest(labels: NDArray[np.uint8]) -> Ints:
    """The rarest label of each row; where there is none, the number of labels."""
    order = np.argsort(labels.sum(axis=0, dtype=np.int64), kind="stable")
    found: Ints = np.where(labels.any(axis=1), order[labels[:, order].argmax(axis=1)], labels.shape[1])
    return found


def texts(values: NDArray[Any]) -> tuple[str, ...]:
    """Texts as Python has them."""
    return tuple(str(value) for value in values.tolist())
