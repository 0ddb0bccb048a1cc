"""Structure files in a folder or in a tar archive, which is read where it lies."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from augtree.data.bounded import tar_member
from augtree.data.proteins.build.names import Structure, structure_of
from augtree.errors import DataError

LOOK_FOR = "structure files (.pdb, .ent, .cif or .mmcif, each also with .gz)"


@dataclass(frozen=True)
class Entry:
    """A structure file: its name, its size as it lies there, and where its bytes are."""

    file: str
    size: int
    model: Structure
    offset: int | None = None
    """Where it begins in a plain tar archive; None in a folder or a compressed archive."""


@dataclass(frozen=True)
class Archive:
    """The structure files of a folder (all levels, sorted by name) or of a tar archive (in its order)."""

    place: Path
    kind: str
    """folder, tar, or compressed tar."""
    entries: tuple[Entry, ...]
    ignored: int
    """Files that are no structures."""

    @staticmethod
    def open(place: Path) -> Archive:
        """Look what is there, without reading a structure."""
        if not place.exists():
            raise DataError(f"{place}: must be a folder or a tar archive of {LOOK_FOR}; there is nothing")
        kind, found = ("folder", list(in_folder(place))) if place.is_dir() else in_tar(place)
        entries = tuple(entry for entry in found if entry is not None)
        if not entries:
            raise DataError(f"{place}: must have {LOOK_FOR}, got {len(found)} other files")
        return Archive(place, kind, entries, len(found) - len(entries))

    def streamed(self, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """The bytes of these entries (rising numbers) of a compressed archive, read once from front to back."""
        chosen = set(wanted)
        try:
            with tarfile.open(self.place, "r:*") as tar:
                number = -1
                for member in tar:
                    if not member.isfile() or structure_of(member.name) is None:
                        continue
                    number += 1
                    if number in chosen:
                        yield number, tar_member(tar, member)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise broken(self.place, error) from error


def read_entry(place: Path, entry: Entry) -> bytes:
    """The bytes of an entry of a folder or a plain tar archive."""
    if entry.offset is None:
        return (place / entry.file).read_bytes()
    with place.open("rb") as file:
        file.seek(entry.offset)
        return file.read(entry.size)


def in_folder(place: Path) -> Iterator[Entry | None]:
    """The files below a folder; None for one that is no structure."""
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        file = path.relative_to(place).as_posix()
        model = structure_of(file)
        yield None if model is None else Entry(file, path.stat().st_size, model)


def in_tar(place: Path) -> tuple[str, list[Entry | None]]:
    """The files of a tar archive; None for one that is no structure."""
    try:
        plain = is_plain(place)
        found: list[Entry | None] = []
        with tarfile.open(place, "r:*") as tar:
            for member in tar:
                if member.isfile():
                    model = structure_of(member.name)
                    at = member.offset_data if plain and not member.sparse else None
                    found.append(None if model is None else Entry(member.name, member.size, model, at))
        return ("tar" if plain else "compressed tar"), found
    except (tarfile.TarError, OSError, EOFError) as error:
        raise broken(place, error) from error


def is_plain(place: Path) -> bool:
    """Whether a tar archive is not compressed as a whole."""
    try:
        with tarfile.open(place, "r:"):
            return True
    except tarfile.ReadError:
        return False


def broken(place: Path, error: Exception) -> DataError:
    """The error for what is no archive."""
    return DataError(f"{place}: must be a folder or an undamaged tar archive ({error})")


def split(numbers: Sequence[int], entries: Sequence[Entry], most: int, size: int) -> list[tuple[int, ...]]:
    """Numbers in order, in parts of at most `most` files and about `size` bytes."""
    parts: list[list[int]] = []
    bytes_there = 0
    for number in numbers:
        if not parts or len(parts[-1]) == most or bytes_there + entries[number].size > size:
            parts.append([])
            bytes_there = 0
        parts[-1].append(number)
        bytes_there += entries[number].size
    return [tuple(part) for part in parts]
