"""`reliability.py disk`: a full disk, I/O errors and missing permissions, from every write of a search on.

The writes are those of the process to the system, SQLite's own among them: a small library that is preloaded
(failing_disk.c) counts them and fails the n-th and all that follow.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import augtree.cli.resume
import augtree.cli.search  # noqa: F401 - once, and not in every process
from augtree.__main__ import main as augtree_command
from augtree.data import load
from measure import machine, write
from reliability_damage import results

CREATE, WRITE, SYNC, NAME = 1, 2, 4, 8
"""Kinds of calls: new files and folders; content; lengths and flushes; renames and removals."""
FAULTS = {
    "full disk": (errno.ENOSPC, CREATE | WRITE | SYNC),
    "I/O error": (errno.EIO, CREATE | WRITE | SYNC | NAME),
    "no permission": (errno.EACCES, CREATE | NAME),
}
SOURCE = Path(__file__).with_name("failing_disk.c")
SEARCH = ["search", "digits", "--train", "60", "--val", "60", "--model", "cnn", "--steps", "10", "--batch-size", "16"]
SEARCH += ["--device", "cpu", "--budget", "1", "--threads", "1", "--out"]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--every", type=int, default=1, help="of the writes, every which one")


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Fail the disk from each write on; then resume with a disk that works."""
    if "failing_disk" not in os.environ.get("LD_PRELOAD", ""):
        begin_again_with_library()
    load("digits", train=60, val=60)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        whole = Path(place) / "whole"
        assert called(whole, [*SEARCH, str(whole)])[0] == 0
        counts = {name: faults(Path(place), whole, name, options.every) for name in FAULTS}
    write("reliability-disk", {"machine": machine(1), "every": options.every, "faults": counts})
    return counts


def begin_again_with_library() -> None:
    """Compile the library and begin again with it."""
    library = Path(tempfile.mkdtemp()) / "failing_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": str(library)})


def faults(place: Path, whole: Path, name: str, every: int) -> dict[str, Any]:
    """What became of a search whose disk failed from its n-th write on."""
    code, kinds = FAULTS[name]
    total = called(place / "counted", [*SEARCH, str(place / "counted")], 0, code, kinds)[2]
    counts: Counter[str] = Counter()
    for n in range(1, total + 1, every):
        found = outcome(place / "run", whole, n, code, kinds)
        counts[found] += 1
        if found.startswith("WRONG"):
            print(f"{name}, write {n}: {found}", flush=True)
    shutil.rmtree(place / "counted")
    print(f"{name}, {total} writes: {dict(counts)}", flush=True)
    return {"writes": total, **counts}


def outcome(out: Path, whole: Path, n: int, code: int, kinds: int) -> str:
    """What became of one search."""
    shutil.rmtree(out, ignore_errors=True)
    status, said, _ = called(out, [*SEARCH, str(out)], n, code, kinds)
    after = {path.name: path.read_bytes() for path in out.glob("*") if path.suffix in (".json", ".safetensors")}
    if status and (status != 2 or said.count("\n") != 1 or str(out) not in said):
        return f"WRONG: status {status}, {said[-300:]!r}"
    if any(content != after[name] for name, content in results(whole).items() if name in after):
        return "WRONG: a file is neither as it was nor as it should be"
    if status == 0:
        return "finished all the same" if results(out) == results(whole) else "WRONG: another result"
    begun = (out / "spec.json").exists()
    again, said, _ = called(out, ["resume", str(out)] if begun else [*SEARCH, str(out)])
    if again or results(out) != results(whole):
        return f"WRONG: not resumed, status {again}, {said[-300:]!r}"
    return "one line, status 2; resumed to the same bytes"


def called(out: Path, arguments: list[str], first: int = -1, code: int = 0, kinds: int = 0) -> tuple[int, str, int]:
    """The command in a process of its own: its exit status, what it wrote to stderr, and its writes below a folder.

    With `first`, the disk fails from that write on; 0 counts alone.
    """
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as counted:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(said.fileno(), 2)
                disk = ctypes.CDLL(None)
                if first >= 0:
                    disk.failing_disk(str(out).encode(), first, code, kinds)
                sys.argv = ["augtree", *arguments]
                augtree_command()
                status = 0
            except SystemExit as ended:
                status = int(ended.code or 0)
            finally:
                os.write(counted.fileno(), str(disk.failing_disk_count()).encode())
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said.seek(0)
        counted.seek(0)
        return status, said.read(), int(counted.read() or 0)
