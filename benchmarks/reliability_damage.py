"""`reliability.py damage`: files of a finished search truncated at many places, and with one bit changed."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.errors import AugtreeError, PolicyFileError
from augtree.runs.checkpoints import Checkpoints
from augtree.runs.store import Run
from augtree.training.state import State
from measure import machine, write

RESULTS = ("tree.json", "mixture.json", "single.json", "model.safetensors")
"""What must be the same to the byte."""


def data() -> at.data.Dataset:
    """A few digits."""
    return at.data.load("digits", train=60, val=300)


def search(folder: Path) -> None:
    """A small search, which can be resumed from its folder alone."""
    task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16, device="cpu")
    at.search_tree(data(), task, budget=1, out=folder)


def results(folder: Path) -> dict[str, bytes]:
    """The files that a search ends with."""
    return {name: (folder / name).read_bytes() for name in RESULTS}


def truncations(content: bytes, count: int) -> Iterator[bytes]:
    """The beginnings of a file: nothing, all but the last byte, and others evenly between."""
    for offset in np.linspace(0, len(content) - 1, count).astype(int):
        yield content[:offset]


def flips(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """A file with one bit changed, at random places."""
    for bit in np.random.default_rng(seed).integers(0, 8 * len(content), count):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        yield bytes(flipped)


def damages(content: bytes, offsets: int, bits: int) -> Iterator[tuple[str, bytes]]:
    """All damaged forms of a file, by kind."""
    yield from (("truncated", spoilt) for spoilt in truncations(content, offsets))
    yield from (("bit flipped", spoilt) for spoilt in flips(content, bits))


def outcomes(content: bytes, offsets: int, bits: int, outcome: Callable[[bytes], str]) -> dict[str, Counter[str]]:
    """How often each outcome was met, by kind of damage."""
    counts: dict[str, Counter[str]] = {"truncated": Counter(), "bit flipped": Counter()}
    for kind, spoilt in damages(content, offsets, bits):
        counts[kind][outcome(spoilt)] += 1
    return counts


def kept(folder: Path) -> tuple[Any, ...]:
    """All that a resumed run would read, and what it is told."""
    with Run.open(folder) as run:
        units = [
            (*unit[:2], None if unit.losses is None else unit.losses.tobytes(), *unit[3:]) for unit in run.units()
        ]
        return run.spec, units, list(run.store.read("SELECT key, value FROM facts ORDER BY key")), run.notes


def damaged_file(folder: Path, name: str, resume: Callable[[Path], dict[str, bytes]]) -> Callable[[bytes], str]:
    """What becomes of a run with another content of one of its files (run.sqlite, spec.json)."""
    path, whole, before, after = folder / name, (folder / name).read_bytes(), kept(folder), resume(folder)

    def outcome(spoilt: bytes) -> str:
        path.write_bytes(spoilt)
        try:
            found = kept(folder)
            if found == before:
                return "the same state"
            told = "told, " if found[-1] else ""
            return f"{told}the same result" if resume(folder) == after else f"{told or 'SILENTLY '}another result"
        except AugtreeError:
            return "a clear error"
        finally:
            path.write_bytes(whole)

    return outcome


def damaged_checkpoint(run: Run, trainer: Any, key: str) -> Callable[[bytes], str]:
    """What becomes of a trained state with another content of its file."""
    checkpoints = Checkpoints(run, trainer)
    path, unit = checkpoints.path(key), run.find(key)
    assert path is not None
    assert unit is not None
    value, again = unit.value, State({}, -1)
    before = checkpoints.model(key, value, lambda: again)()

    def outcome(spoilt: bytes) -> str:
        whole = path.read_bytes()
        path.write_bytes(spoilt)
        try:
            found = checkpoints.model(key, value, lambda: again)()
        finally:
            path.write_bytes(whole)
        if found is again:
            return "trained again"
        same = all(torch.equal(tensor, before.tensors[name]) for name, tensor in found.tensors.items())
        return "the same state" if same else "SILENTLY another result"

    return outcome


def damaged_policy(path: Path) -> Callable[[bytes], str]:
    """What becomes of a policy with another content of its file; it has no hash, for people may edit it."""
    before = at.load(path)

    def outcome(spoilt: bytes) -> str:
        whole = path.read_bytes()
        path.write_bytes(spoilt)
        try:
            return "the same policy" if at.load(path) == before else "another valid policy (as if edited)"
        except PolicyFileError:
            return "a clear error"
        finally:
            path.write_bytes(whole)

    return outcome


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offsets", type=int, default=200, help="how many truncations of each file")
    parser.add_argument("--bits", type=int, default=1000, help="how many changed bits in each file")


def main(options: argparse.Namespace) -> dict[str, Any]:
    """Damage the files of a finished search, one at a time."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        search(folder)

        def resumed(at_: Path) -> dict[str, bytes]:
            copy = Path(place) / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(at_, copy)
            at.resume(copy)
            return results(copy)

        def count(name: str, outcome: Callable[[bytes], str]) -> dict[str, Any]:
            content = (folder / name).read_bytes()
            counts = outcomes(content, options.offsets, options.bits, outcome)
            for kind, each in counts.items():
                print(f"{name} ({len(content):,} bytes), {kind}: {dict(each)}", flush=True)
            return {"bytes": len(content), **{kind: dict(each) for kind, each in counts.items()}}

        found = {name: count(name, damaged_file(folder, name, resumed)) for name in ("run.sqlite", "spec.json")}
        with Run.open(folder) as run:
            key = next(
                unit.key for unit in run.units() if "sha256" in unit.value and kept_file(folder, unit.key).exists()
            )
            trainer = at.tasks.Classification(model="cnn", options={"width": 2}, device="cpu").prepare(data())
            name = str(kept_file(folder, key).relative_to(folder))
            found["a checkpoint"] = count(name, damaged_checkpoint(run, trainer, key))
        found["a policy"] = count("mixture.json", damaged_policy(folder / "mixture.json"))
    counts: dict[str, Any] = {"offsets": options.offsets, "bits": options.bits, "files": found}
    write("reliability-damage", {"machine": machine(1), **counts})
    return counts


def kept_file(folder: Path, key: str) -> Path:
    """The checkpoint of a unit."""
    return folder / "checkpoints" / f"{key.replace('/', '-')}.safetensors"
