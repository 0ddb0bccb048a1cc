"""The files below a folder or in a zip file, listed once and opened by name."""

from __future__ import annotations

import io
import os
import posixpath
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import BinaryIO, cast

from augtree.data.bounded import zip_member
from augtree.data.splits import split_number
from augtree.errors import DataError

INDEX = "index.csv"
"""The table of a data set; where it is, the data set begins."""


@dataclass(frozen=True)
class Files:
    """The files below a folder or in a zip file, by their paths from where the data set begins."""

    place: str
    names: frozenset[str]
    base: Path | None
    """The folder, or None for a zip file."""
    archive: zipfile.ZipFile | None
    prefix: str
    state: str = ""
    """Changes with the zip file. One that is fetched again, since it was damaged, has the checksums it had."""

    @staticmethod
    def open(path: Path, stack: ExitStack) -> Files:
        """List the files; a folder that holds everything is stepped into."""
        archive = None
        if path.is_dir():
            try:
                found = list(files_below(path))
            except OSError as error:
                raise DataError(f"{path}: every folder in it must be readable ({error})") from error
        else:
            try:
                archive = stack.enter_context(zipfile.ZipFile(path))
            except (OSError, zipfile.BadZipFile) as error:
                raise DataError(f"{path}: must be a folder or a zip file ({error})") from error
            found = [name for name in archive.namelist() if not name.endswith("/")]
        names = [name for name in found if not hidden(name)]
        prefix = common_top(names)
        inside = frozenset(name[len(prefix) :] for name in names)
        state = state_of(path.stat()) if archive else ""
        return Files(str(path), inside, None if archive else path, archive, prefix, state)

    def opener(self, name: str) -> PictureIn:
        """A function that opens a file, or fails as a missing file does."""
        return PictureIn(name, self)

    def find(self, name: str) -> str:
        """A path of index.csv as the file is called; the strokes of Windows serve as well."""
        for spelled in (name, name.replace("\\", "/")):
            inside = posixpath.normpath(spelled)
            if inside in self.names:
                return inside
            if inside.startswith("/") or PureWindowsPath(spelled).drive:
                raise ValueError(f"it is an absolute path, and must be relative to the folder of {INDEX}")
            if inside.startswith("../") or inside == "..":
                raise ValueError("it is outside of the folder")
        raise FileNotFoundError(name)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.opener(name)() as file:
            return file.read()


def files_below(folder: str | Path, before: str = "") -> Iterator[str]:
    """The paths of the files in a folder and the folders below it; links to folders are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path, f"{before}{entry.name}/")
            elif is_file(entry):
                yield f"{before}{entry.name}"


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether this is a file; a link that leads nowhere or in a circle counts as one, which cannot be read."""
    try:
        return entry.is_file() or (entry.is_symlink() and not entry.is_dir())
    except OSError:
        return entry.is_symlink()


def state_of(about: os.stat_result) -> str:
    """Size and time of change of a file."""
    return f"{about.st_size} {about.st_mtime_ns}"


@dataclass(frozen=True)
class PictureIn:
    """Opens one of the files."""

    name: str
    files: Files

    def __call__(self) -> BinaryIO:
        """The open file."""
        actual, archive = self.files.prefix + self.files.find(self.name), self.files.archive
        if archive is not None:
            return io.BytesIO(zip_member(archive, actual))
        return cast(Path, self.files.base).joinpath(actual).open("rb")

    def stamp(self) -> str:
        """Changes when the file does: by its size and its time of change; in a zip file, by its checksum too."""
        try:
            actual, archive = self.files.prefix + self.files.find(self.name), self.files.archive
            if archive is not None:
                member = archive.getinfo(actual)
                return f"{self.name} {member.file_size} {member.CRC:08x} {self.files.state}"
            about = cast(Path, self.files.base).joinpath(actual).stat()
        except (OSError, ValueError) as error:
            return f"{self.name} {type(error).__name__}"
        return f"{self.name} {state_of(about)}"


def hidden(name: str) -> bool:
    """What the system puts beside the files."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def common_top(names: Sequence[str]) -> str:
    """The folders that hold everything, as a prefix; never a split's."""
    prefix = ""
    while True:
        tops = {name[len(prefix) :].partition("/")[0] for name in names}
        only = next(iter(tops), "")
        # A file at the top, several folders, or folders that have a meaning: here the data set begins.
        holds_folders = any("/" in name[len(prefix) + len(only) + 1 :] for name in names)
        index = f"{prefix}{only}/{INDEX}" in names
        if (
            len(tops) != 1
            or f"{prefix}{only}" in names
            or split_number(only) is not None
            or not (holds_folders or index)
        ):
            return prefix
        prefix += f"{only}/"
