"""`augtree apply`: pictures and what a policy makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Overwrite, Seed, app, check_new_file, finish, say
from augtree.data.graphs.tu import is_tu
from augtree.errors import ArgumentError, DataError, PolicyFileError
from augtree.files import write_atomically
from augtree.policies import Forest, Tree
from augtree.policies.presets import NAMED, find
from augtree.report import sheet


@app.command()
def apply(
    policy: Annotated[
        str, typer.Argument(help=f"A policy file, the folder of a run, or a name: {', '.join(NAMED)}.")
    ],
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders with pictures.")],
    out: Annotated[Path, typer.Option(help="The sheet, a PNG file.")] = Path("sheet.png"),
    copies: Annotated[int, typer.Option(min=1, max=32, help="Versions of each picture.")] = 7,
    most: Annotated[int, typer.Option(min=1, max=200, help="Show at most so many pictures.")] = 12,
    size: Annotated[int, typer.Option(min=1, max=1024, help="Shrink longer pictures to this first.")] = 224,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a sheet of pictures and their augmented versions: the first thing to do with a policy."""
    finish(apply_policy(policy, pictures, out, copies, most, size, seed, overwrite), as_json)


def apply_policy(
    policy: str, places: list[Path], out: Path, copies: int, most: int, size: int, seed: int, overwrite: bool
) -> dict[str, Any]:
    """Read everything, then write the sheet."""
    found = find(policy)
    check_policy(policy, found)
    check_target(out, [Path(policy), *places], overwrite)
    read, unreadable, all_of_them = read_pictures(places, out, most, size)
    rows = sheet.augmented_rows(found, [(name, picture) for name, picture, _ in read], copies, seed)
    write_atomically(out, sheet.draw_sheet(Path(policy).name, rows))
    say(found.to_text() if isinstance(found, Tree | Forest) else str(found))
    for reason in unreadable:
        say(f"Left out: {reason}")
    if all_of_them > len(read) + len(unreadable):
        say(f"Showing {len(read)} of {all_of_them} pictures (--most).")
    shrunk = sum(was for _, _, was in read)
    if shrunk:
        say(f"{shrunk} of {len(read)} pictures were shrunk to {size} pixels first (--size).")
    say(f"Sheet: {out}")
    counts = {"pictures": len(read), "copies": copies, "shrunk": shrunk, "left_out": len(unreadable)}
    return {"sheet": str(out), "policy": policy, **counts}


def check_policy(policy: str, found: Any) -> None:
    """Raise for what works on graphs: a sheet shows pictures."""
    trees = [member.tree for member in found.groups.values()] if isinstance(found, Forest) else [found]
    if any(tree.domain == "graph" for tree in trees):
        raise PolicyFileError(policy, "", "a policy must work on pictures here, got one for graphs")


def check_target(out: Path, inputs: list[Path], overwrite: bool) -> None:
    """Raise rather than write over what was to be read, or unasked over what exists."""
    if out.suffix.lower() != ".png":
        raise ArgumentError("--out", "must end in .png", str(out))
    if out.resolve() in [path.resolve() for path in inputs]:
        raise ArgumentError("--out", "must not be one of the files to read", str(out))
    check_new_file(out, overwrite)


def check_place(place: Path) -> None:
    """Raise for data sets: a sheet shows pictures in files."""
    rule = f"{place}: must be a picture or a folder with pictures"
    if is_tu(place):
        raise DataError(f"{rule}, got a set of graphs")
    if place.suffix.lower() == ".zip" and place.is_file():
        raise DataError(f"{rule}, got a zip file: unpack it first")
    if not place.exists() and not place.suffix:
        raise DataError(f"{rule}, but there is no such file or folder (the name of a data set will not do)")


def read_pictures(
    places: list[Path], out: Path, most: int, size: int
) -> tuple[list[tuple[str, Any, bool]], list[str], int]:
    """Pictures by name, whether each was shrunk; what could not be read; and how many there are in all.

    A file that is named must be a picture. In a folder, unreadable files are left out and reported.
    """
    files: list[tuple[Path, Path | None]] = []
    for place in places:
        check_place(place)
        if place.is_dir():
            inside = [file for file in sheet.pictures_in(place) if file.resolve() != out.resolve()]
            if not inside:
                what = " (it is a run's folder)" if (place / "spec.json").is_file() else ""
                raise DataError(f"{place}: a folder must have pictures ({', '.join(sheet.SUFFIXES)}), got none{what}")
            files += [(file, place) for file in inside]
        else:
            files.append((place, None))
    read: list[tuple[str, Any, bool]] = []
    unreadable: list[str] = []
    for file, folder in files:
        if len(read) == most:
            break
        try:
            name = file.name if folder is None else str(file.relative_to(folder))
            read.append((name, *sheet.read_picture(file, size)))
        except DataError as error:
            if folder is None:
                raise
            unreadable.append(str(error))
    if not read:
        raise DataError(f"there must be a picture that can be read, but {unreadable[0]}")
    return read, unreadable, len(files)
