"""Builds a protein data set: structures and Gene Ontology files in, a folder of compact graphs and labels out."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augtree.data.proteins.build.annotations import (
    Annotations,
    Labels,
    checked_aspects,
    evidence_codes,
    make_labels,
    read_annotations,
)
from augtree.data.proteins.build.archive import Archive, split
from augtree.data.proteins.build.assemble import Assembly, assemble
from augtree.data.proteins.build.layout import (
    BAD_FILES,
    FORMAT,
    KIND,
    LABELS,
    MANIFEST,
    PLAN,
    PROTEINS,
    WORK,
    csv_bytes,
    npz_bytes,
)
from augtree.data.proteins.build.names import choose_structures
from augtree.data.proteins.build.ontology import Ontology, read_ontology
from augtree.data.proteins.build.parts import do_parts, missing_parts, part_path
from augtree.errors import ArgumentError, DataError, need, number, whole_number
from augtree.files import write_atomically
from augtree.version import __version__

PART_FILES, PART_BYTES = 64, 16 << 20
"""How much is done, and kept, at a time."""

Progress = Callable[[int, int, int], None]
"""Called with how many structures are done, how many there are, and how many of the done ones are bad."""


@dataclass(frozen=True)
class Options:
    """The options of a build; the rest follows from its inputs."""

    cutoff: float
    fragments: str
    evidence: list[str]
    aspects: str
    min_proteins: int


@dataclass(frozen=True)
class Build:
    """What was built: the folder, and its manifest (versions, options, inputs, counts)."""

    out: Path
    manifest: Mapping[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """What was found and what was left out."""
        return dict(self.manifest["counts"])


def build_proteins(
    structures: str | Path,
    annotations: str | Path,
    ontology: str | Path,
    out: str | Path,
    *,
    cutoff: float = 6.0,
    fragments: str = "join",
    evidence: str | Sequence[str] | None = None,
    aspects: Iterable[str] = "PFC",
    min_proteins: int = 50,
    workers: int = 1,
    progress: Progress = lambda *_: None,
) -> Build:
    r"""Build residue graphs with Gene Ontology labels from structures.

    The same call again resumes a build that was interrupted, and the result has the same bytes.

    Parameters
    ----------
    structures
        A folder (with its subfolders) or a tar archive of PDB or mmCIF files.
    annotations
        A GAF file: which protein has which term.
    ontology
        The Gene Ontology as an OBO file.
    out
        The folder that is written; `read_proteins` reads it.
    cutoff
        An edge joins Calpha atoms closer than this, in angstrom.
    fragments
        Fragments of long proteins: "join" or "apart".
    evidence
        Evidence codes that count, or "experimental", "curated" or "all"; by default all.
    aspects
        Some of P (biological process), F (molecular function) and C (cellular component).
    min_proteins
        The fewest proteins that a term needs to be a label.
    workers
        Processes; with more than one, a script needs `if __name__ == "__main__":`.
    progress
        Called after each part with the number of structures done, of all, and of bad ones.

    Examples
    --------
    >>> import tempfile
    >>> gaf = "UniProtKB P12345 X  GO:0000001 PMID:1 IDA  F name  protein taxon:9606 20240101 UniProt  "
    >>> files = {
    ...     "P12345.pdb": "ATOM      1  CA  MET A   1       0.000   0.000   0.000  1.00 91.00           C",
    ...     "goa.gaf": "!gaf-version: 2.2\n" + gaf.replace(" ", "\t"),
    ...     "go.obo": "[Term]\nid: GO:0000001\nname: binding\nnamespace: molecular_function",
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in files.items():
    ...         _ = Path(folder, name).write_text(text + "\n")
    ...     places = [Path(folder, name) for name in ("", "goa.gaf", "go.obo", "human")]
    ...     build_proteins(*places, min_proteins=1).counts["labels"]
    1

    """
    options = checked_options(cutoff, fragments, evidence, aspects, min_proteins)
    whole_number("workers", workers, 1, 1024)
    for module in ("gemmi", "scipy.spatial"):
        need(module, "protein")
    terms = read_ontology(ontology)
    annotated = read_annotations(annotations, options.evidence, options.aspects)
    archive = Archive.open(Path(structures))
    inputs = {
        "structures": {"name": archive.place.name, "files": len(archive.entries), "sha256": listing(archive)},
        "annotations": file_facts(Path(annotations)) | {"version": annotated.version},
        "ontology": file_facts(Path(ontology)) | {"version": terms.version},
    }
    plan = {"kind": KIND, "format": FORMAT, "options": asdict(options), "inputs": inputs}
    finished = begin(Path(out), plan, changes(archive))
    if finished is not None:
        return Build(Path(out), finished)
    found, bad, set_aside = read_all(archive, Path(out) / WORK, options, workers, progress)
    if not found.ids:
        raise DataError(f"{structures}: must have a structure that can be read; {bad[0][0]} {bad[0][1]}")
    labels, facts = labels_of(found, annotated, terms, options)
    counts = {
        "structure_files": len(archive.entries),
        "set_aside": set_aside,
        "bad_files": len(bad),
        "other_files": archive.ignored,
        **found.counts,
        **facts,
    }
    manifest = {**plan, "versions": versions(), "counts": counts}
    finish(Path(out), found, labels, bad, manifest)
    return Build(Path(out), manifest)


def checked_options(
    cutoff: float, fragments: str, evidence: str | Sequence[str] | None, aspects: Iterable[str], min_proteins: int
) -> Options:
    """The options, or an ArgumentError."""
    if fragments not in ("join", "apart"):
        raise ArgumentError("fragments", "must be join or apart", fragments)
    return Options(
        cutoff=number("cutoff", cutoff, 0, 100, open_low=True),
        fragments=fragments,
        evidence=list(evidence_codes(evidence)),
        aspects=checked_aspects(aspects),
        min_proteins=whole_number("min_proteins", min_proteins, 1, 10**9),
    )


def begin(folder: Path, plan: Mapping[str, Any], changed: str) -> dict[str, Any] | None:
    """Make the folder ready; the manifest where this very build is finished."""
    work = folder / WORK
    begun = {**plan, "versions": versions(), "changed": changed}
    if (folder / MANIFEST).is_file():
        finished = same_build(folder, folder / MANIFEST, plan)
        shutil.rmtree(work, ignore_errors=True)
        return finished
    if (work / PLAN).is_file():
        same_build(folder, work / PLAN, begun)
        return None
    if folder.exists() and (not folder.is_dir() or any(path.name != WORK for path in folder.iterdir())):
        raise ArgumentError("out", "must be a new or an empty folder, or that of this build", str(folder))
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("out", f"must be a folder that can be written ({error.strerror})", str(folder)) from error
    write_atomically(work / PLAN, json.dumps(begun).encode())
    return None


def same_build(folder: Path, path: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says, if it is about this build."""
    try:
        before: dict[str, Any] = json.loads(path.read_bytes())
        other = next((part for part in plan if before.get(part) != plan[part]), None)
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: must be what a build has written ({error})") from error
    if other is not None:
        old, new = before.get(other), plan[other]
        keys = [other]
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [f"{other}/{key}" for key in new if old.get(key) != new[key]]
        raise ArgumentError("out", f"must be a new folder: its build has other {', '.join(keys)}", str(folder))
    return before


def read_all(
    archive: Archive, work: Path, options: Options, workers: int, progress: Progress
) -> tuple[Assembly, list[tuple[str, str]], int]:
    """All graphs, the files that are bad with the reason, and the number of those that another stands for."""
    models = [entry.model for entry in archive.entries]
    kept, instead = choose_structures(models)
    chunks = split(kept, archive.entries, PART_FILES, PART_BYTES)
    there = [len(chunk) for i, chunk in enumerate(chunks) if part_path(work, i).exists()]
    done, bad_files = sum(there), 0
    progress(done, len(kept), bad_files)

    def report(good: int, bad: int) -> None:
        nonlocal done, bad_files
        done, bad_files = done + good + bad, bad_files + bad
        progress(done, len(kept), bad_files)

    missing = missing_parts(archive, chunks, work, options.cutoff)
    workers = max(1, min(workers, len(chunks) - len(there)))
    do_parts(missing, workers, report)
    paths = [part_path(work, i) for i in range(len(chunks))]
    found = assemble(paths, models, work, join_fragments=options.fragments == "join")
    bad = [(archive.entries[i].file, reason) for i, reason in found.bad]
    for i, other in instead.items():
        if (models[i].version, models[i].form) == (models[other].version, models[other].form):
            rule = f"must not be the same protein and fragment as {archive.entries[other].file}"
            bad.append((archive.entries[i].file, rule))
    return found, sorted(bad), len(instead) + len(found.bad) - len(bad)


def labels_of(
    found: Assembly, annotated: Annotations, terms: Ontology, options: Options
) -> tuple[Labels, dict[str, int]]:
    """The labels of the graphs, and what was counted."""
    labels, facts = make_labels(
        found.accessions, annotated.terms, terms, min_proteins=options.min_proteins, aspects=options.aspects
    )
    counts = {
        "terms": len(labels.terms),
        "labels": len(labels.indices),
        "graphs_without_label": int((np.diff(labels.indptr) == 0).sum()),
        **facts,
        **{f"gaf_{name}": count for name, count in annotated.counts.items()},
    }
    return labels, counts


def finish(
    folder: Path, found: Assembly, labels: Labels, bad: list[tuple[str, str]], manifest: Mapping[str, Any]
) -> None:
    """Put everything in its place, the manifest last: a folder without it is not a data set yet."""
    for name in found.files:
        (folder / WORK / name).replace(folder / name)
    write_atomically(folder / LABELS, npz_bytes(vars(labels)))
    header = ("id", "accession", "files", "chains", "residues", "edges", "no_calpha", "unknown", "terms")
    columns = (found.ids, found.accessions, found.made_of, *found.figures.values(), np.diff(labels.indptr).tolist())
    write_atomically(folder / PROTEINS, csv_bytes(header, zip(*columns, strict=True)))
    write_atomically(folder / BAD_FILES, csv_bytes(("file", "reason"), bad))
    write_atomically(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    shutil.rmtree(folder / WORK)


def versions() -> dict[str, str]:
    """What the bytes of a build may depend on."""
    packages = {name: importlib.metadata.version(name) for name in ("gemmi", "numpy", "scipy")}
    return {"augtree": __version__, **packages}


def listing(archive: Archive) -> str:
    """A hash of the names and sizes of all structures."""
    rows = "".join(f"{entry.file}\t{entry.size}\n" for entry in archive.entries)
    return hashlib.sha256(rows.encode()).hexdigest()


def changes(archive: Archive) -> str:
    """A hash of when the files were changed, so that no build goes on with others."""
    places = (
        [archive.place / entry.file for entry in archive.entries] if archive.kind == "folder" else [archive.place]
    )
    return hashlib.sha256(repr([place.stat().st_mtime_ns for place in places]).encode()).hexdigest()


def file_facts(path: Path) -> dict[str, Any]:
    """A file's name and hash."""
    with path.open("rb") as file:
        return {"name": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
