"""`augtree data build`: data sets from what their publishers give out in another form."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from augtree.cli.app import Json, finish, say, stoppable
from augtree.data.proteins import build_proteins
from augtree.progress import counting

build = typer.Typer(help="Make a data set from raw files.", no_args_is_help=True)


@build.callback()
def root() -> None:
    """Make a data set from raw files."""


@build.command()
def proteins(
    structures: Annotated[Path, typer.Option(help="A folder or a tar archive of PDB or mmCIF files (.gz or not).")],
    annotations: Annotated[Path, typer.Option(help="Gene Ontology annotations, GAF 2 (.gz or not).")],
    ontology: Annotated[Path, typer.Option(help="The Gene Ontology, OBO (.gz or not).")],
    out: Annotated[Path, typer.Option(help="The folder of the data set: a new one, or a build that was stopped.")],
    cutoff: Annotated[float, typer.Option(help="Calpha atoms closer than this have an edge, in angstrom.")] = 6.0,
    fragments: Annotated[str, typer.Option(help="AlphaFold's fragments of long proteins: join or apart.")] = "join",
    evidence: Annotated[
        str, typer.Option(help="Evidence codes with commas between, or experimental, curated, all.")
    ] = "all",
    aspects: Annotated[str, typer.Option(help="Some of P (process), F (function), C (component).")] = "PFC",
    min_proteins: Annotated[int, typer.Option(min=1, help="Terms with fewer proteins are dropped.")] = 50,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
    as_json: Json = False,
) -> None:
    """Protein graphs with Gene Ontology labels: a node a residue, an edge where Calpha atoms are close."""
    begun = time.perf_counter()
    with stoppable(out, "the same command"), counting("structures", say) as report:
        built = build_proteins(
            structures,
            annotations,
            ontology,
            out,
            cutoff=cutoff,
            fragments=fragments,
            evidence=[code.strip() for code in evidence.split(",")],
            aspects=aspects,
            min_proteins=min_proteins,
            workers=workers or os.cpu_count() or 1,
            progress=lambda done, total, bad: report(done, total, f", {bad:,} bad"),
        )
    print_counts(built.counts, out, time.perf_counter() - begun)
    finish({"out": str(out), "seconds": round(time.perf_counter() - begun, 2), **built.counts}, as_json)


def print_counts(counts: dict[str, int], out: Path, seconds: float) -> None:
    """What was built and what was left out."""
    say(
        f"{counts['graphs']:,} graphs of {counts['proteins']:,} proteins: {counts['residues']:,} residues, "
        f"{counts['edges']:,} edges, {counts['terms']:,} terms, {counts['labels']:,} labels, in {seconds:.0f} s."
    )
    left_out = {
        "files that are bad (bad_files.csv)": counts["bad_files"],
        "files that duplicate another": counts["set_aside"],
        "other files": counts["other_files"],
        "residues without a Calpha atom": counts["residues_without_calpha"],
    }
    for what, count in left_out.items():
        if count:
            say(f"  left out: {count:,} {what}")
    if counts["graphs_without_label"]:
        say(f"  {counts['graphs_without_label']:,} graphs have no label")
    say(f"The data set: {out} (in Python, augtree.data.load({str(out)!r})).")
