"""The trunk as a line in time, its cool-downs branching off; each can be pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from augtree.report.figures import LETTER, WIDE, Scale, at_both_widths, line, number, words
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
    lanes = lanes_of(fans, x)
    deepest = max([first + len(fan) for first, fan in zip(lanes, fans, strict=True)], default=0)
    lane = min(LANE, MOST_HEIGHT / max(1, deepest))
    bottom = TOP + lane * deepest + 18
    marks: list[Html] = [
        line(x(0), TOP, x(trunk), TOP, class_="trunk-line"),
        tag("circle", cx=f"{x(0):.1f}", cy=TOP, r=4, class_="trunk-start"),
        *labels([(x(fan[0].begin), fan_name(fan)) for fan in fans], x(0), width),
        *(
            branch(twig, x, TOP + lane * (first + i + 1))
            for first, fan in zip(lanes, fans, strict=True)
            for i, twig in enumerate(fan)
        ),
        *time_axis(x, far, bottom, width),
    ]
    size = {"viewBox": f"0 0 {width} {bottom + 38:.0f}", "width": width, "height": f"{bottom + 38:.0f}"}
    return tag("svg", *marks, role="group", aria_label="The trunk and its branches", **size)


def lanes_of(fans: Sequence[Sequence[Twig]], x: Scale) -> list[int]:
    """The first lane of each fan: below those before it where they would lie on each other."""
    found: list[int] = []
    for i, fan in enumerate(fans):
        over = [
            found[j] + len(other)
            for j, other in enumerate(fans[:i])
            if end_of(other[0], x) > x(fan[0].begin) - 12 and x(other[0].begin) - 12 < end_of(fan[0], x)
        ]
        found.append(max(over, default=0))
    return found


def end_of(twig: Twig, x: Scale) -> float:
    """Where a branch ends; short ones are drawn a little longer."""
    return max(x(twig.end), x(twig.begin) + 16)


def time_axis(x: Scale, far: float, y: float, width: int) -> list[Html]:
    """The axis of time, in trainings."""
    marks = [line(x(0), y, x(far), y, class_="axis")]
    for tick in x.ticks(8 if width == WIDE else 4):
        marks.append(line(x(tick), y, x(tick), y + 4, class_="axis"))
        marks.append(words(x(tick), y + 17, number(tick), "middle", class_="small faint"))
    return [*marks, words(x(far), y + 32, "trainings", "end", class_="small faint")]


def labels(places: Sequence[tuple[float, str]], start: float, width: int) -> list[Html]:
    """Names above the line, in two rows where they would touch."""
    title = "the trunk: training on the mixture" if width == WIDE else "the trunk"
    ends, marks = [0.0, 0.0], []
    if all(place - LETTER * len(text) / 2 > start + LETTER * len(title) + 10 for place, text in places):
        marks.append(words(start, TOP - 14, title, class_="small"))
    for place, text in places:
        half = LETTER * len(text) / 2
        left = min(max(0.0, place - half), width - 2 * half)
        row = 0 if left > ends[0] or ends[0] <= ends[1] else 1
        ends[row] = left + 2 * half + 8
        y = TOP - 14 - 15 * row
        marks += [
            line(place, y + 4, place, TOP, class_="tick"),
            words(left + half, y, text, "middle", class_="small"),
        ]
    return marks


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


def branch(twig: Twig, x: Scale, y: float) -> Html:
    """One branch, which can be pointed at."""
    begin, end = x(twig.begin), end_of(twig, x)
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
