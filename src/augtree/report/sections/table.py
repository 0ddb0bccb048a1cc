"""Tables of comparisons and evaluations, with their differences and the spread over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from augtree.baselines.base import Baseline
from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.methods import is_free, restore_method
from augtree.comparison import Comparison
from augtree.comparison.result import Line
from augtree.evaluation import Evaluation
from augtree.policies.codec import Reader
from augtree.report.figures import interval
from augtree.report.gather import Record, tried
from augtree.report.markup import Html, join, tag
from augtree.report.sections import Section
from augtree.tables import figure, signed
from augtree.training.metrics import METRICS

INTRO = (
    "A model is trained from the start with each policy, several times with different seeds. Small dots are"
    " single trainings, lines the standard deviation over seeds. Differences are paired seed by seed, with their"
    " standard error; where that reaches zero, two policies cannot be told apart."
)
EVALUATED = (
    "Encoders are trained without labels, with each policy; how good their features are is then judged by a"
    " simple classifier. Small dots are single seeds, lines the standard deviation over seeds."
)
TAGS = {
    "free": "free policy",
    "controls": "control at equal cost",
    "finished": "search",
    "published": "published method",
}
OWN = "policy, trained anew"
"""What a row is that is none of these."""


def comparison_of(record: Record) -> Comparison | None:
    """The comparison as far as it is; None before its first row."""
    kinds = kinds_of(record)
    rows = record.result.get("rows") or rows_of(record)
    if not rows:
        return None
    judged_on = record.result.get("judged_on") or ("test" if any("test" in row for row in rows) else "val")
    lists = [[name for name, kind in kinds.items() if kind == each] for each in ("controls", "finished", "published")]
    free = [name for name, kind in kinds.items() if kind == "free"]
    return Comparison(record.metric, rows, free, judged_on, record.notes, *lists)


def rows_of(record: Record) -> list[dict[str, Any]]:
    """The rows that are trained so far."""
    seeds, names = record.spec.get("seeds", ()), record.spec.get("order", ())
    done = {unit.key: unit.value for unit in record.starting("train/")}
    keys = [(name, seed, f"train/{name}/{seed}") for seed in seeds for name in names]
    return [{"policy": name, "seed": seed, **done[key]} for name, seed, key in keys if key in done]


def kinds_of(record: Record) -> dict[str, str]:
    """What each row is: free, controls, finished, published; nothing where that is not known."""
    if "free" in record.result:
        return {name: kind for kind in TAGS for name in record.result[kind]}
    reader = Reader(record.folder / "spec.json", ())
    found = {}
    for name in record.spec.get("order", ()):
        method, _ = tried(lambda name=name: restore_method(record.spec["policies"][name], reader))  # type: ignore[misc]
        kinds = {"controls": Longer | Soup, "finished": Searched, "published": Baseline}
        kind = next((kind for kind, of in kinds.items() if isinstance(method, of)), "")
        found[name] = "free" if method is not None and is_free(method) else kind
    return found


def section(record: Record) -> Section | None:
    """The table of a comparison or an evaluation."""
    if record.kind == "evaluate":
        return evaluation(record)
    if record.kind != "compare":
        return None
    table = comparison_of(record)
    if table is None:
        return None
    return Section(
        "comparison", "Side by side", INTRO, join(comparison_table(table, kinds_of(record)), waiting(record))
    )


def waiting(record: Record) -> Html | None:
    """How many trainings are not done yet."""
    planned = len(record.spec.get("order", ())) * len(record.spec.get("seeds", ()))
    done = len(record.starting("train/"))
    if not record.is_open or done >= planned:
        return None
    return tag("p", f"{done} of {planned} trainings are done.", class_="absent")


def comparison_table(table: Comparison, kinds: Mapping[str, str]) -> Html:
    """A row for each policy, the best first."""
    lines = table.lines()
    sign = -1 if METRICS[table.metric].higher_is_better else 1
    lines = sorted(lines, key=lambda line: (line.mean is None, sign * (line.mean or 0.0)))
    reference = table.best_free
    scale, differences = scale_of(table, lines), difference_scale(lines)
    groups = any(line.worst_group is not None for line in lines)
    head = ["policy", f"{table.metric} ({table.judged_on})"]
    head += [f"difference to {reference}"] * (reference is not None)
    head += ["trainings"] * any(line.cost is not None for line in lines) + ["worst group"] * groups
    rows = []
    for line in lines:
        cells = [mean_cell(line, table, scale)]
        cells += [difference_cell(line, reference, differences, -sign)] if reference is not None else []
        cells += [tag("td", "" if line.cost is None else f"{line.cost:.1f}")] if "trainings" in head else []
        cells += [tag("td", figure(line.worst_group, line.worst_spread))] if groups else []
        kind = kinds.get(line.policy, "")
        named = tag(
            "th",
            tag("span", line.policy, class_="policy"),
            tag("span", TAGS.get(kind, OWN), class_="tag"),
            scope="row",
        )
        rows.append(tag("tr", named, cells, class_=kind or "own"))
    return whole_table(head, rows, "Comparison of policies")


def scale_of(table: Comparison, lines: Sequence[Line]) -> tuple[float, float]:
    """The range of all values."""
    values = [row[table.judged_on] for row in table.rows if row.get(table.judged_on) is not None]
    values += [line.mean + side * (line.spread or 0) for line in lines if line.mean is not None for side in (-1, 1)]
    room = 0.04 * (max(values) - min(values)) if values else 0.0
    return (min(values) - room, max(values) + room or 1.0) if values else (0.0, 1.0)


def difference_scale(lines: Sequence[Line]) -> tuple[float, float]:
    """A symmetric range of all differences."""
    ends = [abs(line.difference) + (line.difference_se or 0) for line in lines if line.difference is not None]
    most = max(ends, default=0.0) or 1.0
    return -most, most


def mean_cell(line: Line, table: Comparison, scale: tuple[float, float]) -> Html:
    """The metric, drawn and in figures."""
    if line.mean is None:
        return tag("td", tag("span", f"failed: {line.reason}", class_="faint"))
    each = [
        row[table.judged_on]
        for row in table.rows
        if row["policy"] == line.policy and row.get(table.judged_on) is not None
    ]
    more = f"{line.failed} failed" if line.failed else None
    return tag(
        "td",
        interval(line.mean, line.spread, scale, "", each),
        tag("span", figure(line.mean, line.spread), class_="figure"),
        more,
    )


def difference_cell(line: Line, reference: str | None, scale: tuple[float, float], better: int) -> Html:
    """The paired difference, drawn and in figures."""
    if line.policy == reference:
        return tag("td", tag("span", "the best free policy", class_="faint"))
    if line.difference is None:
        return tag("td")
    error = line.difference_se
    clear = error is not None and abs(line.difference) >= 2 * error
    state = ("helps" if better * line.difference > 0 else "harms") if clear else "unsure"
    drawn = interval(line.difference, error, scale, state, zero=0.0)
    return tag("td", drawn, tag("span", signed(line.difference, error).replace("-", "−"), class_="figure"))


# ---- the check of a search


def free_section(record: Record) -> Section | None:
    """The tree beside the free policies, where a search has compared them."""
    free: Mapping[str, Mapping[str, float]] = record.result.get("free", {}) if record.kind == "search" else {}
    if len(free) < 2:
        return None
    ends = [(each["loss"] - each["loss_se"], each["loss"] + each["loss_se"]) for each in free.values()]
    scale = min(low for low, _ in ends), max(high for _, high in ends)
    body = []
    for name, each in sorted(free.items(), key=lambda pair: pair[1]["loss"]):
        drawn = interval(each["loss"], each["loss_se"], scale, "")
        cells = [tag("td", drawn, tag("span", figure(each["loss"], each["loss_se"]), class_="figure"))]
        behind = "" if name == "tree" else signed(each["behind"], each["behind_se"]).replace("-", "−")
        cells += [tag("td", behind), tag("td", figure(each["metric"]))]
        body.append(tag("tr", tag("th", name, scope="row"), cells, class_="own" if name == "tree" else "free"))
    head = ("policy", "validation loss", "difference to the tree", record.metric)
    return Section(
        "check", "Beside the free policies", FREE, whole_table(head, body, "The tree and the free policies")
    )


FREE = (
    "A model was trained from the start with the tree and with each policy that needs no search, once each, and"
    " judged on the validation samples that did not choose the tree's nodes. Lines are standard errors."
)


def whole_table(head: Sequence[str], body: Sequence[Html], label: str) -> Html:
    """A table with drawings, which scrolls in itself."""
    heads = tag("thead", tag("tr", [tag("th", each, scope="col") for each in head]))
    table = tag("table", heads, tag("tbody", body), class_="comparison")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


# ---- evaluations


def evaluation(record: Record) -> Section | None:
    """The accuracies of encoders."""
    rows = record.result.get("rows") or [
        {"row": unit.key[len("evaluate/") :].rpartition("/")[0], "seed": unit.key.rpartition("/")[2], **each}
        for unit in record.starting("evaluate/")
        for each in (unit.value.get("folds") or [unit.value])
    ]
    if not rows:
        return None
    found = Evaluation(str(record.spec["protocol"]), rows, {}, 0)
    lines = found.lines()
    values = [row["accuracy"] for row in rows if "accuracy" in row] or [0.0, 1.0]
    scale, folded = (min(values), max(values)), any(line["over_folds"] is not None for line in lines)
    body = []
    for line in sorted(lines, key=lambda line: -(line["mean"] or 0.0)):
        each = means_by_seed(rows, line["row"])
        drawn = None if line["mean"] is None else interval(line["mean"], line["over_seeds"], scale, "", each)
        text = figure(line["mean"], line["over_seeds"]) or "failed"
        cells = [tag("td", drawn, tag("span", text, class_="figure")), tag("td", str(line["seeds"]))]
        cells += [tag("td", figure(line["over_folds"]))] * folded
        body.append(tag("tr", tag("th", line["row"], scope="row"), cells))
    head = ["encoder", f"accuracy, {found.protocol}", "seeds"] + ["spread over folds"] * folded
    return Section("comparison", "Side by side", EVALUATED, whole_table(head, body, "Evaluation of encoders"))


def means_by_seed(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The mean over the folds of each seed."""
    mine = [row for row in rows if row["row"] == name and "accuracy" in row]
    by_seed: dict[Any, list[float]] = {}
    for row in mine:
        by_seed.setdefault(row["seed"], []).append(row["accuracy"])
    return [sum(values) / len(values) for values in by_seed.values()]
