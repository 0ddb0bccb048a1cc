"""Reads a list of pictures into one batch: those that can be read, in memory or mapped from the cache.

Pictures are decoded by threads, some at a time, into memory or, where they are many, into a file of the cache. Pillow
lets go of the interpreter while it decodes; processes were no faster on two cores (benchmarks/picture_cache.py), and
would have to be started and sent what to open.
"""

from __future__ import annotations

import errno
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.pictures.cache import IN_MEMORY, Entry, digest
from augtree.data.pictures.decode import Header, Rule, decide, decoded, header
from augtree.errors import DataError, need, whole_number
from augtree.transforms.pictures import LARGEST_SIDE

DECODER = 1
"""Increased whenever the same file gives other numbers than before, so that old caches are not used."""
MOST_THREADS = 8
AT_ONCE, BYTES_AT_ONCE = 64, 1 << 24
"""The most pictures and bytes that a thread decodes at a time."""
MACHINE = frozenset(
    {errno.EACCES, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EPERM, errno.ESTALE, errno.ETIMEDOUT}
)
"""Errors of the machine, not of the picture, which may be readable a moment later: these end the reading."""
Opener = Callable[[], BinaryIO]
"""Opens a picture. One that also has `stamp()`, a text that changes with the picture, can be kept in a cache."""
Progress = Callable[[int, int], None]
"""Called with the number of steps done, and of all."""
Rows = Sequence[int]
Found = TypeVar("Found")


class Readable(NamedTuple):
    """The pictures of a list that can be read."""

    samples: Tensor
    """uint8 [R,C,H,W], perhaps mapped from a file."""
    rows: NDArray[np.int64]
    """Their places in the list."""
    notes: tuple[str, ...]
    """What was decided."""
    problems: dict[int, str]
    """Why the others cannot be read, by place."""
    kept: Path | None = None
    """The folder of the cache, where they are mapped from one."""


def kept_at(found: Readable) -> tuple[str, ...]:
    """A note on where decoded pictures are, if not in memory."""
    if found.kept is None:
        return ()
    return (f"the decoded pictures are kept in {found.kept} ({found.samples.numel() / 2**20:.0f} MiB)",)


def readable_pictures(
    openers: Sequence[Opener],
    size: int | None = None,
    *,
    cache: str | Path | None = None,
    of: str | None = None,
    progress: Progress | None = None,
) -> Readable:
    """The pictures that can be read, without the others: in memory, or mapped from the cache.

    Where they have less than 256 MiB they stay in memory, unless `cache` names a folder. `of` names what they are the
    pictures of: an older cache of the same is removed once there is a new one.
    """
    side = checked_size(size)
    entry = entry_for(openers, side, cache, of)
    found = entry.read() if entry is not None else None
    if entry is not None and found is not None:
        return from_cache(entry, found, len(openers))
    decoding = Decoding(openers, side, progress)
    if entry is None or not decoding.headers or (cache is None and decoding.bytes < IN_MEMORY):
        return decoding.into_memory()
    return decoding.into_cache(entry)


def checked_size(size: int | None) -> int | None:
    """A side that is possible; and Pillow is there and knows all its formats before threads ask for them."""
    need("PIL.Image", "train").init()
    return None if size is None else whole_number("size", size, 1, LARGEST_SIDE)


def entry_for(openers: Sequence[Opener], size: int | None, cache: str | Path | None, of: str | None) -> Entry | None:
    """Where these pictures are kept, if they can be: each must have a stamp."""
    stamps = [opener.stamp() for opener in openers if hasattr(opener, "stamp")]
    if len(stamps) < len(openers) or not stamps:
        return None
    version = f"{DECODER} Pillow {need('PIL', 'train').__version__}"
    what = of if of is not None else digest(names_of(openers))
    return Entry.of(cache, (what, f"size {size}"), (version, *stamps))


def names_of(openers: Sequence[Opener]) -> list[str]:
    """What pictures are called: by their name, or by their path."""
    return [str(getattr(one, "name", getattr(one, "path", row))) for row, one in enumerate(openers)]


def from_cache(entry: Entry, found: tuple[Tensor, dict[str, Any]], count: int) -> Readable:
    """What an entry of the cache holds."""
    samples, about = found
    problems = {int(row): str(why) for row, why in about["problems"]}
    return Readable(samples, all_but(count, problems), tuple(about["notes"]), problems, entry.path)


def all_but(count: int, problems: Iterable[int]) -> NDArray[np.int64]:
    """The rows that are left."""
    left = np.ones(count, bool)
    left[list(problems)] = False
    return np.flatnonzero(left)


EMPTY_RULE = Rule(True, None, 1, 1)


class Decoding:
    """The work on a list of pictures: first their headers, which decide what all become; then the pictures."""

    def __init__(self, openers: Sequence[Opener], size: int | None, progress: Progress | None = None) -> None:
        self.openers, self.progress, self.done = openers, progress, 0
        self.problems: dict[int, str] = {}
        self.headers: dict[int, Header] = {}
        for found in self._worked(self._headers, range(len(openers)), AT_ONCE):
            self.headers.update(found)
        self.rule, self.notes = decide(list(self.headers.values()), size) if self.headers else (EMPTY_RULE, ())
        self.shape = (len(self.headers), *self.rule.shape)
        self.bytes = math.prod(self.shape)

    def into_memory(self) -> Readable:
        """Decode all into one tensor."""
        out, count = np.empty(self.shape, np.uint8), 0
        for block in self.blocks():
            out[count : count + len(block)] = block
            count += len(block)
        rows = all_but(len(self.openers), self.problems)
        return Readable(torch.from_numpy(out[:count]), rows, self.notes, self.problems)

    def into_cache(self, entry: Entry) -> Readable:
        """Decode all into a file, unless another process has done so by now."""
        with entry.exclusive():
            if entry.read() is None:
                entry.write(self.shape, self.blocks(), self._about, self._broken)
            found = entry.read()
        if found is not None:
            return from_cache(entry, found, len(self.openers))
        nothing = torch.empty(0, *self.rule.shape, dtype=torch.uint8)
        return Readable(nothing, all_but(len(self.openers), self.problems), self.notes, self.problems)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """The pictures that can be decoded, in their order, some at a time."""
        at_once = max(1, min(AT_ONCE, BYTES_AT_ONCE // math.prod(self.rule.shape)))
        return self._worked(self._block, list(self.headers), at_once)

    def _about(self) -> dict[str, Any]:
        return {"notes": self.notes, "problems": sorted(self.problems.items())}

    def _broken(self) -> list[tuple[str, str]]:
        names = names_of(self.openers)
        return [(names[row], self.problems[row]) for row in sorted(self.problems)]

    def _worked(
        self, work: Callable[[Rows], tuple[Found, dict[int, str]]], rows: Rows, at_once: int
    ) -> Iterator[Found]:
        """What threads make of the rows, some at a time, in order, computed shortly before they are needed."""
        parts = [rows[i : i + at_once] for i in range(0, len(rows), at_once)]
        threads = min(MOST_THREADS, os.cpu_count() or 1)
        with ThreadPoolExecutor(threads) as pool:
            for part, (found, problems) in zip(parts, in_order(pool, work, parts, 2 * threads), strict=True):
                self.problems.update(problems)
                self.done += len(part)
                if self.progress is not None:
                    self.progress(self.done, 2 * len(self.openers))
                yield found

    def _headers(self, rows: Rows) -> tuple[dict[int, Header], dict[int, str]]:
        found, problems = {}, {}
        for row in rows:
            got = self._attempt(row, header)
            if isinstance(got, str):
                problems[row] = got
            else:
                found[row] = got
        return found, problems

    def _block(self, rows: Rows) -> tuple[NDArray[np.uint8], dict[int, str]]:
        out, problems, count = np.empty((len(rows), *self.rule.shape), np.uint8), {}, 0
        for row in rows:
            got = self._attempt(row, lambda file: decoded(file, self.rule))
            if isinstance(got, str):
                problems[row] = got
            else:
                out[count] = got
                count += 1
        return out[:count], problems

    def _attempt(self, row: int, work: Callable[[BinaryIO], Found]) -> Found | str:
        """What is made of a picture, or why it cannot be."""
        try:
            with self.openers[row]() as file:
                return work(file)
        except Exception as error:  # Pillow raises nearly anything on a damaged picture
            if isinstance(error, MemoryError) or getattr(error, "errno", None) in MACHINE:
                raise DataError(
                    f"{names_of(self.openers)[row]}: {reason(error)}; it may be whole, so nothing is kept"
                ) from error
            return reason(error)


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Rows], Found], parts: Sequence[Rows], ahead: int
) -> Iterator[Found]:
    """The results in the order of the parts; at most `ahead` of them are computed in advance."""
    waiting: deque[Future[Found]] = deque()
    for part in parts:
        waiting.append(pool.submit(work, part))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def reason(error: Exception) -> str:
    """Why a picture could not be read, in few words."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if type(error).__name__ == "UnidentifiedImageError":
        return "is no picture that Pillow knows"
    return f"cannot be read ({getattr(error, 'strerror', None) or error or type(error).__name__})"
