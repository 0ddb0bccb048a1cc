"""What is packed, read into memory up to a size: a small file may unpack to more than there is memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

LARGEST = 1 << 30
"""No file within an archive may have more bytes."""


def gunzip(content: bytes) -> bytes:
    """What gzip has packed."""
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        found = file.read(LARGEST + 1)
    check_size(len(found))
    return found


def zip_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file in a zip archive; no more than its declared size is ever unpacked."""
    check_size(archive.getinfo(name).file_size)
    return archive.read(name)


def tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """A file in a tar archive."""
    check_size(member.size)
    stream = archive.extractfile(member)
    return b"" if stream is None else stream.read()


def check_size(size: int) -> None:
    """Raise for what is too large."""
    if size > LARGEST:
        raise OSError(f"a file in an archive must unpack to at most {LARGEST} bytes, got {size} or more")
