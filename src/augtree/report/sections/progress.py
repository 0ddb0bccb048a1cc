"""How far a run is that is not finished."""

from __future__ import annotations

from augtree.comparison.train import PARTS
from augtree.report.gather import Record
from augtree.report.markup import Html, tag
from augtree.report.sections.settings import PHASES


def share_done(record: Record) -> float | None:
    """The share of the planned work that is done; None where no plan is known."""
    if record.kind in ("compare", "evaluate"):
        rows = len(record.spec["order"]) + (record.kind == "evaluate")  # and an encoder without training
        prefix = "train/" if record.kind == "compare" else "evaluate/"
        return len(record.starting(prefix)) / max(1, rows * len(record.spec["seeds"]))
    if record.kind in ("train", "fit"):
        return len(record.starting("train/" if record.kind == "train" else "leg/")) / PARTS
    trunk = next((unit for unit in record.starting("trunk/") if unit.value.get("step")), None)
    planned = record.facts.get("plan", {}).get("steps")
    if trunk is None or not planned:
        return None
    a_step = trunk.backward / trunk.value["step"]
    return float(sum(unit.backward for unit in record.units if unit.key != "speed") / (a_step * planned))


def progress(record: Record) -> Html | None:
    """A bar for a run that is not finished, and what was done last."""
    if not record.is_open:
        return None
    share = share_done(record)
    last = PHASES.get(record.units[-1].key.partition("/")[0], "") if record.units else ""
    words = [] if share is None else [f"{100 * min(1.0, share):.0f} % of the planned work is done"]
    words += [f"last: {last}"] if last else []
    if not words:
        return None
    told = tag("p", "; ".join(words))
    if share is None:
        return tag("div", told, class_="progress")
    value = round(100 * min(1.0, share))
    bar = tag("span", style=f"width:{value}%")
    meter = tag(
        "div",
        bar,
        class_="meter",
        role="progressbar",
        aria_valuenow=value,
        aria_valuemin=0,
        aria_valuemax=100,
        aria_label="Progress of the run",
    )
    return tag("div", told, meter, class_="progress")
