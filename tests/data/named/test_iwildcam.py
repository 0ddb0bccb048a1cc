import csv

import numpy as np
import pytest
from PIL import Image

from augtree.data import load
from augtree.data.named.iwildcam import read_iwildcam
from augtree.errors import ArgumentError, DataError

HEAD = ["split", "location", "location_remapped", "image_id", "filename", "datetime", "y", "seq_id"]
# camera: training, id_val, id_test, val, test pictures
CAMERAS = {
    "12": (6, 2, 2, 0, 0),
    "3": (4, 2, 2, 0, 0),
    "7": (2, 1, 1, 0, 0),
    "9": (0, 0, 0, 20, 0),
    "5": (0, 0, 0, 0, 3),
}
SPLITS = ("train", "id_val", "id_test", "val", "test")


def write(root, categories=True, left_out=()):
    folder = root / "iwildcam_v2.0"
    (folder / "train").mkdir(parents=True)
    rows = []
    for camera, counts in CAMERAS.items():
        for split, count in zip(SPLITS, counts, strict=True):
            for i in range(count):
                name = f"{camera}-{split}-{i}.jpg"
                rows.append([split, f"L{camera}", camera, "x", name, "2013-05-24 00:00:00.000", i % 3, "s"])
                if name not in left_out:
                    Image.new("RGB", (8, 6), (int(camera) * 10, i * 20, 0)).save(folder / "train" / name)
    with (folder / "metadata.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    if categories:
        text = "id,count,y,name\n0,9,0,empty\n5,9,1,tayassu pecari\n6,9,2,unknown\n8,0,99999,start\n"
        (folder / "categories.csv").write_text(text)
    return root


def test_as_wilds_says(tmp_path):
    data = read_iwildcam(write(tmp_path))
    assert data.counts == {"train": 12, "val": 20, "test": 3}
    assert data.group_names == ("camera 12", "camera 3", "camera 5", "camera 7", "camera 9")
    assert len(data.indices("val", "camera 9")) == 20
    assert len(data.indices("train", "camera 12")) == 6
    assert data.classes == ("empty", "tayassu pecari", "unknown")
    assert data.labels[data.indices("train", "camera 12")].tolist() == [0, 1, 2, 0, 1, 2]
    assert data.samples.shape == (35, 3, 6, 8)
    assert np.allclose(data.samples[:, 0].float().mean((1, 2))[:6], 120, atol=3)
    assert data.notes[0] == "splits of WILDS: train, val, test; 10 pictures of the others are left out"
    assert data.source == {"source": "iwildcam", "root": str(tmp_path), "seed": 0}


def test_the_cameras_with_the_most_pictures(tmp_path):
    data = load("iwildcam", write(tmp_path), cameras=2, size=4)
    assert data.group_names == ("camera 12", "camera 3")
    assert data.counts == {"train": 10, "val": 4, "test": 4}
    assert "the 2 cameras with the most pictures: 12, 3" in data.notes
    assert data.samples.shape[1:] == (3, 4, 4)
    assert data.source == {"source": "iwildcam", "root": str(tmp_path), "cameras": 2, "size": 4, "seed": 0}
    assert load(**data.source).fingerprint == data.fingerprint
    with pytest.raises(ArgumentError, match="cameras must be a whole number from 1 to 3, got 4"):
        read_iwildcam(tmp_path, cameras=4)
    with pytest.raises(ArgumentError, match='judged must be "id" with cameras'):
        read_iwildcam(tmp_path, cameras=1, judged="ood")


def test_judged_on_the_same_cameras(tmp_path):
    data = read_iwildcam(write(tmp_path, categories=False), judged="id")
    assert data.counts == {"train": 12, "val": 5, "test": 5}
    assert data.classes == ("0", "1", "2")


def test_what_is_missing(tmp_path):
    with pytest.raises(DataError, match=r"must have metadata.csv .*wilds.stanford.edu.*; it must be fetched by hand"):
        read_iwildcam(tmp_path)
    write(tmp_path, left_out=("12-train-0.jpg", "3-train-1.jpg"))
    message = r"must have all 35 pictures of its table, but 2 are missing, the first is 12-train-0.jpg; partial=True"
    with pytest.raises(DataError, match=message):
        read_iwildcam(tmp_path)
    data = read_iwildcam(tmp_path, partial=True)
    assert data.counts["train"] == 10
    assert "2 of 35 pictures are not there and are left out" in data.notes
    assert data.source["partial"] is True


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("filename", "file", "metadata.csv: must have the column filename, got"),
        ("train,L12,12,x,12-train-0.jpg", "trian,L12,12,x,12-train-0.jpg", "picture 1: split must be one of train"),
        (",0,s", ",zero,s", "picture 1: y must be a whole number, got 'zero'"),
        (",0,s", ",0", "metadata.csv line 2: must have 8 cells, got 7"),
        (",0,s", ",3,s", "categories.csv: must have a name for every y below 4, got none for 3"),
    ],
)
def test_broken_tables(tmp_path, old, new, message):
    path = write(tmp_path) / "iwildcam_v2.0" / "metadata.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_iwildcam(tmp_path)
