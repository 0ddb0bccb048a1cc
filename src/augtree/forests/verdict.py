"""The verdict of a forest, in plain words: the model's metric, and what left play in each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from augtree.errors import printable
from augtree.search.factorial import Effect
from augtree.search.play import factor_in_words
from augtree.search.verdict import CERTAIN, WHY, untaken

if TYPE_CHECKING:
    from augtree.forests.result import ForestResult


def verdict_lines(result: ForestResult) -> list[str]:
    """The metric on average and in the worst group; then, where something was searched, a line for each group."""
    return [metric_in_words(result), *plays_in_words(result.out_of_play, result.findings)]


def metric_in_words(result: ForestResult) -> str:
    """The model's metric on average and in the worst group, in a sentence or two."""
    split = result.judged_on
    mine, worst = result.average(split), result.worst(split)
    if mine is None or worst[1] is None:
        return f"There is no {result.metric} on the {split} data: no class has both labels there."
    text = f"{result.metric} on {split} data: {mine:.4f} on average, {worst[1]:.4f} in the worst group"
    text += f" ({printable(worst[0])})"
    if not result.plain:
        return f"{text}."
    before, (name, lowest) = result.average(split, result.plain), result.worst(split, result.plain)
    return (
        f"{text}; without augmentation and weights {before:.4f} and {lowest:.4f} ({printable(name)})."
        " One training each: see compare for the spread."
    )


def plays_in_words(out_of_play: Mapping[str, Iterable[str]], findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """What left play in each group, and why."""
    findings = list(findings)
    if not out_of_play:
        return []
    if not findings:
        return ["Nothing was tested."]
    whole = [printable(group) for group, factors in out_of_play.items() if not factors]
    if len(whole) == len(out_of_play):
        if any(finding["left"] for finding in findings):
            return ["Everything is in play in all groups: one policy for all was better than one for each."]
        return ["Nothing that was tested does harm in any group: everything is in play."]
    lines = [
        f"Out of play in {printable(group)}: {'; '.join(removal(factor, group, findings) for factor in factors)}."
        for group, factors in out_of_play.items()
        if factors
    ]
    return [*lines, *([f"Everything is in play in {', '.join(whole)}."] if whole else [])]


def removal(factor: str, group: str, findings: Iterable[Mapping[str, Any]]) -> str:
    """Why a factor left a group's play, by the last finding that removed it there or, failing that, elsewhere."""
    about = [finding for finding in findings if finding["factor"] == factor and finding["left"]]
    here = [finding for finding in about if group in finding["left"]]
    name = factor_in_words(factor)
    if not about:
        return name
    finding = (here or about)[-1]
    if "kept" in finding:
        return untaken(finding, group)
    if "gap" in finding:
        return f"{name}, since the model hardly overfits"
    common = Effect(finding["harm"], finding["se"])
    own = Effect(**finding["groups"][group]) if group in finding["groups"] else common
    if not here:
        return f"{name}, as in most groups ({common.size} of harm in all together)"
    if own.harm > CERTAIN * own.se:
        return f"{name}, which cost {own.size} in validation loss{WHY.get(factor, '')}"
    if common.harm > CERTAIN * common.se:
        return f"{name}, which cost {common.size} in validation loss in all groups together"
    return f"{name} ({own.size} in validation loss)"
