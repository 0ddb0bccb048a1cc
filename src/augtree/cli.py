"""The command line: the same words as the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="augtree",
    help="Learn which data augmentations to apply to your data, and in what order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON, for scripts.")]


@app.callback()
def root() -> None:
    """Learn which data augmentations to apply to your data, and in what order."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("runs/demo"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Apply a hand-written tree to the digits that ship with scikit-learn."""
    from augtree import demo as story

    found = story.run(out, seed)
    say(story.tree().to_text())
    say("\nEvery way through the tree, its probability, and its share of 20,000 samples:")
    for row in found["paths"]:
        say(f"  {row['p']:6.3f} {row['share']:6.3f}  {' -> '.join(row['path']) or 'unchanged'}")
    say(f"\nPictures and what became of them: {found['sheet']}")
    say(f"The tree as a picture: {found['picture']}; as a file: {found['tree']}")
    finish(found, as_json)


@app.command()
def apply(
    policy: Annotated[str, typer.Argument(help="A policy file, or a name such as trivialaugment.")],
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders with pictures.")],
    out: Annotated[Path, typer.Option(help="The sheet, a PNG file.")] = Path("sheet.png"),
    copies: Annotated[int, typer.Option(min=1, max=32, help="Versions of each picture.")] = 7,
    most: Annotated[int, typer.Option(min=1, max=200, help="Show at most so many pictures.")] = 12,
    size: Annotated[int, typer.Option(min=1, max=2048, help="Shrink longer pictures to this first.")] = 224,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a sheet of pictures and their augmented versions: the first thing to do with a policy."""
    finish(apply_policy(policy, pictures, out, copies, most, size, seed), as_json)


def apply_policy(
    policy: str, pictures: list[Path], out: Path, copies: int, most: int, size: int, seed: int
) -> dict[str, Any]:
    """Read everything, then write the sheet."""
    from augtree.files import write_atomically
    from augtree.policies import Forest, Tree
    from augtree.policies.named import find
    from augtree.report import sheet

    found = find(policy)
    files = sheet.picture_files(pictures)
    read = [(file.name, *sheet.read_picture(file, size)) for file in files[:most]]
    rows = sheet.augmented(found, [(name, picture) for name, picture, _ in read], copies, seed)
    write_atomically(out, sheet.drawn(Path(policy).name, rows))
    say(found.to_text() if isinstance(found, Tree | Forest) else str(found))
    if len(files) > most:
        say(f"Showing {most} of {len(files)} pictures (--most).")
    shrunk = sum(was for _, _, was in read)
    if shrunk:
        say(f"{shrunk} of {len(read)} pictures were shrunk to {size} pixels first (--size).")
    say(f"Sheet: {out}")
    return {"sheet": str(out), "policy": policy, "pictures": len(read), "copies": copies, "shrunk": shrunk}


def say(text: str) -> None:
    """Print for people."""
    print(text)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print for scripts."""
    if as_json:
        print(json.dumps(result))
