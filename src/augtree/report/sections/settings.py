"""What the run cost, its settings, and the command that makes it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from augtree.report.command import again
from augtree.report.gather import Record
from augtree.report.markup import Html, join, tag
from augtree.report.sections import Section
from augtree.search.result import Cost
from augtree.tables import duration
from augtree.version import __version__

INTRO = "One training equivalent is what a single whole training costs."
PHASES = {
    "speed": "measuring the speed",
    "trunk": "the trunk",
    "test": "tests of flips and turns",
    "look": "looks",
    "leg": "learning the groups' weights",
    "cool": "last cool-downs",
    "average": "averaging them",
    "model": "models to score by",
    "node": "scoring candidates",
    "free": "the check against free policies",
    "train": "trainings",
    "evaluate": "trainings and judging",
    "measures": "judging the model",
    "metrics": "judging the model",
    "plain": "the model to compare with",
    "features": "similarities of groups",
    "pair": "similarities of groups",
}
"""What units of work are, by the first part of their keys."""
NESTED = ("scorer", "task", "weighting")


def cost(record: Record) -> Section | None:
    """Where the time went."""
    spent: dict[str, tuple[float, int]] = {}
    for unit in (*record.units, *(unit for each in record.groups.values() for unit in each.units)):
        name = PHASES.get(unit.key.partition("/")[0], "other work")
        seconds, passes = spent.get(name, (0.0, 0))
        spent[name] = seconds + unit.seconds, passes + unit.forward + unit.backward
    if not spent:
        return None
    whole = sum(passes for _, passes in spent.values()) or 1
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", meter(passes / whole)),
            tag("td", f"{100 * passes / whole:.0f} %"),
            tag("td", duration(seconds)),
        )
        for name, (seconds, passes) in spent.items()
        if passes or seconds >= 0.5
    ]
    head = tag(
        "thead", tag("tr", [tag("th", each, scope="col") for each in ("work", "share of all passes", "", "time")])
    )
    table = tag(
        "div",
        tag("table", head, tag("tbody", rows), class_="cost"),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Cost",
    )
    return Section("cost", "What it cost", INTRO, join(tag("p", cost_in_words(record)), table))


def meter(share: float) -> Html:
    """A share as a bar."""
    return tag("span", tag("span", style=f"width:{100 * share:.1f}%"), class_="meter", aria_hidden="true")


def cost_in_words(record: Record) -> str:
    """The cost of the run in a sentence."""
    given: Mapping[str, Any] = record.result.get("cost", {})
    if {"forward", "training_equivalents"} <= {*given}:
        return f"{Cost(**given)}."
    parts = [f"{name.replace('_', ' ')} {value:.2f}" for name, value in given.items() if not name.endswith("seconds")]
    forward = sum(unit.forward for unit in record.units)
    backward = sum(unit.backward for unit in record.units)
    passes = f"{forward:,} forward and {backward:,} backward sample passes, {duration(record.seconds)}"
    return f"{', '.join(parts)} ({passes})." if parts else f"{passes}."


def section(record: Record) -> Section:
    """The settings and the command."""
    command = again(record)
    button = tag("button", "Copy", type="button", class_="copy", data_copy="command")
    made = tag("div", tag("pre", tag("code", command.command), tabindex="0"), button, class_="command")
    note = tag("p", command.note, class_="explain") if command.note else None
    notes = [tag("li", note) for note in record.notes]
    listed = join(tag("h3", "Notes of the run"), tag("ul", notes, class_="notes")) if notes else None
    body = join(
        tag("h3", "The command that makes this run again"),
        made,
        note,
        listed,
        tag("h3", "Settings"),
        settings(record),
    )
    return Section("settings", "Settings", "", body)


def settings(record: Record) -> Html:
    """Every setting of the specification."""
    spec = record.spec
    data, about = spec["data"], record.facts.get("surroundings", {})
    plain = {name: value for name, value in spec.items() if not isinstance(value, Mapping)}
    given = {key: value for key, value in (data.get("source") or {}).items() if value is not None}
    general = {"data": data["name"], **{f"data {key}": value for key, value in given.items()}}
    general |= {
        name: value for name, value in plain.items() if name not in ("version", "policy", "order", "seen", "notes")
    }
    general |= {"fingerprint of the data": data["fingerprint"]}
    blocks = [details("Run", general, open_=True)]
    blocks += [details(name.capitalize(), spec[name]) for name in NESTED if isinstance(spec.get(name), Mapping)]
    blocks += [details("Made with", {"augtree": __version__, **about})]
    return join(blocks)


def details(title: str, values: Mapping[str, Any], *, open_: bool = False) -> Html:
    """Some settings, which can be folded."""
    rows = [
        tag("div", tag("dt", name.replace("_", " ")), tag("dd", in_words(value))) for name, value in values.items()
    ]
    return tag("details", tag("summary", title), tag("dl", rows, class_="settings"), open=open_)


def in_words(value: Any) -> str:
    """A setting as a text."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(in_words, value)) or "none"
    return (
        ", ".join(f"{k} {in_words(v)}" for k, v in value.items()) or "none"
        if isinstance(value, Mapping)
        else str(value)
    )
