"""Pictures larger than memory: how fast they are decoded into the cache, and how much memory that takes.

    python benchmarks/picture_cache.py                  # 100,000 generated JPEGs of 64 px: 1.1 GiB decoded
    AUGTREE_DATA=... python benchmarks/picture_cache.py # also images/pacs.zip

The generated set is read, hashed and trained on in a process of its own, which may have no more than `--limit` MiB
of memory beyond what it begins with (RLIMIT_DATA): a copy of the pictures does not fit. "memory" is the largest
growth of anonymous memory, looked at every 5 ms; pages of the mapped file, which the system takes back when it wants
to, are not in it. Where memory is bounded, a tenth of the set takes about as much as all of it,
but for the tables of names. Threads and processes are held against each other on large JPEGs and on PACS.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data.pictures import decode, readable
from augtree.data.pictures.folder import read_folder
from measure import machine, table, write

MIB = 2**20
CLASSES = 10


def generate(folder: Path, count: int, side: int) -> None:
    """Pictures with edges and noise, ten classes, as JPEG; none is like another."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(count):
        place = folder / f"class{i % CLASSES}"
        if i < CLASSES:
            place.mkdir(parents=True)
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        coarse.resize((side, side), Image.Resampling.BICUBIC).save(place / f"{i:06d}.jpg", quality=90)


def anonymous() -> int:
    """Bytes of memory that belong to no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024


@contextmanager
def watched(into: dict[str, Any], name: str) -> Iterator[None]:
    """Seconds, and the largest growth of memory meanwhile."""
    begin, most, over = anonymous(), [0], threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            most[0] = max(most[0], anonymous())

    watcher = threading.Thread(target=look)
    watcher.start()
    clock = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - clock
        over.set()
        watcher.join()
    grown = max(0, most[0] - begin, anonymous() - begin)
    into[name] = {"seconds": round(seconds, 2), "memory_mib": round(grown / MIB, 1)}


def worker(folder: Path, cache: Path, limit: int) -> dict[str, Any]:
    """Read, read again, hash and train, with little memory."""
    torch.set_num_threads(1)
    torch.nn.Conv2d(3, 3, 3)(torch.zeros(1, 3, 8, 8)).sum().backward()  # what torch loads when it is first used
    about = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in about if line.startswith("VmData:")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + limit * MIB,) * 2)
    found: dict[str, Any] = {}
    with watched(found, "decode"):
        data = read_folder(folder, cache=cache)
    with watched(found, "read again"):
        data = read_folder(folder, cache=cache)
    with watched(found, "fingerprint"):
        found["print"] = data.fingerprint
    task = at.tasks.Classification(model="cnn", steps=50, batch_size=32, device="cpu")
    with watched(found, "train 50 steps"):
        trainer = task.prepare(data)
        trainer.fit(at.Tree(), 0)
    with watched(found, "few"):
        few = data.few(train=len(data) // 20)
    return {**found, "pictures": len(data), "kept": len(few), "decoded_mib": round(tensor(data).numel() / MIB)}


def tensor(data: at.data.Dataset) -> torch.Tensor:
    """The pictures."""
    assert isinstance(data.samples, torch.Tensor)
    return data.samples


def in_process(folder: Path, cache: Path, limit: int) -> dict[str, Any]:
    """The worker, elsewhere."""
    command = [sys.executable, __file__, "--worker", str(folder), str(cache), "--limit", str(limit)]
    # One heap for all threads: others reserve 64 MiB of address space each, which the limit counts.
    surroundings = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    if done.returncode:
        raise SystemExit(f"the worker failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def generated(count: int, side: int, limit: int) -> list[dict[str, Any]]:
    """A tenth of the set, then all of it."""
    out = []
    for some in (count // 10, count):
        with tempfile.TemporaryDirectory() as place:
            generate(Path(place) / "set", some, side)
            out.append(in_process(Path(place) / "set", Path(place) / "cache", limit))
    return out


ARCHIVES: dict[tuple[int, str], zipfile.ZipFile] = {}


def decode_some(path: str, rule: decode.Rule, names: list[str]) -> int:
    """Header and picture of some members of a zip file, which each process opens itself."""
    key = (os.getpid(), path)
    if key not in ARCHIVES:
        ARCHIVES[key] = zipfile.ZipFile(path)
    archive = ARCHIVES[key]
    for name in names:
        file = io.BytesIO(archive.read(name))
        decode.header(file)
        file.seek(0)
        decode.decoded(file, rule)
    return len(names)


def ways(path: Path, rule: decode.Rule, repeats: int = 5) -> dict[str, list[int]]:
    """Pictures a second by one thread, by threads and by processes that are there already, taking turns."""
    readable.checked_size(None)
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith((".jpg", ".png"))]
    at_once = min(readable.AT_ONCE, len(names) // 16)
    parts = [names[i : i + at_once] for i in range(0, len(names), at_once)]
    cores = os.cpu_count() or 1
    makers: dict[str, Callable[[], Executor]] = {
        "one thread": lambda: ThreadPoolExecutor(1),
        f"{cores} threads": lambda: ThreadPoolExecutor(cores),
        f"{cores} processes": lambda: ProcessPoolExecutor(cores),
    }
    rates: dict[str, list[int]] = {name: [] for name in makers}
    for _ in range(repeats):
        for name, make in makers.items():
            with make() as pool:
                work = partial(decode_some, str(path), rule)
                list(pool.map(work, [parts[0]] * cores))
                begin = time.perf_counter()
                done = sum(pool.map(work, parts))
                rates[name].append(round(done / (time.perf_counter() - begin)))
    return rates


def large() -> dict[str, list[int]]:
    """The ways for JPEGs of 768 px that become 224."""
    from PIL import Image

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        with zipfile.ZipFile(Path(place) / "large.zip", "w") as archive:
            for i in range(320):
                coarse, file = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)), io.BytesIO()
                coarse.resize((768, 768), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
                archive.writestr(f"{i}.jpg", file.getvalue())
        return ways(Path(place) / "large.zip", decode.Rule(False, 224, 224, 224))


def real(path: Path) -> dict[str, Any]:
    """The rates of a real set: into memory, into a cache, from the cache."""
    found: dict[str, Any] = {"ways": ways(path, decode.Rule(False, None, 96, 96))}
    readable.IN_MEMORY = 1 << 30  # type: ignore[attr-defined]  # so that the first is what it is called
    with tempfile.TemporaryDirectory() as place:
        os.environ["AUGTREE_CACHE"] = f"{place}/usual"  # nobody's cache of the same set
        for name, cache in (("into memory", None), ("into the cache", place), ("from the cache", place)):
            with watched(found, name):
                data = read_folder(path, cache=cache)
            found[name]["pictures_a_second"] = round(len(data) / found[name]["seconds"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--limit", type=int, default=400, help="MiB")
    parser.add_argument("--worker", nargs=2, type=Path)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.worker[0], options.worker[1], options.limit)))
        return
    content: dict[str, Any] = {"machine": machine(os.cpu_count() or 1), "limit_mib": options.limit}
    content["load"] = round(os.getloadavg()[0], 1)
    content["generated"] = generated(options.count, options.side, options.limit)
    for found in content["generated"]:
        found["pictures_a_second"] = round(found["pictures"] / found["decode"]["seconds"])
        rows = [
            [name, f"{part['seconds']}", f"{part['memory_mib']}"]
            for name, part in found.items()
            if isinstance(part, dict)
        ]
        print(
            f"\n{found['pictures']:,} pictures, {found['decoded_mib']} MiB, {found['pictures_a_second']} a second\n"
        )
        print(table(["what", "seconds", "MiB of memory"], rows))
    content["large"] = large()
    print(f"\n768 px to 224, pictures a second: {content['large']}")
    pacs = Path(os.environ.get("AUGTREE_DATA", "")) / "images" / "pacs.zip"
    if pacs.is_file():
        content["pacs"] = real(pacs)
        print(f"\npacs.zip\n{json.dumps(content['pacs'], indent=1)}")
    print(f"\n{write('picture_cache', content)}")


if __name__ == "__main__":
    main()
