"""`augtree data`: which data sets there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Seed, app, finish, say
from augtree.cli.build import build
from augtree.cli.reading import OPTION, read
from augtree.data.load import options_of, reader_of, root_of
from augtree.data.named.catalogue import SETS, present
from augtree.errors import ArgumentError
from augtree.files import write_atomically
from augtree.report.samples import as_svg, sample_sheet
from augtree.report.summary import summary, summary_lines

data = typer.Typer(help="Which data sets there are, what is in one, and how one is built.", no_args_is_help=True)
app.add_typer(data, name="data")
data.add_typer(build, name="build")

Root = Annotated[Path | None, typer.Option(help="Where named sets lie (default: $AUGTREE_DATA, or data).")]


@data.command("list")
def list_sets(
    root: Root = None,
    pages: Annotated[bool, typer.Option("--pages", help="Also where each is from, and which files it is.")] = False,
    as_json: Json = False,
) -> None:
    """The data sets that have a name, and which of them are there."""
    place = root_of(root)
    found = []
    for one in SETS:
        there = present(one.name, place)
        how = "there" if there else "--download" if one.remotes else "by hand"
        own = [name for name in options_of(reader_of(one.name, place)) if name not in ("cache", "progress")]
        facts = {"about": one.about, "page": one.page, "licence": one.licence, "files": one.expected}
        found.append({"name": one.name, "there": there, "fetched": how, "options": own, **facts})
    say(f"Below {place.resolve()}:")
    for about in found:
        say(f"  {about['name']:<15}{about['fetched']:<12}{about['about']}")
        if pages:
            say(f"    {about['files']}")
            say(f"    from {about['page']}; licence: {about['licence']}")
    say("there: can be loaded by this name; --download: `augtree data info NAME --download` fetches it.")
    finish({"root": str(place.resolve()), "sets": found}, as_json)


@data.command()
def info(
    source: Annotated[str, typer.Argument(metavar="NAME_OR_FOLDER", help="A named set, a folder or a zip file.")],
    root: Root = None,
    out: Annotated[
        Path | None, typer.Option(help="A picture of samples: a .png or .svg file (default: none is drawn).")
    ] = None,
    size: Annotated[int | None, typer.Option(help="The side of the square that pictures are cut to.")] = None,
    split_by: Annotated[
        str | None, typer.Option(help="Make the split so that this column's values stay together.")
    ] = None,
    train: Annotated[int | None, typer.Option(help="Keep this many training samples.")] = None,
    val: Annotated[int | None, typer.Option(help="Keep this many validation samples.")] = None,
    labels: Annotated[int | None, typer.Option(help="Keep the labels of this many training samples.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Other groups: column:NAME, size-degree:NxM, size:N or degree:N.")
    ] = None,
    merge: Annotated[
        str | None, typer.Option(help="nearest: join groups that are too small with the one most like them.")
    ] = None,
    data_option: Annotated[
        list[str] | None, typer.Option(OPTION, help="An option of the set, NAME=VALUE (see data list --json).")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch what is not there.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What is in a data set: counts by split, class and group, sizes, notes, the fingerprint."""
    check_out(out)
    few = {"train": train, "val": val, "labels": labels, "groups": groups, "merge": merge, "seed": seed}
    found = read(source, root, download=download, own=data_option or (), size=size, split_by=split_by, **few)
    about = summary(found)
    for line in summary_lines(about):
        say(line)
    if out is not None:
        write_samples(found, out, seed)
        about["picture"] = str(out)
    finish(about, as_json)


def check_out(out: Path | None) -> None:
    """Raise before anything long for a file that cannot be drawn."""
    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise ArgumentError("--out", "must end in .png or .svg", str(out))
    if out is not None and not out.resolve().parent.is_dir():
        raise ArgumentError("--out", "must be in a folder that is there", str(out))


def write_samples(found: Any, out: Path, seed: int) -> None:
    """Draw some samples."""
    png = sample_sheet(found, seed=seed)
    write_atomically(out, as_svg(png) if out.suffix.lower() == ".svg" else png)
    say(f"Samples: {out}")
