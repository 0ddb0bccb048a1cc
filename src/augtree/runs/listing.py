"""The runs in a folder: what they are about, whether they are done, what they have cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from augtree.errors import RunError
from augtree.runs.store import ROWS, Run

STATUS = {"done": "done", "begun": "not done", "spent": "ended by its budget"}


@dataclass(frozen=True)
class RunSummary:
    """One run in a few words."""

    run: str
    """Its folder."""
    kind: str = "?"
    """Search, forest, fit, train, compare or evaluate."""
    data: str = "?"
    """The name of its data set."""
    status: str = "?"
    """Done, not done, ended by its budget; or why it cannot be read."""
    units: int = 0
    """The number of finished units of work."""
    seconds: float = 0.0
    """The time that they took."""
    forward: int = 0
    """The number of samples that went forward through a model."""
    backward: int = 0
    """The number of samples that went backward through a model."""


def list_runs(folder: str | Path) -> Iterator[RunSummary]:
    """All runs below a folder; one that cannot be read says why in its status.

    Parameters
    ----------
    folder
        Where the runs are, at any depth.

    Examples
    --------
    >>> import tempfile
    >>> from augtree.runs.store import Run
    >>> folder = Path(tempfile.mkdtemp())
    >>> Run.begin(folder / "a", {"version": 1, "kind": "search", "data": {"name": "digits"}}).close()
    >>> [(run.kind, run.data, run.status) for run in list_runs(folder)]
    [('search', 'digits', 'not done')]

    """
    for spec in sorted(Path(folder).rglob("spec.json")):
        if ROWS not in spec.relative_to(folder).parts:
            yield summary_of(spec.parent)


def summary_of(folder: Path) -> RunSummary:
    """One run."""
    try:
        with Run.open(folder, write=False, thorough=False) as run:
            forward, backward, seconds, units = run.cost()
            status = STATUS.get(run.fact("status", "begun"), "?")
            kind, data = run.spec["kind"], run.spec["data"]["name"]
            return RunSummary(str(folder), kind, data, status, units, seconds, forward, backward)
    except RunError as error:
        return RunSummary(str(folder), status=str(error))
    except (KeyError, TypeError):
        return RunSummary(str(folder), status=f"{folder / 'spec.json'} must be the specification of a run")
