"""Decoded pictures in files: written once, mapped into memory afterwards, so that a set may be larger than memory.

    CACHE/SET/KEY/pictures.u8   the numbers, picture after picture
    CACHE/SET/KEY/about.json    their shape, and what was decided
    CACHE/SET/KEY/broken.csv    which pictures could not be read, where there are such
    CACHE/SET/lock              held while a process decodes

SET stands for what the pictures are of and their size, KEY for the state of every file and the decoder. A KEY is
written under another name and renamed once it is whole and on the disk; then the other KEYs of its SET are removed.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.errors import ArgumentError, DataError, need

IN_MEMORY = 256 << 20
"""Pictures of fewer bytes than this stay in memory."""
COPIED_AT_ONCE = 1 << 24
FORMAT = 1
MAPPED = "augtree_mapped"
"""The attribute of a tensor with the file that it is mapped from."""


@dataclass(frozen=True)
class Entry:
    """The place of some decoded pictures in the cache; there may be nothing yet."""

    path: Path

    @staticmethod
    def of(folder: str | Path | None, what: Sequence[str], state: Sequence[str]) -> Entry:
        """The entry for `what` in this `state`, in a folder or in the usual one."""
        root = Path(folder) if folder is not None else usual_folder()
        word = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(what[0]).name)[-32:].strip("-.") or "pictures"
        return Entry(root / f"{word}-{digest(what)[:16]}" / digest((f"{FORMAT}", *what, *state))[:32])

    def read(self) -> tuple[Tensor, dict[str, Any]] | None:
        """The mapped pictures and their about.json; None where there is nothing complete."""
        try:
            about = json.loads((self.path / "about.json").read_bytes())
            source = Mapped(str(self.path / "pictures.u8"), tuple(about["shape"]))
            return source.open(), about
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(
        self,
        shape: tuple[int, ...],
        blocks: Iterable[NDArray[np.uint8]],
        about: Callable[[], dict[str, Any]],
        broken: Callable[[], Iterable[tuple[str, str]]],
    ) -> None:
        """Keep pictures as they come, as a whole or not at all; the other states of the same set are removed.

        `shape` is the shape if every picture is readable; `about` and `broken` are called at the end.
        """
        part = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        with writable(self.path.parent):
            enough_room(self.path.parent, int(np.prod(shape)))
            part.mkdir()
            try:
                count = write_blocks(part / "pictures.u8", blocks)
                if not count:
                    return
                if rows := list(broken()):
                    lines = io.StringIO(newline="")
                    csv.writer(lines).writerows([("path", "reason"), *rows])
                    write_through(part / "broken.csv", lines.getvalue().encode(errors="surrogateescape"))
                facts = {"format": FORMAT, "shape": [count, *shape[1:]], **about()}
                write_through(part / "about.json", json.dumps(facts, indent=1).encode() + b"\n")
                sync_folder(part)
                self._put(part)
            finally:
                shutil.rmtree(part, ignore_errors=True)

    def _put(self, part: Path) -> None:
        """Give the whole its name, unless another process was first."""
        if self.read() is None:
            shutil.rmtree(self.path, ignore_errors=True)
            try:
                part.rename(self.path)
            except OSError:
                if self.read() is None:
                    raise
        sync_folder(self.path.parent)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock of this set, so that one process decodes it; unfinished and outdated entries are removed."""
        folder = self.path.parent
        lock = need("filelock", "train").FileLock(folder / "lock")
        with writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        try:
            clear(other for other in folder.iterdir() if other.name.startswith("."))
            yield
            if self.path.exists():
                others = (other for other in folder.iterdir() if not other.name.startswith("."))
                clear(other for other in others if other != self.path)
        finally:
            lock.release()


def clear(folders: Iterable[Path]) -> None:
    """Remove folders; a process that has mapped a file in one keeps it."""
    for folder in list(folders):
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def usual_folder() -> Path:
    """$AUGTREE_CACHE, or ~/.cache/augtree."""
    named = os.environ.get("AUGTREE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "augtree"


def digest(parts: Iterable[str]) -> str:
    """A hash of some texts."""
    state = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        state.update(b"%d:" % len(raw))
        state.update(raw)
    return state.hexdigest()


# ---- writing


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Turn errors of the disk into an ArgumentError on `cache`."""
    try:
        yield
    except OSError as error:
        raise refused(folder, error.strerror or str(error)) from error


def refused(folder: Path, why: str) -> ArgumentError:
    """The error for a folder that cannot hold a cache."""
    rule = f"must be a folder with room for decoded pictures ({why}): name another one, or set AUGTREE_CACHE"
    return ArgumentError("cache", rule, str(folder.parent))


def enough_room(folder: Path, needed: int) -> None:
    """Raise before hours of decoding where the disk is too small."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise refused(folder, f"{needed / 2**30:.1f} GiB are needed, {free / 2**30:.1f} are free")


def write_blocks(path: Path, blocks: Iterable[NDArray[np.uint8]]) -> int:
    """Write pictures one after another; how many they were."""
    with path.open("xb") as file:
        count = append(file, blocks)
        file.flush()
        os.fsync(file.fileno())
    return count


def append(file: BinaryIO, blocks: Iterable[NDArray[np.uint8]]) -> int:
    """Write pictures to an open file; how many they were."""
    count = 0
    for block in blocks:
        file.write(np.ascontiguousarray(block).data)
        count += len(block)
    return count


def write_through(path: Path, content: bytes) -> None:
    """Write a new file onto the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names of files to the disk, where the system can."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# ---- mapping


@dataclass(frozen=True)
class Mapped:
    """Pictures in a file, or some of them: what travels to another process in place of the numbers."""

    path: str
    shape: tuple[int, ...]
    """Of the whole file."""
    rows: NDArray[np.int64] | None = None

    def open(self) -> Tensor:
        """Map them; nothing is read yet."""
        size, wanted = Path(self.path).stat().st_size, int(np.prod(self.shape))
        if size != wanted:
            raise ValueError(f"{self.path} must have {wanted} bytes, got {size}")
        whole = marked(mapping(self.path, self.shape), Mapped(self.path, self.shape))
        return whole if self.rows is None else gathered(whole, self.rows)


def mapping(file: Any, shape: tuple[int, ...]) -> Tensor:
    """The numbers of a file as a tensor; to write into it changes the tensor and never the file.

    The system promises memory for what may be written; where the file is larger than that it can only be read, and
    to write into it ends the process.
    """
    try:
        return torch.from_numpy(np.memmap(file, np.uint8, "c", shape=shape))
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        return torch.from_numpy(np.memmap(file, np.uint8, "r", shape=shape))


def marked(samples: Tensor, source: Mapped) -> Tensor:
    """The tensor with a note on the file that it is mapped from."""
    setattr(samples, MAPPED, source)
    return samples


def gathered(samples: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """Some samples. Where they are mapped and too many for memory, they go to a file that vanishes with them."""
    source: Mapped | None = getattr(samples, MAPPED, None)
    each = int(np.prod(samples.shape[1:]))
    if source is None or len(rows) * each < IN_MEMORY:
        return samples[torch.from_numpy(rows)]
    at_once = max(1, COPIED_AT_ONCE // each)
    parts = (samples[torch.from_numpy(rows[i : i + at_once])].numpy() for i in range(0, len(rows), at_once))
    folder = Path(source.path).parents[1]
    with writable(folder), tempfile.TemporaryFile(dir=folder) as file:
        append(file, parts)
        file.flush()
        copy = mapping(file, (len(rows), *samples.shape[1:]))
    among = rows if source.rows is None else source.rows[rows]
    return marked(copy, Mapped(source.path, source.shape, among))


def to_pickle(samples: Any) -> Any:
    """What is pickled for samples: the `Mapped` of a mapped tensor; anything else as it is."""
    return getattr(samples, MAPPED, samples)


def from_pickle(handle: Any) -> Any:
    """The samples again."""
    if not isinstance(handle, Mapped):
        return handle
    try:
        return handle.open()
    except (OSError, ValueError) as error:
        raise DataError(
            f"decoded pictures must be at {handle.path}, as where they were sent from ({error})"
        ) from error
