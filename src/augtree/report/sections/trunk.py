"""The trunk as a line in time, its cool-downs branching off; each can be pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from augtree.report.figures import NARROW, WIDE, Scale, at_both_widths, line, number, words
from augtree.report.gather import Record
from augtree.report.markup import Html, join, tag
from augtree.report.sections import Section
from augtree.report.sections.rivals import policy_name
from augtree.search.play import factor_in_words

INTRO = (
    "One model is trained at a constant learning rate, on a mixture of all that is in play: the trunk. Now and"
    " then a copy branches off and its learning rate falls to zero; such a cool-down shows at little cost how"
    " good a whole training would be. The last cool-downs, or the average of the best, are the finished model."
    " Point at a branch to see what it is."
)
LANE, MOST_HEIGHT, TOP = 22.0, 230.0, 46.0
ROLES = ("", "the finished model", "one of the {} whose average is the finished model")
"""What a last cool-down is in the end, by how many are averaged."""
TITLES = {"test": "Test of flips and turns", "look": "Look", "cool": "Last cool-down"}


class Twig(NamedTuple):
    """A cool-down that branched off."""

    key: str
    kind: str
    begin: float
    """In trainings, as the end is."""
    end: float
    title: str
    facts: Sequence[tuple[str, str]]
    loss: float | None
    best: bool


def section(record: Record) -> Section | None:
    """The course of a search by cool-downs."""
    steps = record.training_steps
    ends = [unit.value["step"] for unit in record.starting("trunk/")]
    if not ends or not steps:
        return None
    legs = [unit.value["step"] for unit in record.starting("leg/")]
    trunk = max([*ends, *legs[:1]]) / steps
    twigs = twigs_of(record, steps, legs)
    drawn = at_both_widths(lambda width: drawing(twigs, trunk, width))
    first = next((twig for twig in twigs if twig.best), twigs[-1] if twigs else None)
    panels = [panel(twig, hidden=twig is not first) for twig in twigs]
    figure = tag("div", drawn, tag("div", panels, class_="panels", aria_live="polite"), class_="explorer timeline")
    return Section("trunk", "The training as a line in time", INTRO, figure)


def twigs_of(record: Record, steps: int, legs: Sequence[int]) -> list[Twig]:
    """The branches of tests, looks and last cool-downs."""
    members = set(record.result.get("members", ()))
    found = []
    for unit in record.units:
        kind, value = unit.key.partition("/")[0], unit.value
        if kind not in TITLES or "predicted" in value or "candidate" not in value:
            continue
        if "at" in value:
            begin, length = value["at"], value["steps"] / steps
        elif len(legs) > 1:  # the cool-down in which a forest's weights are learned, too
            begin, length = legs[0] / steps, (legs[-1] - legs[0]) / steps
        else:
            continue
        role = ROLES[min(len(members), 2)].format(len(members)) if value["candidate"] in members else ""
        found.append(twig(unit.key, kind, value, begin, length, role, record.metric))
    return found


def twig(key: str, kind: str, value: Any, begin: float, length: float, role: str, metric: str) -> Twig:
    """One branch, with what is said of it."""
    number_ = value.get(kind)
    title = TITLES[kind] + (f" {number_ + 1}" if kind == "look" and number_ is not None else "")
    facts = [("policy", what_ran(kind, value)), ("branched off after", f"{begin:.2f} trainings")]
    facts += [("length", f"{length:.2f} trainings")]
    if value.get("loss") is not None:
        facts.append(("validation loss", f"{value['loss']:.4f} ± {value.get('loss_se', 0.0):.4f}"))
    if value.get("metric") is not None:
        facts.append((f"validation {metric}", f"{value['metric']:.4f}"))
    facts += [("in the end", role)] if role else []
    return Twig(key, kind, begin, begin + length, title, facts, value.get("loss"), bool(role))


def what_ran(kind: str, value: Any) -> str:
    """What a branch was trained on."""
    if kind == "look":
        if "without" not in value:
            return "the mixture, in one of the look's designs"
        return (
            f"the mixture without {', '.join(map(factor_in_words, value['without']))}"
            if value["without"]
            else "the mixture as it is"
        )
    return "the mixture of what is in play" if kind == "test" else policy_name(str(value["candidate"]))


def drawing(twigs: Sequence[Twig], trunk: float, width: int) -> Html:
    """The line and its branches at one width."""
    far = max([trunk, *(twig.end for twig in twigs)])
    x = Scale(0, far, 14, width - (64 if width == WIDE else 44))
    fans = fans_of(twigs)
    crowded = max([len(fan) for fan in fans], default=0)
    lane = min(LANE, MOST_HEIGHT / max(1, crowded))
    bottom = TOP + lane * crowded + 18
    marks: list[Html] = [
        line(x(0), TOP, x(trunk), TOP, class_="trunk-line"),
        tag("circle", cx=f"{x(0):.1f}", cy=TOP, r=4, class_="trunk-start"),
    ]
    places = [(x(fan[0].begin), fan_name(fan)) for fan in fans]
    title = "the trunk: training on the mixture" if width == WIDE else "the trunk"
    if all(place > len(title) * 8 + 20 for place, _ in places):
        marks.append(words(x(0), TOP - 14, title, class_="small"))
    marks += [fan_label(place, text, i, width) for i, (place, text) in enumerate(places)]
    for fan in fans:
        marks += [branch(twig, x, TOP + lane * (i + 1)) for i, twig in enumerate(fan)]
    ticks = x.ticks(8 if width == WIDE else 4)
    marks += [line(x(0), bottom, x(far), bottom, class_="axis")]
    marks += [
        join(
            line(x(t), bottom, x(t), bottom + 4, class_="axis"),
            words(x(t), bottom + 17, number(t), "middle", class_="small faint"),
        )
        for t in ticks
    ]
    marks += [words(x(far), bottom + 32, "trainings", "end", class_="small faint")]
    height = bottom + 38
    box = f"0 0 {width} {height:.0f}"
    return tag(
        "svg",
        *marks,
        viewBox=box,
        width=width,
        height=f"{height:.0f}",
        role="group",
        aria_label="The trunk and its branches",
    )


def fans_of(twigs: Sequence[Twig]) -> list[list[Twig]]:
    """Branches of one place and kind."""
    fans: dict[tuple[str, float], list[Twig]] = {}
    for twig in twigs:
        fans.setdefault((twig.title if twig.kind == "look" else twig.kind, twig.begin), []).append(twig)
    return list(fans.values())


def fan_name(fan: Sequence[Twig]) -> str:
    """What branches off here."""
    if fan[0].kind == "test":
        return "test"
    return (
        f"{fan[0].title.lower()} ({len(fan)})" if fan[0].kind == "look" else f"cool-down{'s' if len(fan) > 1 else ''}"
    )


def fan_label(place: float, text: str, i: int, width: int) -> Html:
    """A name above the line."""
    y = TOP - 14 - (15 if i % 2 and width == NARROW else 0)
    return join(
        line(place, y + 4, place, TOP, class_="tick"),
        words(place, y, text, "middle" if place > 30 else "start", class_="small"),
    )


def branch(twig: Twig, x: Scale, y: float) -> Html:
    """One branch, which can be pointed at."""
    begin, end = x(twig.begin), max(x(twig.end), x(twig.begin) + 16)
    bend = min(26.0, end - begin)
    curve = f"{begin:.1f} {(TOP + y) / 2:.1f} {begin:.1f} {y:.1f} {begin + bend:.1f} {y:.1f}"
    way = f"M{begin:.1f} {TOP} C{curve} L{end:.1f} {y:.1f}"
    label = f"{twig.title}: " + ", ".join(f"{key} {value}" for key, value in twig.facts)
    shown = twig.loss is not None and twig.kind == "cool"
    figure = words(end + 9, y + 4, f"{twig.loss:.3f}", class_="small", aria_hidden="true") if shown else None
    marks = [
        tag("path", d=way, class_="hit"),
        tag("path", d=way, class_="way"),
        tag("circle", cx=f"{end:.1f}", cy=f"{y:.1f}", r=5, class_="end"),
    ]
    kind = f"twig {twig.kind}{' best' if twig.best else ''}"
    pressed = {"role": "button", "tabindex": "-1", "aria_pressed": "false"}
    return join(tag("g", *marks, class_=kind, aria_label=label, data_panel=panel_name(twig), **pressed), figure)


def panel_name(twig: Twig) -> str:
    """The name of the panel that says more about a branch."""
    return f"twig-{twig.key.replace('/', '-')}"


def panel(twig: Twig, *, hidden: bool) -> Html:
    """What there is to say of a branch."""
    facts = [tag("div", tag("dt", key), tag("dd", value)) for key, value in twig.facts]
    return tag(
        "div",
        tag("h3", twig.title),
        tag("dl", facts, class_="facts"),
        class_="panel",
        data_name=panel_name(twig),
        hidden=hidden,
    )
