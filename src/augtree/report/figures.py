"""Drawings of figures with their spread: bars, intervals and lines, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from augtree.report.markup import Html, join, tag, text

WIDE, NARROW = 1040, 352
"""The widths, in pixels, that a wide drawing is made for; pages show one of them."""
LETTER = 6.6
"""About the width of a letter of a label."""
COLOURS = 8
"""The colours that a page has for groups; further groups begin again, with dashes."""


def at_both_widths(draw: Callable[[int], Html]) -> Html:
    """A drawing for wide screens and one for narrow ones, of which a page shows one."""
    return tag("div", tag("div", draw(WIDE), class_="wide"), tag("div", draw(NARROW), class_="narrow"))


def svg(width: float, height: float, *children: object, label: str, **attributes: object) -> Html:
    """A drawing, with the words that stand for it."""
    box = f"0 0 {width:.0f} {height:.0f}"
    given = {"viewBox": box, "width": f"{width:.0f}", "height": f"{height:.0f}", "role": "img", **attributes}
    return tag("svg", *children, aria_label=label, **given)


def words(x: float, y: float, content: object, anchor: str = "start", **attributes: object) -> Html:
    """A text in a drawing."""
    return tag(
        "text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=None if anchor == "start" else anchor, **attributes
    )


def line(x0: float, y0: float, x1: float, y1: float, **attributes: object) -> Html:
    """A straight line."""
    return tag("line", x1=f"{x0:.1f}", y1=f"{y0:.1f}", x2=f"{x1:.1f}", y2=f"{y1:.1f}", **attributes)


def shortened(label: str, width: float) -> str:
    """A label cut to a width."""
    most = max(3, int(width / LETTER))
    return label if len(label) <= most else f"{label[: most - 1]}…"


def titled(label: str, width: float, x: float, y: float, anchor: str = "start", **attributes: object) -> Html:
    """A label cut to a width, with the whole of it as its tooltip."""
    short = shortened(label, width)
    title = tag("title", label) if short != label else None
    return tag("text", title, short, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **attributes)


class Scale(NamedTuple):
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values on the scale.

        >>> Scale(0, 1, 0, 100).ticks(), Scale(0.31, 0.39, 0, 9).ticks(4)
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.32, 0.34, 0.36, 0.38])
        """
        span = (self.high - self.low) or 1.0
        power = 10 ** math.floor(math.log10(span / most))
        step = next(s * power for s in (1, 2, 2.5, 5, 10, 20) if span / (s * power) <= most + 1e-9)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + i) * step, 10) for i in range(count)]


# ---- bars


class Bar(NamedTuple):
    """A value with its standard error, and what it means: helps, harms or neither."""

    label: str
    value: float
    error: float
    state: str = ""
    figure: str = ""
    """The value in words."""


ROW, BAR = 26, 12
BAR_WIDTH = 336


def bars(
    given: Sequence[Bar], low: float, high: float, label: str, threshold: tuple[float, str] | None = None
) -> Html:
    """Bars from zero with their spread, a row each; a threshold is a line with its name."""
    wide = max([len(bar.label) for bar in given], default=0)
    left = min(118.0, wide * LETTER + 10) if wide else 0.0
    figure = max([len(bar.figure) for bar in given], default=0) * LETTER + 6
    scale = Scale(low, high, left + 2, BAR_WIDTH - figure - 4)
    top = 18 if threshold else 4
    height = top + ROW * len(given) + 2
    marks = [line(scale(0), top - 2, scale(0), height - 2, class_="axis")]
    if threshold is not None:
        place = scale(threshold[0])
        marks += [line(place, top - 2, place, height - 2, class_="threshold")]
        marks += [words(min(place, BAR_WIDTH - 40), 11, threshold[1], "middle", class_="small faint")]
    for i, bar in enumerate(given):
        marks.append(bar_marks(bar, scale, top + ROW * i + ROW / 2, left))
    return svg(BAR_WIDTH, height, *marks, label=label, class_="bars")


def bar_marks(bar: Bar, scale: Scale, y: float, left: float) -> Html:
    """One bar, its whisker, its label and its value."""
    zero, end = scale(0), scale(bar.value)
    x, width = min(zero, end), max(1.5, abs(end - zero))
    marks = [
        tag("rect", x=f"{x:.1f}", y=f"{y - BAR / 2:.1f}", width=f"{width:.1f}", height=BAR, rx=2, class_="value")
    ]
    if bar.error > 0:
        begin, stop = scale(bar.value - bar.error), scale(bar.value + bar.error)
        marks += [line(begin, y, stop, y, class_="whisker")]
        marks += [line(each, y - 4, each, y + 4, class_="whisker") for each in (begin, stop)]
    marks += [titled(bar.label, left, 0, y + 4.2, class_="label")] if bar.label else []
    marks += [words(BAR_WIDTH, y + 4.2, bar.figure, "end", class_="figure")]
    return tag("g", *marks, class_=f"row {bar.state}")


# ---- intervals in a row of a table

CELL, CELL_HEIGHT = 190, 30


def interval(value: float, error: float | None, scale: tuple[float, float], state: str, each: Iterable[float] = (),
             zero: float | None = None) -> Html:  # fmt: skip
    """A value with its spread, and the single values behind it; the row's text says the same in figures."""
    place, y = Scale(*scale, 6, CELL - 6), CELL_HEIGHT / 2
    marks = [line(6, y, CELL - 6, y, class_="rail")]
    if zero is not None:
        marks.append(line(place(zero), 3, place(zero), CELL_HEIGHT - 3, class_="threshold"))
    marks += [tag("circle", cx=f"{place(one):.1f}", cy=y + 9, r=2.2, class_="single") for one in each]
    if error:
        marks.append(line(place(value - error), y, place(value + error), y, class_="spread"))
    marks.append(tag("circle", cx=f"{place(value):.1f}", cy=y, r=4.6, class_="mean"))
    box = f"0 0 {CELL} {CELL_HEIGHT}"
    return tag(
        "svg", *marks, viewBox=box, width=CELL, height=CELL_HEIGHT, aria_hidden="true", class_=f"interval {state}"
    )


# ---- lines


class Line(NamedTuple):
    """A curve, with the number of its colour."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: int
    dotted: bool = False


class Mark(NamedTuple):
    """A point with its error beside the curves."""

    label: str
    x: float
    y: float
    error: float
    state: str = ""


CHART = 260


def lines(
    curves: Sequence[Line],
    marks: Sequence[Mark],
    axes: tuple[str, str],
    label: str,
    span: tuple[float, float] | None = None,
) -> Html:
    """Curves over one axis, named at their ends, at both widths."""
    return at_both_widths(lambda width: chart(curves, marks, axes, label, span, width))


def chart(
    curves: Sequence[Line], marks: Sequence[Mark], axes: tuple[str, str], label: str,
    span: tuple[float, float] | None, width: int,
) -> Html:  # fmt: skip
    """Curves at one width."""
    xs = [x for curve in curves for x, _ in curve.points] + [mark.x for mark in marks]
    ys = [y for curve in curves for _, y in curve.points]
    ys += [mark.y + side * mark.error for mark in marks for side in (-1, 1)]
    low, high = span or padded(min(ys), max(ys))
    names = any(curve.label for curve in curves)
    most = 150.0 if width == WIDE else 92.0
    right = min(most, max(len(curve.label) for curve in curves) * LETTER + 14) if curves and names else 12.0
    x = Scale(min(xs), max(xs), 46, width - right)
    y = Scale(low, high, CHART - 34, 22)
    parts = [grid(x, y, axes, width)]
    parts += [curve_marks(curve, x, y) for curve in curves]
    parts += [end_labels(curves, x, y, right)] if names else []
    parts += [mark_marks(mark, x, y) for mark in marks]
    return svg(width, CHART, *parts, label=label, class_="chart")


def padded(low: float, high: float) -> tuple[float, float]:
    """A range with some room; zero is its start where it is near."""
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return (0.0 if 0 <= low < 0.5 * high else low - room), high + room


def grid(x: Scale, y: Scale, axes: tuple[str, str], width: int) -> Html:
    """Axes with their ticks and names."""
    ticks = y.ticks(5)
    marks = [line(x.start, y(tick), x.end, y(tick), class_="grid") for tick in ticks]
    marks += [words(x.start - 8, y(tick) + 4, number(tick), "end", class_="small faint") for tick in ticks]
    across = x.ticks(8 if width == WIDE else 4)
    marks += [words(x(tick), CHART - 16, number(tick), "middle", class_="small faint") for tick in across]
    marks += [line(x(tick), y.start, x(tick), y.start + 4, class_="axis") for tick in across]
    marks += [line(x.start, y.start, x.end, y.start, class_="axis")]
    marks += [
        words(0, 11, axes[1], class_="small faint"),
        words(x.end, CHART - 2, axes[0], "end", class_="small faint"),
    ]
    return tag("g", *marks)


def number(value: float) -> str:
    """A number on an axis.

    >>> number(1500), number(0.25), number(2)
    ('1,500', '0.25', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:g}"


def curve_marks(curve: Line, x: Scale, y: Scale) -> Html:
    """The way of one curve."""
    steps = " ".join(f"{'L' if i else 'M'}{x(a):.1f} {y(b):.1f}" for i, (a, b) in enumerate(curve.points))
    dotted = curve.dotted or curve.colour >= COLOURS
    return tag(
        "path",
        tag("title", curve.label or "curve"),
        d=steps,
        class_=f"curve c{curve.colour % COLOURS}{' dotted' if dotted else ''}",
    )


def end_labels(curves: Sequence[Line], x: Scale, y: Scale, width: float) -> Html:
    """The names of curves at their ends, moved apart where they would lie on each other."""
    ends = sorted((y(curve.points[-1][1]), i) for i, curve in enumerate(curves) if curve.label)
    room = min(15.0, (CHART - 30) / max(1, len(ends)))
    places: list[float] = []
    for wanted, _ in ends:
        places.append(max(wanted, places[-1] + room) if places else wanted)
    over = max(0.0, places[-1] - (CHART - 24)) if places else 0.0
    marks = []
    for place, (_, i) in zip(places, ends, strict=True):
        curve = curves[i]
        marks.append(
            titled(
                curve.label, width - 10, x.end + 8, place - over + 4, class_=f"small name c{curve.colour % COLOURS}"
            )
        )
    return tag("g", *marks)


def mark_marks(mark: Mark, x: Scale, y: Scale) -> Html:
    """A point with its error."""
    here = x(mark.x)
    spread = (
        line(here, y(mark.y - mark.error), here, y(mark.y + mark.error), class_="whisker") if mark.error else None
    )
    dot = tag("circle", cx=f"{here:.1f}", cy=f"{y(mark.y):.1f}", r=4)
    return tag("g", tag("title", mark.label), spread, dot, class_=f"mark {mark.state}")


def legend(entries: Mapping[str, str]) -> Html:
    """What states of bars and points mean, by their class."""
    items = [tag("li", tag("span", class_=f"key {state}"), " ", meaning) for state, meaning in entries.items()]
    return tag("ul", *items, class_="legend")


__all__ = [
    "Bar",
    "Line",
    "Mark",
    "Scale",
    "at_both_widths",
    "bars",
    "interval",
    "join",
    "legend",
    "line",
    "lines",
    "svg",
    "text",
    "words",
]
