"""`augtree data`: which data sets there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import Json, Overwrite, Seed, app, check_new_file, finish, say
from augtree.cli.build import build
from augtree.cli.options import read_data, with_data_options
from augtree.data.load import options_of, reader_by_name, root_of
from augtree.data.named.catalogue import SETS, present
from augtree.errors import ArgumentError
from augtree.files import write_atomically
from augtree.report.samples import as_svg, sample_sheet
from augtree.report.summary import summary, summary_lines

data = typer.Typer(help="Which data sets there are, what is in one, and how one is built.", no_args_is_help=True)
app.add_typer(data, name="data")
data.add_typer(build, name="build")

Root = Annotated[Path | None, typer.Option(help="The folder of named data sets (default: $AUGTREE_DATA, or data).")]

INTERNAL = ("cache", "progress")
"""Options of readers that are no --data-option."""


@data.command("list")
def list_sets(
    root: Root = None,
    pages: Annotated[bool, typer.Option("--pages", help="Also where each is from, and which files it is.")] = False,
    as_json: Json = False,
) -> None:
    """List the named data sets, and which of them are present."""
    folder = root_of(root)
    rows = []
    for entry in SETS:
        is_present = present(entry.name, folder)
        source = "present" if is_present else "--download" if entry.remotes else "manual"
        options = [name for name in options_of(reader_by_name(entry.name, folder)[0]) if name not in INTERNAL]
        facts = {"about": entry.about, "page": entry.page, "licence": entry.licence, "files": entry.expected}
        rows.append({"name": entry.name, "there": is_present, "fetched": source, "options": options, **facts})
    say(f"Data sets in {folder.resolve()}:")
    for row in rows:
        say(f"  {row['name']:<15}{row['fetched']:<12}{row['about']}")
        if pages:
            say(f"    {row['files']}")
            say(f"    from {row['page']}; licence: {row['licence']}")
    say(
        "present: can be loaded by this name; --download: `augtree data info NAME --download` fetches it; manual:"
        " download it from its page (--pages)."
    )
    finish({"root": str(folder.resolve()), "sets": rows}, as_json)


@data.command()
@with_data_options
def info(
    source: Annotated[str, typer.Argument(metavar="NAME_OR_FOLDER", help="A named set, a folder or a zip file.")],
    out: Annotated[
        Path | None, typer.Option(help="A picture of samples: a .png or .svg file (default: none is drawn).")
    ] = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Describe a data set: counts by split, class and group, sizes, notes, the fingerprint."""
    check_out(out, overwrite)
    found = read_data(source, seed=seed, **options)
    about = summary(found)
    for line in summary_lines(about):
        say(line)
    if out is not None:
        write_samples(found, out, seed)
        about["picture"] = str(out)
    finish(about, as_json)


def check_out(out: Path | None, overwrite: bool) -> None:
    """Raise for a file that cannot be drawn, before the data is read."""
    if out is None:
        return
    if out.suffix.lower() not in (".png", ".svg"):
        raise ArgumentError("--out", "must end in .png or .svg", str(out))
    if not out.resolve().parent.is_dir():
        raise ArgumentError("--out", "must be in an existing folder", str(out))
    check_new_file(out, overwrite)


def write_samples(found: Any, out: Path, seed: int) -> None:
    """Draw some samples."""
    png = sample_sheet(found, seed=seed)
    write_atomically(out, as_svg(png) if out.suffix.lower() == ".svg" else png)
    say(f"Samples: {out}")
