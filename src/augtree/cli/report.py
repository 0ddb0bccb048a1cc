"""`augtree report`: a page that explains a run, as a file or live."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from augtree.cli.app import Json, app, finish, say
from augtree.errors import ArgumentError
from augtree.report.live import LivePage
from augtree.report.page import write_report


@app.command()
def report(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run of any kind, finished or not, or a folder of runs.")
    ],
    out: Annotated[Path | None, typer.Option(help="The HTML file (default: report.html in the folder).")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the page on this machine, and follow the run until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port for --live (default: any that is free).")] = 0,
    as_json: Json = False,
) -> None:
    """Write a page that explains a run: verdict, evidence, policies with pictures, curves, cost."""
    if not live:
        if port:
            raise ArgumentError("--port", "must be left out without --live", port)
        begun = time.perf_counter()
        path = write_report(run, out)
        say(f"The page: {path} ({path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - begun:.1f} s)")
        if open_page:
            webbrowser.open(path.resolve().as_uri())
        finish({"page": str(path)}, as_json)
        return
    if out is not None:
        raise ArgumentError("--out", "must be left out with --live, which writes no file", str(out))
    with LivePage(run, port) as page:
        say(f"The page, for this machine alone: {page.address}\nIt follows the run. Ctrl-C ends it; the run goes on.")
        finish({"address": page.address}, as_json)
        if open_page:
            webbrowser.open(page.address)
        try:
            page.serve_forever()
        except KeyboardInterrupt:
            say("The page is not served any more.")
