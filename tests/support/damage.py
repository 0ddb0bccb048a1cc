"""Runs whose files somebody has changed."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path


def write_spec(folder: Path, spec: dict) -> None:
    """Change a run's specification as if the run had begun with this one."""
    (folder / "spec.json").write_text(json.dumps(spec))
    edit(folder, "DELETE FROM facts WHERE key = 'spec'")


def edit(folder: Path, *statements: str) -> None:
    """Change a run's store by hand."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as store, store:
        for statement in statements:
            store.execute(statement)
