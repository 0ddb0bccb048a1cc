"""`augtree data`: which data sets there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Seed, app, finish, say
from augtree.cli.build import build
from augtree.cli.options import DATA_OPTIONS, read_data, with_options
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
        own = [name for name in options_of(reader_of(one.name, place)[0]) if name not in ("cache", "progress")]
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
@with_options(DATA_OPTIONS)
def info(
    source: Annotated[str, typer.Argument(metavar="NAME_OR_FOLDER", help="A named set, a folder or a zip file.")],
    out: Annotated[
        Path | None, typer.Option(help="A picture of samples: a .png or .svg file (default: none is drawn).")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    **options: Any,
) -> None:
    """What is in a data set: counts by split, class and group, sizes, notes, the fingerprint."""
    check_out(out)
    found = read_data(source, seed=seed, **options)
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
