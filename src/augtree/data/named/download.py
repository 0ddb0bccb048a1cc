"""Fetches the files of a set that has open, direct links: checked, and whole or not at all."""

from __future__ import annotations

import hashlib
import secrets
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from augtree.data.named.catalogue import CATALOGUE, Named, Remote
from augtree.errors import DataError

PIECE = 1 << 20
SECONDS = 60
"""How long a server may be silent."""


def fetch(name: str, root: Path, *, optional: bool = False, tell: Callable[[str], None] = lambda _: None) -> None:
    """Fetch what is not there yet; `optional` files (SVHN's extra) only on request."""
    named = CATALOGUE[name]
    if not named.remotes:
        if named.folders and named.folder(root) is None:
            raise DataError(f"{name} must be fetched by hand, from {named.page}: {named.expected}, below {root}")
        return
    there = named.folder(root)
    for remote in named.remotes:
        if remote.optional and not optional:
            continue
        target = root / remote.path if there is None else there / Path(remote.path).name
        if not there_already(target, there is not None):
            fetch_file(named, remote, target, tell)


def there_already(target: Path, begun: bool) -> bool:
    """Whether a file need not be fetched: it is there, perhaps unpacked. What is there is never written over."""
    whole_set = target.name.endswith((".tar.gz", ".zip"))
    return target.exists() or (begun and whole_set) or (target.suffix == ".gz" and target.with_suffix("").exists())


def fetch_file(named: Named, remote: Remote, target: Path, tell: Callable[[str], None]) -> None:
    """One file."""
    tell(f"fetching {remote.url}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            found = copy(remote.url, temporary)
            if remote.md5 is not None and found != remote.md5:
                raise DataError(
                    f"{remote.url}: its md5 must be {remote.md5}, got {found}; nothing was kept. See {named.page}"
                )
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{remote.url}: cannot be fetched to {target} ({reason}). See {named.page}") from error


def copy(url: str, target: Path) -> str:
    """Write what a link gives; its md5."""
    if not url.startswith(("https://", "http://")):
        raise DataError(f"a link must begin with https:// or http://, got {url}")
    state = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(url, timeout=SECONDS) as answer, target.open("xb") as file:  # noqa: S310
        expected = answer.headers.get("Content-Length")
        size = 0
        while piece := answer.read(PIECE):
            state.update(piece)
            file.write(piece)
            size += len(piece)
    if expected is not None and size != int(expected):
        raise OSError(f"it ended after {size} of {expected} bytes")
    return state.hexdigest()


def md5_of(path: Path) -> str:
    """The md5 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def unlike_published(name: str, files: list[Path]) -> tuple[str, ...]:
    """A note for each file whose md5 is not the published one; files without a published one pass."""
    known = {Path(remote.path).name: remote.md5 for remote in CATALOGUE[name].remotes if remote.md5}
    found = {file.name: md5_of(file) for file in files if file.name in known}
    return tuple(
        f"{name} is not the published file: its md5 is {md5}, not {known[name]}"
        for name, md5 in found.items()
        if md5 != known[name]
    )
