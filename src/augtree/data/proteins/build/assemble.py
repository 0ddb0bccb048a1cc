"""Assembles the graphs of all parts in memory-mapped files, and joins fragments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augtree.data.proteins.build.edges import Graph
from augtree.data.proteins.build.fragments import join
from augtree.data.proteins.build.layout import ARRAYS, EDGE_FILES, NODE_FILES
from augtree.data.proteins.build.names import Structure
from augtree.data.proteins.build.parts import read_figures, read_part
from augtree.data.proteins.build.structures import UNKNOWN
from augtree.errors import DataError

FIGURES = ("chains", "num_nodes", "num_edges", "skipped", "unknown")


@dataclass(frozen=True)
class Assembly:
    """The graphs in the order of their ids: what is known of each, the files that hold them, and what is missing."""

    ids: tuple[str, ...]
    accessions: tuple[str, ...]
    made_of: tuple[int, ...]
    """How many files each comes from."""
    figures: dict[str, list[int]]
    bad: list[tuple[int, str]]
    counts: dict[str, int]
    files: tuple[str, ...]


def assemble(paths: Sequence[Path], models: Sequence[Structure], folder: Path, join_fragments: bool) -> Assembly:
    """Write ids.npy, num_nodes.npy, num_edges.npy and the arrays of all graphs into a folder.

    Memory holds one part, and those fragments whose proteins are not complete yet.
    """
    tables = [read_figures(path) for path in paths]
    bad = [pair for t in tables for pair in zip(t["bad_entry"].tolist(), t["bad_reason"].tolist(), strict=True)]
    entries = [number for t in tables for number in t["entry"].tolist()]
    of_protein = Counter(models[number].protein for number in entries) if join_fragments else Counter[str]()
    together = {protein for protein, count in of_protein.items() if count > 1}
    several = {protein for protein, count in Counter(models[n].protein for n in entries).items() if count > 1}
    ids: dict[str, tuple[Structure, int]] = {}
    figures: dict[str, list[int]] = {}
    for t in tables:
        for i, number in enumerate(t["entry"].tolist()):
            if models[number].protein not in together:
                name = id_of(models[number], several)
                ids[name] = models[number], 1
                figures[name] = [int(t[figure][i]) for figure in FIGURES]
    joined, failed = joined_graphs(paths, models, together, of_protein)
    for protein, (model, graph) in joined.items():
        ids[protein] = model, of_protein[protein]
        unknown = int((graph.residues == UNKNOWN).sum())
        figures[protein] = [graph.chains, len(graph.residues), len(graph.offset), graph.skipped, unknown]
    order = sorted(ids)
    columns = {figure: [figures[name][i] for name in order] for i, figure in enumerate(FIGURES)}
    single = (
        (id_of(models[number], several), graph)
        for path in paths
        for number, graph in read_part(path)
        if models[number].protein not in together
    )
    files = write_files(folder, order, columns, single, {name: graph for name, (_, graph) in joined.items()})
    counts = {
        "graphs": len(order),
        "proteins": len({ids[name][0].accession for name in order}),
        "joined": len(joined),
        "with_several_chains": sum(count > 1 for count in columns["chains"]),
        "residues": sum(columns["num_nodes"]),
        "edges": sum(columns["num_edges"]),
        "residues_without_calpha": sum(columns["skipped"]),
        "unknown_residues": sum(columns["unknown"]),
    }
    accessions = tuple(ids[name][0].accession for name in order)
    return Assembly(
        tuple(order), accessions, tuple(ids[name][1] for name in order), columns, bad + failed, counts, files
    )


def id_of(model: Structure, several: set[str]) -> str:
    """The name of a graph: the protein's, with its fragment where there are several or it is not the first."""
    return f"{model.protein}-F{model.fragment}" if model.protein in several or model.fragment > 1 else model.protein


def joined_graphs(
    paths: Sequence[Path], models: Sequence[Structure], together: set[str], count: Counter[str]
) -> tuple[dict[str, tuple[Structure, Graph]], list[tuple[int, str]]]:
    """The proteins whose fragments are joined, and those for which that failed."""
    joined: dict[str, tuple[Structure, Graph]] = {}
    failed: list[tuple[int, str]] = []
    waiting: dict[str, list[tuple[int, Graph]]] = {}
    for number, graph in (found for path in paths if together for found in read_part(path)):
        protein = models[number].protein
        if protein not in together:
            continue
        there = waiting.setdefault(protein, [])
        there.append((number, graph))
        if len(there) == count[protein]:
            del waiting[protein]
            there.sort(key=lambda pair: models[pair[0]].fragment)
            try:
                joined[protein] = models[there[0][0]], join([graph for _, graph in there])
            except DataError as error:
                failed += [(number, str(error)) for number, _ in there]
    return joined, failed


def write_files(
    folder: Path,
    order: Sequence[str],
    columns: dict[str, list[int]],
    single: Iterator[tuple[str, Graph]],
    joined: dict[str, Graph],
) -> tuple[str, ...]:
    """Every graph to its place, whatever the order in which they come."""
    np.save(folder / "ids.npy", np.array(order, np.str_))
    for name in ("num_nodes", "num_edges"):
        np.save(folder / f"{name}.npy", np.array(columns[name], np.int32))
    starts = {name: np.cumsum([0, *columns[name]]).tolist() for name in ("num_nodes", "num_edges")}
    place = {name: i for i, name in enumerate(order)}
    maps = [
        (name, "num_nodes", new_map(folder, name, kind, starts["num_nodes"][-1])) for name, kind in NODE_FILES.items()
    ]
    maps += [
        (name, "num_edges", new_map(folder, name, kind, starts["num_edges"][-1])) for name, kind in EDGE_FILES.items()
    ]
    for graphs in (single, iter(joined.items())):
        for name, graph in graphs:
            for field, unit, values in maps:
                begin = starts[unit][place[name]]
                column = getattr(graph, field)
                values[begin : begin + len(column)] = column
    for _, _, values in maps:
        if isinstance(values, np.memmap):
            values.flush()
    return tuple(f"{name}.npy" for name in ARRAYS)


def new_map(folder: Path, name: str, kind: type, length: int) -> Any:
    """A new memory-mapped file of a given shape; an empty one cannot be mapped."""
    path = folder / f"{name}.npy"
    if length == 0:
        np.save(path, np.empty(0, kind))
        return np.empty(0, kind)
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(length,))
