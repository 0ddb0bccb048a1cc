"""The work of a build in parts: some files each, kept as one file each, so that a killed build goes on."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augtree.data.proteins.build.archive import Archive, Entry, read_entry
from augtree.data.proteins.build.edges import Graph, near_pairs, packed
from augtree.data.proteins.build.structures import UNKNOWN, read_structure
from augtree.errors import DataError
from augtree.files import write_atomically

NODES, EDGES = ("residues", "numbers", "plddt", "up_degree"), ("offset",)
"""The arrays of a graph that have a value a node, and a value an edge."""


@dataclass(frozen=True)
class Part:
    """A part of the work, as it goes to a worker; `contents` are the bytes where only the parent can read them."""

    path: Path
    place: Path
    cutoff: float
    entries: tuple[tuple[int, Entry], ...]
    contents: tuple[bytes, ...] | None = None


def graph_of(content: bytes, entry: Entry, cutoff: float) -> Graph:
    """The graph of a structure file."""
    found = read_structure(content, entry.model)
    up_degree, offset = packed(near_pairs(found.points, cutoff), len(found.types))
    return Graph(found.types, found.numbers, found.plddt, up_degree, offset, found.chains, found.skipped)


def do_part(part: Part) -> tuple[int, int]:
    """Read the files, write their graphs; how many could be read, and how many could not."""
    graphs: list[tuple[int, Graph]] = []
    bad: list[tuple[int, str]] = []
    for i, (number, entry) in enumerate(part.entries):
        try:
            content = part.contents[i] if part.contents is not None else read_entry(part.place, entry)
            graphs.append((number, graph_of(content, entry, part.cutoff)))
        except (DataError, OSError) as error:
            bad.append((number, " ".join(str(error).split())))
    write_part(part.path, graphs, bad)
    return len(graphs), len(bad)


def write_part(path: Path, graphs: Sequence[tuple[int, Graph]], bad: Sequence[tuple[int, str]]) -> None:
    """Keep graphs, and why others are not there, in one step."""
    kept = [graph for _, graph in graphs]
    arrays: dict[str, Any] = {
        "entry": np.array([number for number, _ in graphs], np.int64),
        "num_nodes": np.array([len(graph.residues) for graph in kept], np.int64),
        "num_edges": np.array([len(graph.offset) for graph in kept], np.int64),
        "chains": np.array([graph.chains for graph in kept], np.int64),
        "skipped": np.array([graph.skipped for graph in kept], np.int64),
        "unknown": np.array([int((graph.residues == UNKNOWN).sum()) for graph in kept], np.int64),
        "bad_entry": np.array([number for number, _ in bad], np.int64),
        "bad_reason": np.array([reason for _, reason in bad], np.str_),
    }
    for name in (*NODES, *EDGES):
        columns = [getattr(graph, name) for graph in kept]
        arrays[name] = np.concatenate(columns) if columns else np.empty(0)
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_atomically(path, content.getvalue())


def read_part(path: Path) -> Iterator[tuple[int, Graph]]:
    """The graphs of a part with the numbers of their files."""
    with np.load(path, allow_pickle=False) as file:
        values = {name: file[name] for name in file.files}
    node, edge = (np.cumsum([0, *values[name]]) for name in ("num_nodes", "num_edges"))
    for i, number in enumerate(values["entry"].tolist()):
        fields = {name: values[name][node[i] : node[i + 1]] for name in NODES}
        fields |= {name: values[name][edge[i] : edge[i + 1]] for name in EDGES}
        yield number, Graph(**fields, chains=int(values["chains"][i]), skipped=int(values["skipped"][i]))


def read_figures(path: Path) -> dict[str, Any]:
    """What a part holds, without its graphs."""
    names = ("entry", "num_nodes", "num_edges", "chains", "skipped", "unknown", "bad_entry", "bad_reason")
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in names}


def missing_parts(archive: Archive, chunks: Sequence[tuple[int, ...]], folder: Path, cutoff: float) -> Iterator[Part]:
    """The parts that are not there yet. A compressed archive is read here, as far as needed."""
    left = {i: chunk for i, chunk in enumerate(chunks) if not part_path(folder, i).exists()}
    streamed: Iterator[tuple[int, bytes]] = iter(())
    if archive.kind == "compressed tar" and left:
        streamed = archive.streamed([number for chunk in left.values() for number in chunk])
    for i, chunk in left.items():
        entries = tuple((number, archive.entries[number]) for number in chunk)
        contents = tuple(next(streamed)[1] for _ in chunk) if archive.kind == "compressed tar" else None
        yield Part(part_path(folder, i), archive.place, cutoff, entries, contents)


def part_path(folder: Path, number: int) -> Path:
    """The file of a part."""
    return folder / f"part-{number:06d}.npz"


def do_parts(parts: Iterator[Part], workers: int, done: Callable[[int, int], None]) -> None:
    """Do all parts, here or in other processes, and tell of each that is done."""
    if workers == 1:
        for part in parts:
            done(*do_part(part))
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_worker)
    running: dict[Future[tuple[int, int]], Part] = {}
    try:
        for part in parts:
            running[pool.submit(do_part, part)] = part
            # Only so much is read ahead: memory stays bounded whatever the archive.
            while len(running) >= 2 * workers:
                collect(running, done)
        while running:
            collect(running, done)
    except BrokenProcessPool as error:
        files = [entry.file for part in running.values() for _, entry in part.entries]
        raise DataError(
            f"a worker died, perhaps of one of {len(files)} files ({files[0] if files else 'none'} ...): "
            "build again with one worker, or with more memory; what is done is kept"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def collect(running: dict[Future[tuple[int, int]], Part], done: Callable[[int, int], None]) -> None:
    """Wait for at least one part."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        found = future.result()
        del running[future]
        done(*found)


def prepare_worker() -> None:
    """A worker ends with its parent, however that ends, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
