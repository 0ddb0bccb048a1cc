"""What was tested on the way, and what came of it: looks and tests as bars with their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.report.figures import Bar, bars, legend
from augtree.report.gather import Record
from augtree.report.markup import Html, tag
from augtree.report.sections import Section
from augtree.search.play import UNGROUPED, factor_in_words
from augtree.search.trunk_events import gap_in_words, kept_in_words
from augtree.search.verdict import CERTAIN

Finding = Mapping[str, Any]
MOST_ROWS = 24
FINE = 0.001
"""Smaller standard errors are shown with more digits."""


def section(record: Record) -> Section | None:
    """The evidence on each factor."""
    findings = record.findings
    if not findings:
        return None
    needed = float(record.spec.get("scorer", {}).get("borne", 0.9))
    kept = [finding for finding in findings if finding.get("kept") is not None]
    gaps = [finding for finding in findings if finding.get("gap") is not None]
    looks = [finding for finding in findings if not {"kept", "gap"} & {*finding}]
    body = []
    if kept:
        body += [tag("h3", "Flips and turns"), tag("p", KEPT.format(f"{100 * needed:.0f} %"), class_="explain")]
        body += [tag("div", [kept_figure(finding, needed) for finding in kept], class_="multiples")]
    if looks:
        last = {finding["factor"]: finding for finding in looks}
        body += [tag("h3", "Leaving things out"), tag("p", LOOKS, class_="explain")]
        reach = reach_of(list(last.values()))
        body += [tag("div", [look_figure(finding, reach) for finding in last.values()], class_="multiples")]
    if gaps:
        body += [
            tag("h3", "Every sample, or half of them"),
            *[tag("p", gap_in_sentence(finding)) for finding in gaps],
        ]
    body += [legend({"helps": "suits the data", "unsure": "no clear difference: it stays", "harms": "out of play"})]
    return Section("evidence", "What was tested, and what came of it", INTRO, tag("div", *body))


INTRO = "While the model trained, short tests asked what suits these data. Whiskers are standard errors."
KEPT = (
    "A model that never saw flipped samples predicts them as well as others where a flip makes no difference."
    " The bars show how much of their information its predictions keep on samples that are flipped or turned; at"
    " least {} is needed."
)
LOOKS = (
    "Short test trainings with and without each of these, side by side. Bars to the left: with it, the"
    " validation loss is lower, so it helps. Bars to the right: it harms."
)


def state_of(finding: Finding, group: str) -> str:
    """What a finding means for a group."""
    if group in finding["left"]:
        return "harms"
    effect = finding["groups"].get(group, finding)
    helps = "kept" in finding or effect["harm"] < -CERTAIN * effect["se"]
    return "helps" if helps else "unsure"


def groups_of(finding: Finding) -> list[str]:
    """The groups of a finding, those that left play first where there are many."""
    names = [*finding["groups"]]
    return (
        names if len(names) <= MOST_ROWS else sorted(names, key=lambda name: name not in finding["left"])[:MOST_ROWS]
    )


def kept_figure(finding: Finding, needed: float) -> Html:
    """The share of information that is kept, in each group."""
    kept, errors = finding["kept"], finding.get("kept_se") or {}
    title = factor_in_words(finding["factor"])
    if not kept:
        body = tag("p", "Untested: the model knew too little. Out of play.", class_="absent")
        return tag("figure", tag("figcaption", title, outcome(finding)), body)
    rows = [
        Bar(
            group,
            kept[group],
            errors.get(group, 0.0),
            state_of(finding, group),
            kept_in_words(kept[group], errors.get(group, 0.0)),
        )
        for group in groups_of(finding)
        if group in kept
    ]
    words = f"{title}: " + "; ".join(f"{bar.label} {bar.figure} kept".strip() for bar in rows)
    return tag("figure", tag("figcaption", title, outcome(finding)), bars(rows, 0, 1, words, (needed, "needed")))


def reach_of(findings: Sequence[Finding]) -> float:
    """The largest effect, errors included."""
    effects = [e for finding in findings for e in (finding, *finding["groups"].values())]
    return max([abs(effect["harm"]) + effect["se"] for effect in effects], default=0.0) or 1.0


def look_figure(finding: Finding, reach: float) -> Html:
    """By how much a factor raises or lowers the validation loss, in each group."""
    effects = finding["groups"] or {UNGROUPED: finding}
    title = factor_in_words(finding["factor"])
    rows = [
        Bar(
            g,
            effects[g]["harm"],
            effects[g]["se"],
            state_of(finding, g),
            signed(effects[g]),
        )
        for g in groups_of({**finding, "groups": effects})
    ]
    words = f"{title}: " + "; ".join(f"{bar.label} validation loss {bar.figure}".strip() for bar in rows)
    return tag("figure", tag("figcaption", title, outcome(finding)), bars(rows, -reach, reach, words))


def signed(effect: Mapping[str, float]) -> str:
    """A difference of losses with its standard error.

    >>> signed({"harm": -0.25, "se": 0.05}), signed({"harm": -0.0001, "se": 0.0002})
    ('−0.250 ± 0.050', '−0.00010 ± 0.00020')
    """
    digits = 3 if effect["se"] >= FINE else 5
    return f"{effect['harm']:+.{digits}f} ± {effect['se']:.{digits}f}".replace("-", "−")


def outcome(finding: Finding) -> Html:
    """What came of it, beside the title."""
    left, groups = set(finding["left"]), set(finding["groups"])  # no groups: untested, or all samples are one
    if not left:
        return tag("span", "in play", class_="outcome stays")
    whole = left >= groups
    return tag(
        "span", "out of play" if whole else f"out of play in {len(left)} of {len(groups)}", class_="outcome left"
    )


def gap_in_sentence(finding: Finding) -> str:
    """What a test of overfitting said."""
    end = "so half of the samples are left alone" if finding["left"] else "so every sample is augmented"
    return f"The loss on training samples was {gap_in_words(finding['gap'])} that on validation samples, {end}."


def in_words(record: Record, factors: frozenset[str], groups: Sequence[str]) -> list[str]:
    """The evidence on some factors in some groups, a sentence each."""
    last = {finding["factor"]: finding for finding in record.findings if finding["factor"] in factors}
    return [sentence for finding in last.values() for sentence in sentences(finding, groups)]


def sentences(finding: Finding, groups: Sequence[str]) -> list[str]:
    """A finding in sentences, one for each group."""
    name = factor_in_words(finding["factor"])
    out = []
    for group in groups:
        where, state = (f"{group}: " if group else ""), "out of play" if group in finding["left"] else "in play"
        if finding.get("kept") is not None:
            kept, errors = finding["kept"], finding.get("kept_se") or {}
            if group not in kept:
                out.append(f"{where}{name}, not tested by themselves here; {state}.")
                continue
            share = kept_in_words(kept[group], errors.get(group, 0.0))
            out.append(f"{where}{name}: predictions keep {share} of their information; {state}.")
        elif "gap" not in finding:
            effect = finding["groups"].get(group, finding)
            verb = "raises" if effect["harm"] > 0 else "lowers"
            figure = f"{abs(effect['harm']):.3f} ± {effect['se']:.3f}"
            out.append(f"{where}{name}: {verb} the validation loss by {figure}; {state}.")
    return out
