"""The page: one self-contained HTML file about a run, or about all the runs in a folder."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.files import check_folder, write_atomically
from augtree.report.gather import KINDS, Record, gather
from augtree.report.markup import Html, as_json, join, tag, text
from augtree.report.pictures import Pictures
from augtree.report.sections import (
    Section,
    curves,
    evidence,
    groups,
    importances,
    mistakes,
    policies,
    settings,
    table,
    trunk,
)
from augtree.report.sections.progress import progress
from augtree.report.sections.verdict import NAMES, figures, in_short, lead
from augtree.runs.failures import attempt
from augtree.runs.spec import Transforms
from augtree.tasks import Task
from augtree.version import __version__

NAME = "report.html"
TITLES = {
    "search": "A policy for {}",
    "forest": "A policy for each group of {}",
    "fit": "A model for the groups of {}",
    "train": "A model for {}",
    "compare": "Policies compared on {}",
    "evaluate": "Encoders of {} judged",
}
"""What a page is about, by kind of run."""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
"""What a browser may do for a page: nothing outside, and no script but its own."""
STATES = {"done": "finished", "begun": "not finished", "spent": "ended by its budget"}


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Transforms = (),
) -> Path:
    """Write a page that explains a run: one HTML file that needs nothing else.

    Parameters
    ----------
    run
        The run's folder, finished or not; or a folder of runs, which come one after the other.
    out
        The file; by default report.html in the folder. One that exists is replaced.
    data
        The data again, for a run on arrays: without them there are no pictures.
    task
        The task again, for a run with a model of your own: without it there are no mistakes.
    transforms
        Transforms of your own in the run's policies.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = at.compare(data, task, {"none": None, "ta": "trivialaugment"}, seeds=1, out=folder)
    ...     page = at.write_report(folder)
    ...     page.name, page.read_text()[:15]
    ('report.html', '<!doctype html>')

    """
    folder = Path(run)
    path = folder / NAME if out is None else Path(out)
    if out is not None and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise ArgumentError("out", "must be a file in an existing folder", str(path))
    write_atomically(path, document(content_of(folder, data, task, transforms)).encode())
    return path


@dataclass(frozen=True)
class Content:
    """What is on a page: its head, its sections and their pictures."""

    title: str
    parts: Sequence[tuple[str, Html]]
    """The name and the markup of each part, the head first."""
    pictures: Pictures = field(default_factory=Pictures)
    is_open: bool = False

    @property
    def versions(self) -> dict[str, Any]:
        """A hash of each part, and one of all, with the pictures."""
        parts = {name: digest(html) for name, html in self.parts}
        return {"version": digest("".join([*parts.values(), *self.pictures.sources])), "parts": parts}


def digest(content: str) -> str:
    """A short hash."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def folders_of(run: Path) -> list[Path]:
    """The folders of the runs that a page is about; an ArgumentError where there is none."""
    if not run.exists():
        raise ArgumentError(
            "run", "must be the folder of a run, or a folder of runs, but it does not exist", str(run)
        )
    check_folder(run)
    if (run / "spec.json").is_file():
        return [run]
    found = sorted(path.parent for path in run.glob("*/spec.json"))
    if not found:
        raise ArgumentError("run", "must be the folder of a run, or a folder of runs", str(run))
    # What was searched comes before what it is compared with.
    return sorted(found, key=lambda folder: json.loads((folder / "spec.json").read_text()).get("kind") == "compare")


def content_of(
    run: Path, data: Dataset | None = None, task: Task | None = None, transforms: Transforms = ()
) -> Content:
    """Everything on the page of a run, or of a folder of runs."""
    records = [gather(folder, data, task, transforms) for folder in folders_of(run)]
    pictures = Pictures()
    sections = in_order([(record, section) for record in records for section in sections_of(record, pictures)])
    contents = [(section.name, section.title) for section in sections]
    parts = [("head", head(records, contents)), *((section.name, as_part(section)) for section in sections)]
    return Content(title_of(records[0]), parts, pictures, any(record.is_open for record in records))


def in_order(found: Sequence[tuple[Record, Section]]) -> list[Section]:
    """The sections of all runs in one order; those of further runs are named for them where there are others."""
    ranked = sorted(found, key=lambda pair: ORDER.index(pair[1].name))
    out: list[Section] = []
    for record, section in ranked:
        if section.name in [each.name for each in out]:
            title = f"{section.title}: {NAMES.get(record.kind, 'the run').lower()}"
            section = section._replace(name=f"{section.name}-{record.folder.name}", title=title)
        out.append(section)
    return out


ORDER = (
    "evidence",
    "trunk",
    "policy",
    "importances",
    "groups",
    "weights",
    "curves",
    "comparison",
    "check",
    "mistakes",
    "cost",
    "settings",
)
"""The sections, in the order in which they explain a run."""


def sections_of(record: Record, pictures: Pictures) -> list[Section]:
    """The sections of a run; one that cannot be made says why, and the others are there."""
    made: dict[str, Callable[[], Section | None]] = {
        "evidence": lambda: evidence.section(record),
        "trunk": lambda: trunk.section(record),
        "policy": lambda: policies.section(record, pictures),
        "importances": lambda: importances.section(record),
        "groups": lambda: groups.section(record),
        "weights": lambda: groups.weights(record),
        "curves": lambda: curves.section(record),
        "comparison": lambda: table.section(record),
        "check": lambda: table.free_section(record),
        "mistakes": lambda: mistakes.section(record, pictures),
        "cost": lambda: settings.cost(record),
        "settings": lambda: settings.section(record),
    }
    found = []
    for name, make in made.items():
        section, reason = attempt(make)
        if reason:
            body = tag("p", f"This part could not be made: {reason}.", class_="absent failed")
            section = Section(name, name.capitalize(), "", body)
        found += [] if section is None else [section]
    return found


def as_part(section: Section) -> Html:
    """A section as it stands on the page."""
    intro = tag("p", section.intro, class_="intro") if section.intro else None
    title = tag("h2", section.title, id=f"{section.name}-title")
    return tag("section", title, intro, section.body, id=section.name, aria_labelledby=f"{section.name}-title")


def title_of(record: Record) -> str:
    """What a page is about: the name of the data without what was kept of them."""
    name = re.sub(r"(?<=.)\[.*\]$", "", record.name)
    return TITLES.get(record.kind, "A run on {}").format(name)


def head(records: Sequence[Record], contents: Sequence[tuple[str, str]]) -> Html:
    """The title, the verdict and the figures to remember."""
    first = records[0]
    kinds = " and ".join(KINDS.get(record.kind, "a run") for record in records)
    state = STATES["begun"] if any(record.is_open for record in records) else STATES.get(first.status, first.status)
    day = time.localtime((first.folder / "spec.json").stat().st_mtime)
    begun = f"{day.tm_mday} {time.strftime('%B %Y', day)}"
    about = tag(
        "p", tag("span", state, class_=f"state {first.status}"), f" · {kinds}, begun on {begun}", class_="about"
    )
    listed = tag("ol", [tag("li", tag("a", title, href=f"#{name}")) for name, title in contents])
    nav = tag("nav", listed, class_="contents", aria_label="Contents")
    return tag(
        "div",
        tag("h1", title_of(first)),
        about,
        in_short(first),
        [progress(record) for record in records],
        lead(records),
        figures(records),
        nav,
        id="head",
    )


# ---- the document


@cache
def asset(name: str) -> str:
    """A file that comes with the package."""
    return files("augtree.report").joinpath("assets", name).read_text(encoding="utf-8")


def document(content: Content, live: str = "") -> str:
    """The whole HTML file; `live` is the address that a live page asks for news."""
    filled = {
        "title": text(content.title),
        "policy": text(
            f"{POLICY} script-src 'sha256-{script_hash()}'; connect-src {repr('self') if live else repr('none')}"
        ),
        "css": Html(asset("page.css")),
        "js": Html(asset("page.js")),
        "parts": join(html for _, html in content.parts),
        "pictures": as_json(content.pictures.sources),
        "live": as_json({"address": live, **content.versions} if live else None),
        "version": text(__version__),
    }
    pieces = re.split(r"{{(\w+)}}", asset("page.html"))
    return "".join(filled[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def script_hash() -> str:
    """What the page's own script is known by, so that no other is run."""
    return base64.b64encode(hashlib.sha256(asset("page.js").encode()).digest()).decode()
