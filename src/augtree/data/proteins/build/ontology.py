"""Reads an ontology in the OBO format (geneontology.org): terms, what they are, what they are part of."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from augtree.errors import DataError

NAMESPACES = {"P": "biological_process", "F": "molecular_function", "C": "cellular_component"}


@dataclass(frozen=True)
class Term:
    """A term: its name, its namespace, and the terms that hold wherever it does (is_a, part_of)."""

    name: str
    namespace: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Ontology:
    """Terms by id, without the obsolete ones; and other ids of the same terms."""

    terms: dict[str, Term]
    other_ids: dict[str, str]
    version: str
    """What the file calls its data-version."""

    def find(self, term: str) -> str | None:
        """The id of a term by any of its ids; None where it is unknown or obsolete."""
        term = self.other_ids.get(term, term)
        return term if term in self.terms else None

    def with_ancestors(self, terms: Iterable[str]) -> set[str]:
        """These terms and all that follow from them."""
        found: set[str] = set()
        left = list(terms)
        while left:
            term = left.pop()
            if term not in found:
                found.add(term)
                left.extend(self.terms[term].parents)
        return found


def read_ontology(path: str | Path) -> Ontology:
    """The terms of an .obo file, gzipped or not. Other relations (regulates, has_part ...) are not followed."""
    terms: dict[str, Term] = {}
    other_ids: dict[str, str] = {}
    version = ""
    for kind, tags in stanzas(Path(path)):
        if kind == "":
            version = next(iter(tags.get("data-version", [])), "")
        if kind != "Term" or tags.get("is_obsolete") == ["true"]:
            continue
        if "id" not in tags:
            raise DataError(f"{path}: each [Term] must have an id, got one with {', '.join(tags) or 'nothing'}")
        one = tags["id"][0]
        relations = [line.split() for line in tags.get("relationship", [])]
        wholes = [words[1] for words in relations if len(words) > 1 and words[0] == "part_of"]
        parents = [line.split()[0] for line in tags.get("is_a", []) if line] + wholes
        terms[one] = Term(tags.get("name", [""])[0], tags.get("namespace", [""])[0], tuple(dict.fromkeys(parents)))
        other_ids.update(dict.fromkeys(tags.get("alt_id", []), one))
    if not terms:
        raise DataError(f"{path}: must be an ontology in the OBO format, with at least one [Term]")
    known = {one: Term(t.name, t.namespace, tuple(p for p in t.parents if p in terms)) for one, t in terms.items()}
    return Ontology(known, {other: one for other, one in other_ids.items() if other not in terms}, version)


def stanzas(path: Path) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The header (""), then each stanza: its kind, and its tags with their values, comments taken off."""
    kind, tags = "", dict[str, list[str]]()
    for _, line in text_lines(path):
        if line.startswith("["):
            yield kind, tags
            kind, tags = line.strip("[] "), {}
        elif ":" in line and not line.startswith("!"):
            tag, _, value = line.partition(":")
            tags.setdefault(tag, []).append(value.partition(" ! ")[0].strip())
    yield kind, tags


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file, gzipped or not, with their numbers."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path}: must be a text file, gzipped or not ({error})") from error
