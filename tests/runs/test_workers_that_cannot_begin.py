"""Processes that end before their first job say why."""

import sys
from types import ModuleType

import pytest

from augtree.errors import ArgumentError
from augtree.runs.executors import Processes


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("<stdin>", "must be 1 in a script from standard input, which workers cannot read again, got 1"),
        ("script.py", r"must be 1 where a worker cannot begin \(see above\); a script needs `if __name__"),
    ],
)
def test_a_worker_that_cannot_begin_is_told(file, rule, tmp_path, monkeypatch):
    """A worker runs the main module again, whose import may fail."""
    script, main = tmp_path / "script.py", ModuleType("__main__")
    script.write_text("import no_such_module")
    main.__file__ = str(script) if file == script.name else file
    monkeypatch.setitem(sys.modules, "__main__", main)
    with Processes(1).pool(divmod) as pool, pytest.raises(ArgumentError, match=f"workers {rule}"):
        list(pool.run({"a": 1}))
