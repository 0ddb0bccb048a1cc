"""Reads the prebuilt human set: graphs, labels and sequences in three files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from augtree.data.dataset import Dataset
from augtree.data.proteins.build.annotations import Labels
from augtree.data.proteins.build.ontology import text_lines
from augtree.data.proteins.build.structures import NUMBERS, UNKNOWN
from augtree.data.proteins.reader import Ints, Proteins, check_lengths, dataset_of, texts
from augtree.errors import DataError

GRAPHS, GO_LABELS, SEQUENCES = "graphs_ca10A.npz", "go_labels.npz", "sequences.fasta.gz"
HUMAN = "human-proteins"


def read_human_proteins(
    root: str | Path,
    *,
    terms: int | None = None,
    namespace: str | None = None,
    limit: int | None = None,
    annotated: bool = False,
    seed: int = 0,
) -> Dataset:
    """Read the prebuilt human proteins: Calpha atoms closer than 10 angstrom, no pLDDT.

    Residue types come from the sequences; where there is none, they are unknown.

    Parameters
    ----------
    root
        The folder of the three files, or the one above it (its subfolder is then "proteins").
    terms
        Keep the most frequent terms, this many.
    namespace
        Keep the terms of one namespace: P, F, C, or its full name.
    limit
        Draw this many proteins.
    annotated
        Leave out proteins that have none of the terms.
    seed
        Of the split and of the proteins drawn.

    Examples
    --------
    >>> read_human_proteins("data", terms=1000, limit=2000)  # doctest: +SKIP

    """
    place = next((path for path in (Path(root), Path(root) / "proteins") if (path / GRAPHS).is_file()), None)
    if place is None:
        raise DataError(f"{root}: must have {GRAPHS}, {GO_LABELS} and {SEQUENCES}, there or in proteins/")
    try:
        with np.load(place / GRAPHS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("ids", "num_nodes", "num_edges", "up_degree", "offset")}
        with np.load(place / GO_LABELS, allow_pickle=False) as file:
            found = Labels(file["indptr"], file["indices"], texts(file["terms"]), texts(file["namespace"]), ())
            same = np.array_equal(file["ids"], arrays["ids"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{place}: must have undamaged {GRAPHS} and {GO_LABELS} ({error})") from error
    if not same:
        raise DataError(f"{place}: {GO_LABELS} must have the ids of {GRAPHS}")
    ids = texts(arrays.pop("ids"))
    residues, known = residues_from(place / SEQUENCES, ids, arrays["num_nodes"])
    proteins = check_lengths(place, Proteins(ids, ids, residues=residues, plddt=None, **arrays, labels=found))
    options = {"terms": terms, "namespace": namespace, "limit": limit, "annotated": annotated}
    again = {"source": HUMAN, "root": str(Path(root).resolve()), "seed": seed}
    notes = (
        "edges: Calpha closer than 10 angstrom (the paper's are 6), about 3 % of them missing",
        f"sequences for {known} of {len(ids)} proteins; the residues of the others are unknown",
    )
    return dataset_of(proteins, HUMAN, options, again, notes, seed)


def residues_from(path: Path, ids: tuple[str, ...], lengths: Ints) -> tuple[NDArray[np.uint8], int]:
    """Residue types of all proteins, unknown where there is no sequence; and the number of sequences used."""
    start = dict(zip(ids, (np.cumsum(lengths) - lengths).tolist(), strict=True))
    length = dict(zip(ids, lengths.tolist(), strict=True))
    table = np.full(256, UNKNOWN, np.uint8)
    for letter, number in NUMBERS.items():
        table[[ord(letter), ord(letter.lower())]] = number
    out, known = np.full(int(lengths.sum()), UNKNOWN, np.uint8), 0
    for name, sequence in sequences(path):
        if name in start:
            if len(sequence) != length[name]:
                raise DataError(f"{path}: {name} must have {length[name]} residues, got {len(sequence)}")
            letters = np.frombuffer(sequence.encode("ascii", "replace"), np.uint8)
            out[start[name] : start[name] + len(letters)] = table[letters]
            known += 1
    return out, known


def sequences(path: Path) -> list[tuple[str, str]]:
    """The sequences of a FASTA file with their names, which end at a space."""
    found: list[tuple[str, list[str]]] = []
    for number, line in text_lines(path):
        if line.startswith(">"):
            found.append((line[1:].partition(" ")[0], []))
        elif found:
            found[-1][1].append(line.strip())
        elif line.strip():
            raise DataError(f"{path}: must be a FASTA file, got text before the first > at line {number}")
    return [(name, "".join(lines)) for name, lines in found]
