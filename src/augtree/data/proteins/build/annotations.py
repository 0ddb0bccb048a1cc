"""Which proteins have which Gene Ontology terms: annotations in the GAF format, propagated over the ontology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from augtree.data.proteins.build.ontology import NAMESPACES, Ontology, text_lines
from augtree.errors import ArgumentError, DataError, nearest

EXPERIMENTAL = ("EXP", "IDA", "IPI", "IMP", "IGI", "IEP", "HTP", "HDA", "HMP", "HGI", "HEP")
CURATED = (
    *EXPERIMENTAL,
    *("IBA", "IBD", "IKR", "IRD", "ISS", "ISO", "ISA", "ISM", "IGC", "RCA", "TAS", "NAS", "IC"),
)
ALL = (*CURATED, "IEA")
SETS = {"experimental": EXPERIMENTAL, "curated": CURATED, "all": ALL}
"""Evidence codes by one word. ND (no data) is never evidence."""
COLUMNS = 15


@dataclass(frozen=True)
class Annotations:
    """The terms that a GAF file gives to each protein, as they stand there; and how many of its rows were used."""

    terms: dict[str, set[str]]
    counts: dict[str, int]
    version: str


@dataclass(frozen=True, eq=False)
class Labels:
    """A matrix of 0 and 1 by its rows: row i has the columns `indices[indptr[i]:indptr[i + 1]]`, rising."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    terms: tuple[str, ...]
    namespaces: tuple[str, ...]
    names: tuple[str, ...]


def evidence_codes(evidence: str | Sequence[str] | None) -> tuple[str, ...]:
    """Evidence codes from codes and the words experimental, curated, all; sorted.

    >>> evidence_codes(["IDA", "IEA"]), len(evidence_codes("experimental"))
    (('IDA', 'IEA'), 11)
    """
    given = ["all"] if evidence is None else [evidence] if isinstance(evidence, str) else list(evidence)
    codes: set[str] = set()
    for one in given:
        if one not in SETS and one not in ALL:
            rule = f"must be of {', '.join([*SETS, *ALL])}{nearest(str(one), [*SETS, *ALL])}"
            raise ArgumentError("evidence", rule, one)
        codes.update(SETS.get(one, (one,)))
    if not codes:
        raise ArgumentError("evidence", "must be at least one code", evidence)
    return tuple(sorted(codes))


def checked_aspects(aspects: Iterable[str]) -> str:
    """Aspects, P, F and C, in this order."""
    given = set(aspects)
    if not given or not given <= set(NAMESPACES):
        raise ArgumentError("aspects", "must be some of P (process), F (function) and C (component)", aspects)
    return "".join(aspect for aspect in NAMESPACES if aspect in given)


def read_annotations(
    path: str | Path, evidence: str | Sequence[str] | None = None, aspects: Iterable[str] = "PFC"
) -> Annotations:
    """The annotations of a GAF 2 file, gzipped or not, that count: not NOT, not ND, of this evidence and aspect."""
    wanted, sides = set(evidence_codes(evidence)), set(checked_aspects(aspects))
    terms: dict[str, set[str]] = {}
    counts = Counter(rows=0, negated=0, no_data=0, other_evidence=0, other_aspect=0, used=0)
    version = ""
    for number, line in text_lines(Path(path)):
        if line.startswith("!") or not line:
            if line.startswith("!gaf-version:"):
                version = line.partition(":")[2].strip()
            continue
        cells = line.split("\t")
        if len(cells) < COLUMNS or (version and not version.startswith("2")):
            rule = f"must be GAF 2, with at least {COLUMNS} columns"
            raise DataError(
                f"{path}: {rule}, got version {version or 'unknown'}, {len(cells)} columns at line {number}"
            )
        why = judged(cells, wanted, sides)
        counts.update(("rows", why))
        if why == "used":
            terms.setdefault(cells[1], set()).add(cells[4])
    if not counts["rows"]:
        raise DataError(f"{path}: must be annotations in the GAF 2 format, with at least one row")
    return Annotations(terms, dict(counts), version)


def judged(cells: Sequence[str], evidence: set[str], aspects: set[str]) -> str:
    """Whether a row is used, or why not."""
    qualifiers, code, aspect = cells[3], cells[6], cells[8]
    if "NOT" in qualifiers.upper().split("|"):
        return "negated"
    if code == "ND":
        return "no_data"
    if code not in evidence:
        return "other_evidence"
    return "used" if aspect in aspects else "other_aspect"


def make_labels(
    accessions: Sequence[str],
    annotated: Mapping[str, Iterable[str]],
    ontology: Ontology,
    *,
    min_proteins: int = 50,
    aspects: Iterable[str] = "PFC",
) -> tuple[Labels, dict[str, int]]:
    """The terms of each protein with all that follow from them, and counts.

    A term needs `min_proteins` different proteins among these to be a column; columns stand in the order of ids.
    """
    spaces = {NAMESPACES[aspect] for aspect in checked_aspects(aspects)}
    counts = Counter(annotations=0, of_unknown_terms=0, annotated_proteins=0)
    found: dict[str, list[str]] = {}
    for accession in dict.fromkeys(accessions):
        known = [ontology.find(term) for term in annotated.get(accession, ())]
        counts.update(annotations=len(known), of_unknown_terms=known.count(None), annotated_proteins=any(known))
        every = ontology.with_ancestors(term for term in known if term is not None)
        found[accession] = [term for term in every if ontology.terms[term].namespace in spaces]
    proteins = Counter(term for terms in found.values() for term in terms)
    columns = sorted(term for term, count in proteins.items() if count >= min_proteins)
    place = {term: i for i, term in enumerate(columns)}
    rows = [sorted(place[term] for term in found[accession] if term in place) for accession in accessions]
    labels = Labels(
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        indices=np.array([column for row in rows for column in row], np.int32),
        terms=tuple(columns),
        namespaces=tuple(ontology.terms[term].namespace for term in columns),
        names=tuple(ontology.terms[term].name for term in columns),
    )
    return labels, {**counts, "terms_too_rare": len(proteins) - len(columns)}
