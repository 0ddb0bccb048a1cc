"""How fast protein graphs are built, and the paper's table of the human proteins.

    python benchmarks/protein_build.py            # reads $AUGTREE_DATA/proteins and tu

The 39 sample structures, packed and named as AlphaFold's, stand in a plain tar archive as often as it takes, as the
published archives do; annotations and ontology are the real ones. The estimate is for as many structures as the human
set has. The sample's proteins are twice as long as the human ones on average (1,047 residues against 528), so that it
is on the safe side.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from augtree.data import Dataset
from augtree.data.graphs.tu import tu_dataset
from augtree.data.proteins import build_proteins, read_human_proteins
from measure import RESULTS, machine, table, write

HUMAN, RESIDUES = 20_504, 10_827_125


def figures(data: Dataset) -> dict[str, Any]:
    """The row of the paper's table: graphs, functions, nodes and average degrees from the least to the greatest."""
    nodes = torch.tensor([graph.num_nodes for graph in data.samples])
    degrees = torch.tensor([graph.num_edges for graph in data.samples]) / nodes
    return {"graphs": len(data), "functions": data.num_classes, "nodes": ends(nodes), "degree": ends(degrees)}


def ends(values: Tensor) -> list[float]:
    """The least and the greatest."""
    return [values.min().item(), values.max().item()]


def make_archive(sample: Path, path: Path, copies: int) -> None:
    """A tar archive in AlphaFold's form."""
    with tarfile.open(sample) as tar, tarfile.open(path, "w") as out:
        for number, member in enumerate(tar):
            stream = tar.extractfile(member)
            assert stream is not None
            content = gzip.compress(stream.read(), mtime=0)
            for copy in range(copies):
                info = tarfile.TarInfo(f"AF-B{number:02d}C{copy:03d}-F1-model_v4.pdb.gz")
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))


def one_build(archive: Path, root: Path, out: Path, workers: int) -> dict[str, Any]:
    """A build, with the time of its parts."""
    marks: list[tuple[float, int]] = []

    def progress(done: int, *_: int) -> None:
        marks.append((time.perf_counter(), done))

    begin = time.perf_counter()
    annotations, ontology = next(root.glob("*.gaf.gz")), next(root.glob("*.obo.gz"))
    built = build_proteins(archive, annotations, ontology, out, workers=workers, progress=progress)
    end = time.perf_counter()
    reading = marks[-1][0] - marks[0][0]
    structures = marks[-1][1]
    here, workers_used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "workers": workers,
        "structures": structures,
        "residues": built.counts["residues"],
        "edges": built.counts["edges"],
        "seconds": round(end - begin, 1),
        "seconds_before": round(marks[0][0] - begin, 1),
        "seconds_reading": round(reading, 1),
        "seconds_after": round(end - marks[-1][0], 1),
        "structures_per_second": round(structures / reading, 1),
        "residues_per_second": round(built.counts["residues"] / reading),
        "cpu_seconds": round(sum(used.ru_utime + used.ru_stime for used in (here, workers_used)), 1),
        "peak_mb": round(here.ru_maxrss / 1024),
        "peak_mb_of_a_worker": round(workers_used.ru_maxrss / 1024),
    }


def estimate(row: dict[str, Any]) -> dict[str, float]:
    """Minutes for the human set: by the number of structures, and by that of residues."""
    fixed = row["seconds_before"] + row["seconds_after"] * HUMAN / row["structures"]
    by_structures, by_residues = HUMAN / row["structures_per_second"], RESIDUES / row["residues_per_second"]
    return {
        "minutes_by_structures": round((fixed + by_structures) / 60, 1),
        "minutes_by_residues": round((fixed + by_residues) / 60, 1),
    }


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Builds with different numbers of workers, each in a process of its own, for its memory."""
    rows = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as place:
        archive = Path(place) / "structures.tar"
        make_archive(options.root / "structures_sample.tar.gz", archive, options.copies)
        for workers in options.workers:
            out = Path(place) / f"out-{workers}"
            words = [str(word) for word in (archive, options.root, out, workers)]
            done = subprocess.run([sys.executable, __file__, "--one", *words], stdout=subprocess.PIPE, check=True)
            row = json.loads(done.stdout)
            rows.append(row | estimate(row))
    return rows


def data_table(root: Path) -> list[dict[str, Any]]:
    """Two columns of the paper's table, as printed there and as the files here have them."""
    found = {
        "PROTEINS, the paper": {"graphs": 1113, "functions": 2, "nodes": [4, 620], "degree": [3.4, 10.1]},
        "PROTEINS": figures(tu_dataset(root.parent / "tu" / "PROTEINS.zip")),
        "human proteins, the paper": {"graphs": HUMAN, "functions": 1198, "nodes": [16, 34350], "degree": [1.8, 9.4]},
        "human proteins, prebuilt": figures(read_human_proteins(root)),
        "human proteins, prebuilt, terms=1198": figures(read_human_proteins(root, terms=1198)),
    }
    return [{"set": name, **row} for name, row in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(os.environ.get("AUGTREE_DATA", "data")) / "proteins")
    parser.add_argument("--copies", type=int, default=50, help="of the sample; 0: keep the figures that are on file")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--scratch", type=Path, help="where there is room for the archive (10 MB a copy)")
    parser.add_argument("--one", nargs=4, metavar=("ARCHIVE", "ROOT", "OUT", "WORKERS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        archive, root, out, workers = options.one
        print(json.dumps(one_build(Path(archive), Path(root), Path(out), int(workers))))
        return
    kept = json.loads((RESULTS / "protein_build.json").read_text()) if options.copies == 0 else {}
    rows = kept["builds"] if kept else measured(options)
    header = [
        "workers",
        "structures",
        "seconds",
        "structures/s",
        "residues/s",
        "peak MB",
        "20,504 structures, minutes",
    ]
    names = ("workers", "structures", "seconds", "structures_per_second", "residues_per_second", "peak_mb")
    cells = [[*(f"{row[name]:,}" for name in names), f"{row['minutes_by_structures']}"] for row in rows]
    print(table(header, cells))
    found = data_table(options.root)
    ranges = [[f"{row[name][0]:.4g} to {row[name][1]:.5g}" for name in ("nodes", "degree")] for row in found]
    lines = [
        [row["set"], f"{row['graphs']:,}", f"{row['functions']:,}", *two]
        for row, two in zip(found, ranges, strict=True)
    ]
    print("\n" + table(["set", "graphs", "functions", "nodes", "average degree"], lines))
    about = {"machine": machine(1), "copies": kept.get("copies", options.copies)}
    path = write("protein_build", {**about, "builds": rows, "sets": found})
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
