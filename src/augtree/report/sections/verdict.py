"""The verdict, first and in the words of the search, and the figures that go with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from augtree.comparison import Comparison
from augtree.report.gather import KINDS, Record
from augtree.report.markup import Html, join, tag
from augtree.report.sections.table import comparison_of
from augtree.tables import counted, duration
from augtree.training.metrics import METRICS

SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z<])")
TONES = {
    "Out of play": "harms",
    "Clearly helps": "helps",
    "Your data bear": "helps",
    "Stays": "unsure",
    "No single policy": "unsure",
    "Nothing that was tested": "helps",
    "The search did not help": "harms",
}
"""How sentences of a verdict begin, and what they tell."""
SHARES = ("accuracy", "error", "f1", "auroc")
"""Metrics that are shown in percent."""


def sentences(verdict: str) -> list[str]:
    """A verdict in sentences.

    >>> sentences("Out of play: crops. The policy is the mixture.")
    ['Out of play: crops.', 'The policy is the mixture.']
    """
    found = [part for part in SENTENCE.split(verdict) if part]
    out: list[str] = []
    for part in found:  # what follows a colon belongs to it
        if out and out[-1].endswith(":"):
            out[-1] += f" {part}"
        else:
            out.append(part)
    return out


def tone(sentence: str) -> str:
    """What a sentence tells: helps, harms, unsure, or nothing of these.

    >>> tone("The tree is 0.1 ahead of none."), tone("It is 0.1 ahead of none: not more than noise."), tone("Well.")
    ('helps', 'unsure', '')
    >>> tone("It is 0.1 ahead of none: one seed in common cannot tell that from noise.")
    'unsure'
    """
    if any(doubt in sentence for doubt in ("not more than noise", "within the noise", "cannot tell that from noise")):
        return "unsure"
    found = next((kind for begin, kind in TONES.items() if sentence.startswith(begin)), "")
    sides = {" ahead of ": "helps", " behind ": "harms", " above that of ": "harms", " below that of ": "helps"}
    return found or next((kind for words, kind in sides.items() if words in sentence), "")


PLAY = "what suits is in play, what does harm is out of play."
LEADS = {
    "search": f"This search found out which alterations suit these data: {PLAY}",
    "forest": f"This search found out which alterations suit each group of these data: {PLAY}",
    "fit": "Here each group of the data has alterations of its own, and how much each group counts is learned.",
    "train": "Here a model was trained with one such policy.",
    "compare": "Here a model was trained with each of several ways to do so, to see which is best.",
    "evaluate": "Here encoders learned from samples without labels, altered in several ways, and were then judged.",
}
ABOUT = "In training, samples are altered at random, so that a model learns more from few labels."


def in_short(record: Record) -> Html:
    """What the run is about, for somebody who has never heard of it."""
    return tag("p", f"{ABOUT} {LEADS.get(record.kind, '')}".strip(), class_="lead")


def verdict(record: Record) -> str:
    """The verdict of a run as far as it is; empty where there is none."""
    if record.kind == "compare":
        table = comparison_of(record)
        return table.verdict() if table is not None else ""
    return str(record.result.get("verdict", ""))


def lead(records: Sequence[Record]) -> Html:
    """The verdicts of all runs of a page."""
    lists = []
    for record in records:
        said = sentences(verdict(record))
        if record.is_open:
            said = [unfinished(record), *said]
        said = said or [without_verdict(record)]
        title = tag("h2", NAMES.get(record.kind, "the run"), class_="which") if len(records) > 1 else None
        lists += [title, tag("ul", folded(said), class_="verdict")]
    return join(lists)


def folded(said: Sequence[str]) -> list[Html]:
    """The sentences as items; those about groups side by side, and folded where there are many."""
    groups = [item(each) for each in said if each.startswith(OF_GROUP)]
    other = [item(each) for each in said if not each.startswith(OF_GROUP)]
    if not groups:
        return other
    shown = tag("ul", groups[:MOST_GROUPS], class_="by-group")
    rest = tag("ul", groups[MOST_GROUPS:], class_="by-group")
    count = len(groups) - MOST_GROUPS
    more = tag("details", tag("summary", f"and in {count} further groups"), rest) if count > 0 else None
    return [*other[:1], tag("li", tag("div", shown, more), class_="grouped"), *other[1:]]


def item(sentence: str) -> Html:
    """A sentence of a verdict, its beginning set off; reasons are a list where there are several."""
    begin, colon, rest = sentence.partition(": ")
    reasons = REASON.split(rest) if sentence.startswith(OF_GROUP) else []
    body: Html | str = (
        sentence if reasons or not sentence.startswith("Out of play") else join(tag("b", begin), colon, rest)
    )
    if reasons:
        body = join(tag("b", begin), tag("ul", [tag("li", each) for each in reasons], class_="reasons"))
    body = (
        body
        if isinstance(body, Html)
        else sentence[:1].upper() + sentence[1:]
        if sentence.startswith(SHARES)
        else sentence
    )
    sign = tag("span", SIGNS[tone(sentence)], class_="sign", aria_hidden="true")
    return tag("li", sign, tag("div", body), class_=tone(sentence) or "plain")


SIGNS = {"harms": "−", "helps": "+", "unsure": "~", "": "·"}
OF_GROUP, MOST_GROUPS = "Out of play in", 4
REASON = re.compile(r"; (?![^()]*\))")
"""What is between the reasons of a sentence."""
NAMES = {
    "search": "The search",
    "forest": "The search",
    "fit": "The forest",
    "compare": "The comparison",
    "train": "The training",
    "evaluate": "The evaluation",
}


def unfinished(record: Record) -> str:
    """That a run is not done, and how to go on with it."""
    done = counted(len(record.units) + sum(len(each.units) for each in record.groups.values()), "part")
    return f"This run is not finished ({done} of the work so far): what follows is what is known by now."


def without_verdict(record: Record) -> str:
    """What there is to say of a run without a verdict."""
    metrics = (record.training or {}).get("metrics", {})
    judged = next((split for split in ("test", "val") if record.metric in metrics.get(split, {})), None)
    if record.kind == "train" and judged:
        value = metrics[judged][record.metric]
        return f"The trained model has {record.metric} {value:.4f} on the {SPLITS[judged]} data."
    if record.kind == "evaluate" and record.result.get("lines"):
        best = max(
            (each for each in record.result["lines"] if each["mean"] is not None),
            key=lambda each: each["mean"],
            default=None,
        )
        if best is not None:
            protocol = record.result["protocol"]
            return f"{best['row']} has the highest accuracy, {best['mean']:.4f}, by the protocol {protocol}."
    return f"This is {KINDS.get(record.kind, 'a run')}."


SPLITS = {"test": "test", "val": "validation"}

# ---- figures


def figures(records: Sequence[Record]) -> Html:
    """The few figures to remember, as cards."""
    cards = [card for record in records for card in metric_cards(record)] + cost_cards(records[0])
    made = [tag("div", tag("dt", name), tag("dd", value, small(more))) for name, value, more in cards]
    return tag("dl", made, class_="cards") if made else join()


def small(more: str) -> Html | None:
    """What stands below a figure."""
    return tag("span", more, class_="more") if more else None


Card = tuple[str, str, str]


def metric_cards(record: Record) -> list[Card]:
    """What the model reaches."""
    if record.kind == "compare":
        table = comparison_of(record)
        return comparison_cards(table) if table is not None and table.rows else []
    if record.kind in ("forest", "fit"):
        measures: Mapping[str, Any] = record.result.get("measures", {})
        split = "test" if "test" in measures else "val"
        return group_cards(measures.get(split, {}), record.metric, SPLITS[split])
    metrics: Mapping[str, Any] = record.training.get("metrics", {})
    if record.result.get("measures"):
        metrics = {"val": record.result["measures"]}
    elif "tree" in record.result.get("free", {}):  # the check's training with the tree
        metrics = {"val": {record.metric: record.result["free"]["tree"]["metric"]}}
    return [
        (f"{record.metric}, {SPLITS[split]} data", shown(found[record.metric], record.metric), "")
        for split, found in metrics.items()
        if record.metric in found
    ]


def group_cards(groups: Mapping[str, Mapping[str, float]], metric: str, split: str) -> list[Card]:
    """The metric on average and in the worst group."""
    known = {name: found[metric] for name, found in groups.items() if metric in found}
    cards = (
        [(f"{metric}, {split} data", shown(known["all"], metric), "all groups together")] if "all" in known else []
    )
    single = {name: value for name, value in known.items() if name != "all"}
    if len(single) > 1:
        worst = (min if METRICS[metric].higher_is_better else max)(single, key=lambda name: single[name])
        cards.append((f"{metric}, worst group", shown(single[worst], metric), worst))
    return cards


def comparison_cards(table: Comparison) -> list[Card]:
    """The best free policy and the best of the rest."""
    lines = {line.policy: line for line in table.lines()}
    better = max if METRICS[table.metric].higher_is_better else min
    cards = []
    split = SPLITS.get(table.judged_on, table.judged_on)
    for about, among in (
        ("the best free policy", [table.best_free]),
        ("the best of the others", [n for n in lines if n not in table.free]),
    ):
        known = [lines[n] for n in among if n is not None and lines[n].mean is not None]
        if known:
            best = better(known, key=lambda line: line.mean or 0.0)
            more = f"{about}, {counted(best.seeds, 'seed')}, {split} data"
            cards.append((best.policy, shown(best.mean or 0.0, table.metric), more))
    return cards


def cost_cards(record: Record) -> list[Card]:
    """What it has cost."""
    cost: Mapping[str, Any] = record.result.get("cost", {})
    equivalents = cost.get("training_equivalents") or cost.get("search_equivalents") or cost.get("fit_equivalents")
    cards = []
    if equivalents:
        cards.append(("cost", f"{equivalents:.2f} trainings", f"{duration(record.seconds)} in all"))
    elif record.seconds:
        cards.append(("time so far" if record.is_open else "time", duration(record.seconds), ""))
    if record.data is not None:
        counts, kind = record.data.counts, "picture" if record.data.domain == "image" else "graph"
        rest = f"{counts['val']:,} to validate, {counts['test']:,} to test"
        cards.append(("labels to train on", f"{counts['train']:,} {kind}s", rest))
    return cards


def shown(value: float, metric: str) -> str:
    """A metric as people read it.

    >>> shown(0.87654, "accuracy"), shown(0.87654, "loss")
    ('87.7 %', '0.8765')
    """
    return f"{100 * value:.1f} %" if metric in SHARES else f"{value:.4f}"
