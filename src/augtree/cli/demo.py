"""`augtree demo`: the example, on digits in three planted groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from augtree import demo as example
from augtree.cli.app import Json, Seed, app, finish, say, stoppable
from augtree.cli.forest import print_forest
from augtree.cli.logs import Log
from augtree.progress import Console


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("runs/demo"),
    seed: Seed = 0,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Run the example: policies for three groups of digits, a model and a comparison."""
    torch.set_num_threads(1)
    say(
        f"Handwritten digits, {example.LABELS} labels to train on, in three groups that were planted: a third as they"
    )
    say("were (upright); of a third, on grey, half are mirrored (mirrored); a third, negatives, lies in all four")
    say("directions (turned). Which augmentation helps each group?")
    with stoppable(out, f"augtree demo --out {out} --seed {seed}"), Console(say) as console:
        found, table = example.run(out, seed, [console, *(log or ())])
    print_forest(found, console)
    say("\n" + table.to_text() + f"\n\n{table.verdict()}")
    say(f"\nDigits of each group and what its policy makes of them: {out}/sheet.png. The policies: {out}/forest.svg")
    say(f"All of it on one page, to look at in a browser: {out}/report.html")
    files = {name: str(out / name) for name in sorted(example.FILES)}
    finish({"forest": str(found.forest), "verdict": table.verdict(), "files": files}, as_json)
