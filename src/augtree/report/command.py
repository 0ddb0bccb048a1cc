"""The command that makes a run again, from its specification."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from augtree.forests import Weighting
from augtree.report.gather import KINDS, Record
from augtree.runs.spec import space_spec
from augtree.search.options import SearchOptions
from augtree.search.search import space_for
from augtree.tasks import TASKS
from augtree.transforms import spaces

DATA_OPTIONS = ("root", "size", "split_by", "train", "val", "labels", "groups", "merge", "fill")
"""Arguments of `augtree.data.load` that are options of a command."""
WITHOUT_SOURCE = "The run was made in Python on data in arrays, so they must be given again."
OTHER_MODEL = "The run's model is a function, so the task must be given again."
NEW = "again"
"""The folder of the new run."""
Words = list[str]


class Again(NamedTuple):
    """How a run is made again, and what to know of it."""

    command: str
    note: str = ""


class UnsayableError(Exception):
    """Something that a command line has no option for."""


def again(record: Record) -> Again:
    """The command that makes a run again; any run is made again from its specification."""
    copied = f"mkdir {NEW} && cp {shlex.quote(str(record.folder / 'spec.json'))} {NEW}/"
    if record.spec["data"]["source"] is None:
        return Again(f"{copied} && python -c \"import augtree; augtree.resume('{NEW}', data=...)\"", WITHOUT_SOURCE)
    if not isinstance(record.spec["task"]["model"], str):
        return Again(f"{copied} && python -c \"import augtree; augtree.resume('{NEW}', task=...)\"", OTHER_MODEL)
    try:
        return Again(shlex.join(["augtree", *said(record), "--out", NEW]))
    except UnsayableError as reason:
        return Again(
            f"{copied} && augtree resume {NEW}{budget(record)}", f"It is made from its specification, since {reason}."
        )


def budget(record: Record) -> str:
    """The budget, where the specification does not have it."""
    given = record.facts.get("budget")
    return "" if given is None or "budget" in record.spec else f" --budget {given}"


def said(record: Record) -> Words:
    """A run as the words of a command line."""
    if record.kind not in ("search", "forest"):
        raise UnsayableError(f"options cannot say all of {KINDS.get(record.kind, 'it')}")
    spec = record.spec
    out = [record.kind, *data_words(spec["data"]["source"]), *task_words(spec["task"]), *space_words(record)]
    out += search_words(record)
    if record.kind == "forest":
        paper = spec["method"] == "paper"
        out += ["--method", "paper"] * paper
        usual = Weighting.of({"start": "uniform", "d": "raw"} if paper else {}).spec()
        out += changed(spec["weighting"], usual)
        out += [f"--{name}" for name in ("plain", "pairs") if spec[name]]
    return out


def data_words(source: Mapping[str, Any]) -> Words:
    """The data set and its options."""
    given = {name: value for name, value in source.items() if value is not None}
    if given.pop("seed", 0) != 0:
        raise UnsayableError("the data were drawn with another seed than 0")
    out = [str(given.pop("source"))]
    out += [word for name in DATA_OPTIONS if name in given for word in option(name, given.pop(name))]
    for name, value in given.items():
        out += ["--data-option", f"{name}={text(name, value)}"]
    return out


def task_words(spec: Mapping[str, Any]) -> Words:
    """The task: its kind, and every field that is not the default."""
    usual = TASKS[spec["task"]]().spec()
    out = [] if spec["task"] == "classification" else ["--task", spec["task"]]
    options = dict(spec["options"])
    weights = options.pop("weights", None)
    if options:
        raise UnsayableError(f"the model has options of its own ({', '.join(options)})")
    if spec["preprocess"] not in (None, "default"):
        raise UnsayableError("the preprocessing is a transform")
    fields = {**{k: v for k, v in spec.items() if k != "options"}}
    fields["preprocess"] = "none" if spec["preprocess"] is None else "default"
    return (
        out
        + changed(fields, {"precision": "auto", **usual})
        + ([] if weights is None else option("weights", weights))
    )


def space_words(record: Record) -> Words:
    """The name of the space."""
    if record.data is None or record.task is None:
        raise UnsayableError("the data are not there, so its space has no name")
    data, task = record.data, record.task
    named: dict[str, Callable[[], Any]] = {"auto": lambda: space_for(data, task, None)}
    if data.domain == "image":
        named |= {"images": lambda: spaces.images(fill=data.fill), "simclr": spaces.simclr}
        named |= {"images+composites": lambda: spaces.images(composites=True, fill=data.fill)}
        named |= {"simclr+composites": lambda: spaces.simclr(composites=True, fill=data.fill)}
    else:
        named |= {"graphs": spaces.graphs, "graphs+composites": lambda: spaces.graphs(composites=True)}
    for name, make in named.items():
        if json.loads(json.dumps(space_spec(make()))) == record.spec["space"]:
            return [] if name == "auto" else ["--space", name]
    raise UnsayableError("its space has no name")


def search_words(record: Record) -> Words:
    """The scorer and the options of the search."""
    spec = record.spec
    scorer, paper = dict(spec["scorer"]), spec.get("method") == "paper"
    name = scorer.pop("name")
    usual = SearchOptions(scorer=name).spec()
    default = "density" if paper else "cooldown"
    out = [] if name == default else ["--scorer", name]
    given = {key: spec[key] for key in ("depth", "probabilities", "seed", "check") if key in spec}
    given |= {"budget": spec["budget"] if "budget" in spec else record.facts.get("budget")}
    given |= {"method": spec["method"]} if record.kind == "search" else {}
    out += changed(given, {**usual, "budget": None} | ({"check": 0.0} if paper else {}))
    before = dict(usual["scorer"])
    for key, value in json.loads(json.dumps(scorer)).items():
        if value != json.loads(json.dumps(before[key])):
            out += ["--set", f"{key}={text(key, value)}"]
    return out


def changed(given: Mapping[str, Any], usual: Mapping[str, Any]) -> Words:
    """Options for all that differs from the default."""
    different = {name: value for name, value in given.items() if name in usual and value != usual[name]}
    return [word for name, value in different.items() for word in option(name, value)]


def option(name: str, value: Any) -> Words:
    """An option and its value."""
    written = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{written}" if value else f"--no-{written}"]
    return [f"--{written}", text(name, value)]


def text(name: str, value: Any) -> str:
    """A value as a command line has it."""
    if value is None or isinstance(value, Mapping):
        raise UnsayableError(f"{name} has a value that no option can say")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(text(name, each) for each in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
