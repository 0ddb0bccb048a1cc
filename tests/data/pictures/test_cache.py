import errno
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.data.pictures import cache, readable
from augtree.data.pictures.cache import Entry, Mapped, gathered
from augtree.data.pictures.files import PictureIn
from augtree.data.pictures.folder import read_folder
from augtree.data.pictures.readable import readable_pictures
from augtree.errors import ArgumentError, DataError
from augtree.policies import Tree
from augtree.tasks import Classification
from augtree.training.device import pictures_on

ROWS = [f"{i}.png,{i % 2},{'train' if i < 6 else 'val' if i < 8 else 'test'},p{i}" for i in range(10)]


@pytest.fixture
def folder(tmp_path):
    """Ten grey pictures; the value of each is its number."""
    path = tmp_path / "set"
    path.mkdir()
    for i in range(10):
        draw(path / f"{i}.png", i)
    (path / "index.csv").write_text("\n".join(["path,label,split,patient", *ROWS, ""]))
    return path


def draw(path, value):
    Image.new("L", (4, 4), value).save(path)


def pack(folder, path):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return path


def values(data):
    return data.samples[:, 0, 0, 0].tolist()


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "cache"


def entries(kept):
    """What is in the cache of one set, beside the lock."""
    return sorted(path for path in kept.glob("*/*") if path.name != "lock")


def no_reading(monkeypatch):
    """From now on nothing but the index can be opened."""
    open_it = PictureIn.__call__

    def fail(self):
        assert self.name == "index.csv"
        return open_it(self)

    monkeypatch.setattr(PictureIn, "__call__", fail)


@pytest.mark.parametrize("zipped", [False, True])
def test_pictures_are_decoded_once(folder, tmp_path, kept, zipped, monkeypatch):
    path = pack(folder, tmp_path / "set.zip") if zipped else folder
    plain, first = read_folder(path), read_folder(path, cache=kept)
    no_reading(monkeypatch)
    told = []
    again = read_folder(path, cache=kept, progress=lambda *done: told.append(done))
    assert told == []
    assert values(again) == list(range(10))
    assert again.notes == first.notes
    assert first.notes[:-1] == plain.notes
    (entry,) = entries(kept)
    assert first.notes[-1] == f"the decoded pictures are kept in {entry} (0 MiB)"
    assert (entry / "pictures.u8").read_bytes() == bytes(i for i in range(10) for _ in range(16))
    assert {data.fingerprint for data in (plain, first, again)} == {plain.fingerprint}
    assert again.source == plain.source


def test_small_sets_stay_in_memory_and_large_ones_do_not(folder, kept, monkeypatch):
    monkeypatch.setenv("AUGTREE_CACHE", str(kept))
    read_folder(folder)
    assert not kept.exists()
    monkeypatch.setattr(readable, "IN_MEMORY", 160)
    read_folder(folder)
    assert len(entries(kept)) == 1
    monkeypatch.delenv("AUGTREE_CACHE")
    monkeypatch.setenv("HOME", str(kept.parent / "home"))
    assert Path(read_folder(folder).notes[-1].split()[-3]).is_relative_to(kept.parent / "home/.cache/augtree")


@pytest.mark.parametrize("how", ["content", "time", "removed", "added", "size", "decoder"])
def test_what_changes_is_noticed(folder, kept, how, monkeypatch):
    read_folder(folder, cache=kept)
    (old,) = entries(kept)
    expected, options = list(range(10)), {}
    if how == "content":
        draw(folder / "3.png", 77)
        expected[3] = 77
    if how == "time":
        os.utime(folder / "3.png", ns=(1, 1))
    if how == "removed":
        (folder / "3.png").unlink()
        del expected[3]
    if how == "added":
        draw(folder / "x.png", 50)
        with (folder / "index.csv").open("a") as file:
            file.write("x.png,1,train,p\n")
        expected.append(50)
    if how == "size":
        options["size"] = 2
    if how == "decoder":
        monkeypatch.setattr(readable, "DECODER", readable.DECODER + 1)
    told = []
    data = read_folder(folder, cache=kept, progress=lambda *done: told.append(done), **options)
    assert values(data) == expected
    assert told
    assert old.exists() == (how == "size")
    assert len(entries(kept)) == (2 if how == "size" else 1)


def test_the_same_zip_file_fetched_again_is_read_again(folder, tmp_path, kept):
    path = pack(folder, tmp_path / "set.zip")
    whole = path.read_bytes()
    name = whole.index(b"\x89PNG", whole.index(b"3.png"))
    path.write_bytes(whole[: name + 20] + b"?" + whole[name + 21 :])
    data = read_folder(path, cache=kept)
    assert len(data) == 9
    assert "3.png: cannot be read (Bad CRC-32 for file '3.png')" in data.notes[-2]
    path.write_bytes(whole)
    os.utime(path, ns=(1, 1))
    assert len(read_folder(path, cache=kept)) == 10


def test_broken_pictures_are_listed_and_left_out(folder, kept):
    (folder / "3.png").write_text("no picture")
    (folder / "5.png").unlink()
    plain = read_folder(folder)
    for _ in range(2):
        data = read_folder(folder, cache=kept)
        (entry,) = entries(kept)
        assert data.notes[-2] == (
            "2 of 10 pictures are unreadable and left out: line 5: 3.png: is no picture that Pillow knows; "
            f"line 7: 5.png: there is no such file; all are listed in {entry}/broken.csv"
        )
        left = [0, 1, 2, 4, 6, 7, 8, 9]
        assert values(data) == values(plain) == left
        assert data.labels.tolist() == [i % 2 for i in left]
        assert data.split.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
        assert data.columns == {"patient": tuple(f"p{i}" for i in left)}
        assert data.fingerprint == plain.fingerprint
    assert plain.notes[-1].endswith("line 7: 5.png: there is no such file")
    assert (entry / "broken.csv").read_text().splitlines() == [
        "path,reason",
        "3.png,is no picture that Pillow knows",
        "5.png,there is no such file",
    ]


KILLED = """
import os, signal, sys
from augtree.data.pictures import readable
from augtree.data.pictures.folder import read_folder
readable.AT_ONCE = 1
def progress(done, total):
    if done == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
read_folder(sys.argv[1], cache=sys.argv[2], progress=progress)
"""


def test_a_decoding_that_is_killed_leaves_nothing_that_looks_whole(folder, kept):
    done = subprocess.run([sys.executable, "-c", KILLED, folder, kept, "17"])
    assert done.returncode == -signal.SIGKILL
    (half,) = entries(kept)
    assert half.name.startswith(".")
    told = []
    data = read_folder(folder, cache=kept, progress=lambda *done: told.append(done))
    assert told[-1] == (20, 20)
    assert values(data) == list(range(10))
    assert half not in entries(kept)
    assert len(entries(kept)) == 1


def test_of_two_readers_at_once_one_decodes(folder, kept):
    gate, told, found = threading.Barrier(2), [[], []], [None, None]

    def read(which):
        def progress(done, total):
            told[which].append(done)
            if done == 10:  # all headers are read: now both want to decode
                gate.wait(10)

        found[which] = read_folder(folder, cache=kept, progress=progress)

    threads = [threading.Thread(target=read, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each[-1] for each in told) == [10, 20]
    assert found[0].fingerprint == found[1].fingerprint == read_folder(folder).fingerprint
    assert len(entries(kept)) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [("pictures.u8", b"short"), ("about.json", b"{"), ("about.json", b"{}"), ("about.json", b"[]")],
)
def test_a_damaged_cache_is_made_anew(folder, kept, name, content):
    read_folder(folder, cache=kept)
    (entry,) = entries(kept)
    (entry / name).write_bytes(content)
    assert values(read_folder(folder, cache=kept)) == list(range(10))
    assert entries(kept) == [entry]
    assert (entry / name).read_bytes() != content


def test_where_the_cache_cannot_be(folder, kept, monkeypatch):
    kept.write_text("a file")
    rule = r"cache must be a folder with room for decoded pictures \(Not a directory\): name another one, or set AUG"
    with pytest.raises(ArgumentError, match=rule):
        read_folder(folder, cache=kept)
    kept.unlink()
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: cache.shutil._ntuple_diskusage(0, 0, 159))
    with pytest.raises(ArgumentError, match=r"\(0.0 GiB are needed, 0.0 are free\)"):
        read_folder(folder, cache=kept)
    assert entries(kept) == []


def test_a_disk_that_is_full_in_the_middle(folder, kept, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.os, "fsync", full)
    with pytest.raises(ArgumentError, match=r"cache must be .* \(No space left on device\)"):
        read_folder(folder, cache=kept)
    assert entries(kept) == []


def test_an_error_of_the_machine_is_not_kept_as_a_broken_picture(folder, kept, monkeypatch):
    def few(self):
        if self.name == "4.png":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return io.BytesIO((folder / self.name).read_bytes())

    monkeypatch.setattr(PictureIn, "__call__", few)
    with pytest.raises(DataError, match=r"4.png: cannot be read \(Too many open files\); it may be whole"):
        read_folder(folder, cache=kept)
    assert entries(kept) == []


def test_nothing_is_kept_where_nothing_can_be_decoded(tmp_path, kept):
    class Broken:
        name = "x"

        def stamp(self):
            return "1"

        def __call__(self):
            file = io.BytesIO()
            Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)).save(file, "PNG")
            return io.BytesIO(file.getvalue()[:2000])

    found = readable_pictures([Broken(), Broken()], cache=kept)
    assert found.samples.shape == (0, 1, 64, 64)
    assert set(found.problems) == {0, 1}
    assert entries(kept) == []


def test_writing_into_mapped_pictures_changes_no_file(folder, kept):
    data = read_folder(folder, cache=kept)
    data.samples[0] = 99
    assert values(data)[0] == 99
    assert values(read_folder(folder, cache=kept))[0] == 0


def test_a_file_larger_than_memory_is_mapped_for_reading_alone(tmp_path, monkeypatch):
    real = np.memmap

    def promises_nothing(file, dtype, mode, shape):
        if mode == "c":
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return real(file, dtype, mode, shape=shape)

    (tmp_path / "large").write_bytes(b"abcd")
    monkeypatch.setattr(cache.np, "memmap", promises_nothing)
    samples = Mapped(str(tmp_path / "large"), (2, 1, 1, 2)).open()
    assert samples.flatten().tolist() == [97, 98, 99, 100]


def test_what_travels_is_the_place(folder, kept, monkeypatch):
    data = read_folder(folder, cache=kept)
    cargo = pickle.dumps(data)
    again = pickle.loads(cargo)
    assert b"pictures.u8" in cargo
    assert again.fingerprint == data.fingerprint
    assert again.columns == data.columns
    (entries(kept)[0] / "pictures.u8").unlink()
    assert values(again) == list(range(10))
    with pytest.raises(DataError, match="decoded pictures must be at .*pictures.u8, as where they were sent from"):
        pickle.loads(cargo)


def test_some_of_many_go_to_a_file_that_vanishes(folder, kept, monkeypatch):
    data, plain = read_folder(folder, cache=kept), read_folder(folder)
    before = set(kept.rglob("*"))
    monkeypatch.setattr(cache, "IN_MEMORY", 1)
    monkeypatch.setattr(cache, "COPIED_AT_ONCE", 40)
    some = data.take([7, 1, 3, 5])
    assert isinstance(getattr(some.samples, cache.MAPPED), Mapped)
    assert set(kept.rglob("*")) == before
    assert some.fingerprint == plain.take([7, 1, 3, 5]).fingerprint
    fewer = some.take([2, 0])
    assert values(fewer) == [3, 7]
    assert values(pickle.loads(pickle.dumps(fewer))) == [3, 7]
    assert data.few(train=2, seed=1).fingerprint == plain.few(train=2, seed=1).fingerprint


def test_some_of_few_are_in_memory(folder, kept):
    data = read_folder(folder, cache=kept)
    some = gathered(data.samples, np.array([4, 2]))
    assert some[:, 0, 0, 0].tolist() == [4, 2]
    assert not hasattr(some, cache.MAPPED)
    tensor = torch.arange(4, dtype=torch.uint8).reshape(4, 1, 1, 1)
    assert gathered(tensor, np.array([3, 0])).flatten().tolist() == [3, 0]


def test_the_name_of_an_entry(tmp_path):
    one = Entry.of(tmp_path, ("/data/my pets.zip", "size None"), ("a", "b"))
    assert one.path.parent.name.startswith("my-pets.zip-")
    others = [
        Entry.of(tmp_path, ("/data/my pets.zip", "size None"), ("ab",)),
        Entry.of(tmp_path, ("/data/my pets.zip", "size 3"), ("a", "b")),
        Entry.of(tmp_path, ("/data/\udcff", "size None"), ("a", "b")),
    ]
    assert len({one.path, *(other.path for other in others)}) == 4
    assert others[0].path.parent == one.path.parent
    assert others[1].path.parent != one.path.parent
    assert one == Entry.of(tmp_path, ("/data/my pets.zip", "size None"), ("a", "b"))


def test_training_on_mapped_pictures_is_training_on_them(folder, kept):
    task = Classification(model="cnn", steps=3, batch_size=4, device="cpu")
    trainers = [task.prepare(data) for data in (read_folder(folder), read_folder(folder, cache=kept))]
    assert trainers[1].samples is trainers[1].data.samples
    states = [trainer.fit(Tree(), 0).tensors for trainer in trainers]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_pictures_that_would_fill_a_gpu_stay_where_they_are(monkeypatch):
    pictures, gpu = torch.zeros(10, 1, 2, 5, dtype=torch.uint8), torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (199, 1000))
    assert pictures_on(pictures, gpu) is pictures
    moved = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (200, 1000))
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device: moved.append(device))
    pictures_on(pictures, gpu)
    assert moved == [gpu]
