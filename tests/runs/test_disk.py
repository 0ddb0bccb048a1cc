"""A disk that fails at every write in turn: what was there stays, the error is one line, and the run can go on."""

import errno
import os
import re
import sys

import pytest
import torch

from augtree import Tree
from augtree.__main__ import main
from augtree.errors import ArgumentError, RunError
from augtree.files import write_atomically
from augtree.runs.checkpoints import Checkpoints
from augtree.runs.failures import attempt
from augtree.runs.store import Run
from augtree.training.state import State
from support.disk import disk  # noqa: F401 - a fixture
from support.searches import TASK, bars

SPEC = {"version": 1, "kind": "test", "seed": 0}
TRAINER = TASK.prepare(bars(0, 0.5, 16, 16))
CODES = {"full": errno.ENOSPC, "broken": errno.EIO, "not permitted": errno.EACCES}
ADVICE = {
    "full": r"no space left in {run} \(for \S+\); free some, then ",
    "broken": r"{run}/\S+ must be on a disk that works \(.*\); what is finished is kept: mend this, then ",
    "not permitted": r"{run}/\S+ must be readable and writable \(.*\); what is finished is kept: mend this, then ",
}


def program(folder):
    """A run with units, checkpoints, facts and results."""
    with Run.begin(folder, SPEC) as run:
        checkpoints = Checkpoints(run, TRAINER)
        for i in range(3):
            model = checkpoints.training(f"trunk/{i}", lambda i=i: State({"weights": torch.full((3,), float(i))}, i))
            run.unit(f"loss/{i}", lambda model=model: ({"loss": float(model().tensors["weights"].sum())}, None))
        checkpoints.drop("trunk/0")
        run.write_all({"tree.json": b"{}", "result.json": b"[1]"})
        run.record_fact("status", "done")


def files(folder):
    """All files but the store's."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "sqlite" not in path.name
    }


def kept(folder):
    """The units and files of a run."""
    with Run.open(folder, write=False) as run:
        return [unit[:2] for unit in run.units()], files(folder)


@pytest.mark.parametrize("what", CODES)
def test_every_write_may_fail(tmp_path, disk, what):  # noqa: F811
    program(tmp_path / "whole")
    whole, total = kept(tmp_path / "whole"), disk.writes
    assert total > 30
    for n in range(1, total + 1):
        out = tmp_path / str(n)
        disk.fail(n, CODES[what])
        with pytest.raises((RunError, ArgumentError)) as caught:
            program(out)
        disk.fail(0, 0)
        message = str(caught.value)
        assert str(out) in message
        assert "\n" not in message
        if isinstance(caught.value, RunError):
            assert re.match(ADVICE[what].format(run=out), message)
            again = "begin again" if not (out / "spec.json").exists() else f"`augtree resume {out}`"
            assert message.endswith(again)
        found = files(out) if out.exists() else {}
        assert {name: content for name, content in found.items() if name in whole[1]}.items() <= whole[1].items()
        assert set(found) <= {*whole[1], "checkpoints/trunk-0.safetensors"}  # and nothing torn
        program(out)
        assert kept(out) == whole


@pytest.mark.parametrize("code", CODES.values())
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, disk, code):  # noqa: F811
    path = tmp_path / "tree.json"
    Tree().save(path)
    before = path.read_bytes()
    for n in range(1, 5):
        disk.fail(n, code)
        with pytest.raises(ArgumentError) as caught:
            write_atomically(path, b"another")
        assert f"must be a file that can be written ({os.strerror(code)}), got '{path}'" in str(caught.value)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    disk.fail(5, code)
    write_atomically(path, b"another")
    assert path.read_bytes() == b"another"


def test_a_full_disk_is_not_the_fault_of_a_candidate(tmp_path, disk):  # noqa: F811
    with Run.begin(tmp_path / "run", SPEC) as run:
        disk.fail(1, errno.ENOSPC)
        with pytest.raises(RunError, match="no space left"):
            attempt(lambda: Checkpoints(run, TRAINER).save("cool/1", State({"weights": torch.ones(2)}, 1)))


def test_the_command_ends_with_one_line(tmp_path, disk, monkeypatch, capsys):  # noqa: F811
    out = tmp_path / "run"
    arguments = ["compare", "digits", "none", "--seeds", "1", "--steps", "2", "--batch-size", "8"]
    arguments += ["--model", "cnn", "--train", "40", "--val", "40", "--device", "cpu", "--out", str(out)]
    for command, n in ((arguments, 12), (["resume", str(out)], 1)):
        disk.fail(n, errno.ENOSPC)
        monkeypatch.setattr(sys, "argv", ["augtree", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        line = capsys.readouterr().err.rstrip("\n")
        assert line == f"augtree: no space left in {out} (for run.sqlite); free some, then `augtree resume {out}`"


def test_an_error_of_the_system_is_one_line(monkeypatch, capsys):
    for error, line in (
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on the disk; free some, then try again"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/a/b"),
            "the system could not do it (/a/b): Permission denied",
        ),
    ):
        monkeypatch.setattr("augtree.cli.app", lambda error=error: (_ for _ in ()).throw(error))
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert capsys.readouterr().err == f"augtree: {line}\n"
