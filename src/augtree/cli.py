"""The command line: the same words as the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import augtree
from augtree.errors import ArgumentError, DataError
from augtree.policies.named import NAMED

app = typer.Typer(
    name="augtree",
    help="Trees of data augmentation: apply them, look at them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON, for scripts.")]


def tell_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        say(f"augtree {augtree.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Trees of data augmentation: apply them, look at them."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("runs/demo"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Apply a hand-written tree to pictures that ship with scikit-learn."""
    from augtree import demo as story

    found = story.run(out, seed)
    say(story.tree().to_text())
    say("\nEvery way through the tree, its probability, and its share of 20,000 samples:")
    for row in found["paths"]:
        say(f"  {row['p']:6.3f} {row['share']:6.3f}  {' -> '.join(row['path']) or 'unchanged'}")
    say(f"\nPictures and what became of them: {found['sheet']} and {found['photos']}")
    say(f"The tree as a picture: {found['picture']}; as a file: {found['tree']}")
    finish(found, as_json)


@app.command()
def apply(
    policy: Annotated[str, typer.Argument(help=f"A policy file, or a name: {', '.join(NAMED)}.")],
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders with pictures.")],
    out: Annotated[Path, typer.Option(help="The sheet, a PNG file.")] = Path("sheet.png"),
    copies: Annotated[int, typer.Option(min=1, max=32, help="Versions of each picture.")] = 7,
    most: Annotated[int, typer.Option(min=1, max=200, help="Show at most so many pictures.")] = 12,
    size: Annotated[int, typer.Option(min=1, max=1024, help="Shrink longer pictures to this first.")] = 224,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a sheet of pictures and their augmented versions: the first thing to do with a policy."""
    finish(apply_policy(policy, pictures, out, copies, most, size, seed), as_json)


def apply_policy(
    policy: str, places: list[Path], out: Path, copies: int, most: int, size: int, seed: int
) -> dict[str, Any]:
    """Read everything, then write the sheet."""
    from augtree.files import write_atomically
    from augtree.policies import Forest, Tree
    from augtree.policies.named import find
    from augtree.report import sheet

    found = find(policy)
    check_target(out, [Path(policy), *places])
    read, broken, all_of_them = read_pictures(places, out, most, size)
    rows = sheet.augmented(found, [(name, picture) for name, picture, _ in read], copies, seed)
    write_atomically(out, sheet.drawn(Path(policy).name, rows))
    say(found.to_text() if isinstance(found, Tree | Forest) else str(found))
    for reason in broken:
        say(f"Left out: {reason}")
    if all_of_them > len(read) + len(broken):
        say(f"Showing {len(read)} of {all_of_them} pictures (--most).")
    shrunk = sum(was for _, _, was in read)
    if shrunk:
        say(f"{shrunk} of {len(read)} pictures were shrunk to {size} pixels first (--size).")
    say(f"Sheet: {out}")
    counts = {"pictures": len(read), "copies": copies, "shrunk": shrunk, "left_out": len(broken)}
    return {"sheet": str(out), "policy": policy, **counts}


def check_target(out: Path, inputs: list[Path]) -> None:
    """Raise rather than write over what was to be read."""
    if out.suffix.lower() != ".png":
        raise ArgumentError("--out", "must end in .png", str(out))
    if out.resolve() in [path.resolve() for path in inputs]:
        raise ArgumentError("--out", "must not be one of the files to read", str(out))


def read_pictures(
    places: list[Path], out: Path, most: int, size: int
) -> tuple[list[tuple[str, Any, bool]], list[str], int]:
    """Pictures by name, whether each was shrunk; what could not be read; and how many there are in all.

    A file that is named must be a picture. In a folder, what is broken is left out, and told.
    """
    from augtree.report import sheet

    files: list[tuple[Path, Path | None]] = []
    for place in places:
        if place.is_dir():
            inside = [file for file in sheet.pictures_in(place) if file.resolve() != out.resolve()]
            if not inside:
                raise DataError(f"{place}: a folder must have pictures ({', '.join(sheet.SUFFIXES)}), got none")
            files += [(file, place) for file in inside]
        else:
            files.append((place, None))
    read: list[tuple[str, Any, bool]] = []
    broken: list[str] = []
    for file, folder in files:
        if len(read) == most:
            break
        try:
            name = file.name if folder is None else str(file.relative_to(folder))
            read.append((name, *sheet.read_picture(file, size)))
        except DataError as error:
            if folder is None:
                raise
            broken.append(str(error))
    if not read:
        raise DataError(f"there must be a picture that can be read, but {broken[0]}")
    return read, broken, len(files)


def say(text: str) -> None:
    """Print for people."""
    print(text)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print for scripts."""
    if as_json:
        print(json.dumps(result))
