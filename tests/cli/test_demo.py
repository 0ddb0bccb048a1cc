import json

import numpy as np
import pytest
import torch
from PIL import Image

import augtree as at
from augtree import demo
from support.commands import invoke


def test_a_demo_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(at.AugtreeError, match="--out must be a folder that can be made"):
        invoke("demo", "--out", tmp_path / "file")


def test_the_demo_s_groups_are_what_they_are_called():
    data, plain = demo.data(), demo.load("digits")
    assert data.group_names == tuple(sorted(demo.GROUPS))
    known = {tuple(picture.flatten().tolist()) for picture in plain.samples}

    def undone(group, way):
        pictures = data.samples[torch.from_numpy(data.groups == data.group_names.index(group))]
        return [tuple(way(picture).flatten().tolist()) in known for picture in pictures.clone()]

    assert all(undone("upright", lambda x: x))
    grey = {tuple(v // 2 for v in picture) for picture in known}
    dark = data.samples[torch.from_numpy(data.groups == data.group_names.index("mirrored"))] - demo.GREY
    same = [tuple(picture.flatten().tolist()) in grey for picture in dark]
    mirrored = [tuple(picture.flip(2).flatten().tolist()) in grey for picture in dark]
    assert all(a or b for a, b in zip(same, mirrored, strict=True))
    assert 0.4 < np.mean(mirrored) < 0.6
    for k in range(4):
        share = np.mean(undone("turned", lambda x, k=k: 255 - x.rot90(-k, (1, 2))))
        assert 0.15 < share < 0.35
    assert data.counts["train"] == demo.LABELS


def test_demo(tmp_path, monkeypatch):
    quick = at.tasks.Classification(model="cnn", steps=8, batch_size=64)
    monkeypatch.setattr(demo, "task", lambda: quick)
    monkeypatch.setattr(demo, "ALPHA", 2)
    monkeypatch.setattr(demo, "SEEDS", 1)
    done = invoke("demo", "--out", tmp_path / "demo", "--json")
    assert done.exit_code == 0
    for text in ("| trivialaugment ", "| best free, as long ", "| forest ", "half are mirrored", "At the same cost"):
        assert text in done.stderr
    files = json.loads(done.stdout)["files"]
    assert at.load(files["forest.json"]) == at.load(tmp_path / "demo" / "forest-0" / "forest.json")
    assert at.load(files["tree.json"]) == at.load(files["forest.json"])["turned"].tree
    with Image.open(files["sheet.png"]) as sheet:
        assert sheet.width > 800
    assert (tmp_path / "demo" / "forest.svg").read_text().startswith("<svg")
    again = invoke("demo", "--out", tmp_path / "demo", "--json")
    assert again.stdout == done.stdout
