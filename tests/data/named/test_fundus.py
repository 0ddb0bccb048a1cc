import numpy as np
import pytest
from PIL import Image

from augtree.data import load
from augtree.data.load import READERS
from augtree.data.named.fundus import read_retinopathy
from augtree.errors import ArgumentError, DataError

COUNT = 30
read_messidor2, read_aptos2019, read_jinchi = (READERS[name] for name in ("messidor2", "aptos2019", "jinchi"))


def picture(path, value):
    Image.new("RGB", (8, 8), (value % 256, value // 256, 90)).save(path)


def messidor(root, pairs=True, left_out=()):
    """15 patients with two eyes each, grades in turn, one picture without a grade."""
    folder = root / "messidor2"
    (folder / "IMAGES").mkdir(parents=True)
    lines, eyes = ["image_id,adjudicated_dr_grade,adjudicated_dme,adjudicated_gradable"], ["left;right"]
    for i in range(COUNT):
        name = f"IM{i:04d}.jpg"
        lines.append(f"{name},{i // 2 % 5}{'.0' if i % 3 else ''},0,1")
        if name not in left_out:
            picture(folder / "IMAGES" / name.upper(), i)
    lines.append("IM9999.jpg,,,0")
    eyes += [f"IM{i:04d}.JPG;IM{i + 1:04d}.JPG" for i in range(0, COUNT, 2)]
    (folder / "messidor_data.csv").write_text("\n".join(lines))
    if pairs:
        (folder / "messidor-2.csv").write_text("\n".join(eyes))
    return root


def aptos(root, twins=0):
    """Grades in turn; the last `twins` pictures are equal to the first ones."""
    folder = root / "aptos2019"
    (folder / "train_images").mkdir(parents=True)
    (folder / "test_images").mkdir()
    lines = ["id_code,diagnosis"]
    for i in range(COUNT):
        lines.append(f"{i:012x},{i % 5}")
        picture(folder / "train_images" / f"{i:012x}.png", 1000 + (i if i < COUNT - twins else i - COUNT + twins))
    picture(folder / "test_images" / "ffff.png", 9)
    (folder / "train.csv").write_text("\n".join(lines))
    return root


def jinchi(root):
    """10 patients with three pictures each; the two gradings differ."""
    folder = root / "dmr"
    folder.mkdir(parents=True)
    lines = ["Image,Davis_grading_of_concatenated_figures,Davis_grading_of_one_figure"]
    for i in range(COUNT):
        name = f"{i // 3}_{i % 3}_R.jpg"
        lines.append(f"{name},pdr,{('ndr', 'sdr', 'ppdr', 'pdr')[i // 3 % 4]}")
        picture(folder / name, 3000 + i)
    (folder / "list.csv").write_text("\n".join(lines))
    return root


def splits_of(data, units):
    return {unit: set(data.split[[i for i, u in enumerate(units) if u == unit]].tolist()) for unit in set(units)}


def test_messidor2(tmp_path):
    data = read_messidor2(messidor(tmp_path))
    assert (len(data), data.classes, data.fill) == (30, ("0", "1", "2", "3", "4"), 0)
    assert data.labels.tolist() == [i // 2 % 5 for i in range(30)]
    assert data.samples[:3, 2, 0, 0].tolist() == pytest.approx([90, 90, 90], abs=3)
    assert "messidor2: 1 pictures without a grade are left out" in data.notes
    assert all(len(splits) == 1 for splits in splits_of(data, [i // 2 for i in range(30)]).values())
    assert set(data.split.tolist()) == {0, 1, 2}
    assert data.source == {"source": "messidor2", "root": str(tmp_path), "seed": 0}


def test_messidor2_without_pairs_says_so(tmp_path):
    data = read_messidor2(messidor(tmp_path, pairs=False))
    assert any("may stand in different splits" in note for note in data.notes)


def test_aptos2019_keeps_equal_pictures_together(tmp_path):
    data = load("aptos2019", aptos(tmp_path, twins=5), size=4)
    assert (len(data), data.group_names) == (30, ("aptos2019",))
    assert data.samples.shape == (30, 3, 4, 4)
    assert (data.split[:5] == data.split[25:]).all()
    assert "5 pictures of unknown patients are equal to another one: equal ones stay together" in data.notes
    assert load(**data.source).fingerprint == data.fingerprint


def test_jinchi_has_the_grades_of_the_single_picture(tmp_path):
    data = read_jinchi(jinchi(tmp_path))
    assert data.classes == ("ndr", "sdr", "ppdr", "pdr")
    assert data.labels.tolist() == [i // 3 % 4 for i in range(30)]
    assert all(len(splits) == 1 for splits in splits_of(data, [i // 3 for i in range(30)]).values())


def test_all_hospitals_together(tmp_path):
    jinchi(aptos(messidor(tmp_path)))
    data = read_retinopathy(tmp_path)
    assert data.group_names == ("aptos2019", "jinchi", "messidor2")
    assert np.bincount(data.groups).tolist() == [30, 30, 30]
    assert data.classes == ("0", "1", "2", "3", "4")
    assert data.labels[30:42].tolist() == [0, 0, 0, 1, 1, 1, 3, 3, 3, 4, 4, 4]
    assert "jinchi's sdr is grade 1" in data.notes
    for group in data.group_names:
        assert {int(split) for split in data.split[data.indices(group=group)]} == {0, 1, 2}
    four = load("retinopathy", tmp_path, grades=4)
    assert four.classes == ("0", "1-2", "3", "4")
    assert four.labels[30:42].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert four.labels[:5].tolist() == [0, 1, 1, 2, 3]
    assert load(**four.source).fingerprint == four.fingerprint
    with pytest.raises(ArgumentError, match="grades must be 4 or 5, got 3"):
        read_retinopathy(tmp_path, grades=3)


def test_what_is_missing(tmp_path):
    with pytest.raises(DataError, match=r"must have train.csv .*kaggle.com/competitions/aptos2019.*fetched by hand"):
        read_aptos2019(tmp_path)
    with pytest.raises(DataError, match=r"must have list.csv .*figshare.com"):
        read_jinchi(tmp_path)
    messidor(tmp_path, left_out=("IM0003.jpg",))
    with pytest.raises(
        DataError, match=r"must have all 30 pictures .* 1 are missing, the first is im0003; partial=True"
    ):
        read_messidor2(tmp_path)
    assert len(read_messidor2(tmp_path, partial=True)) == 29


def test_a_wrong_grade(tmp_path):
    path = aptos(tmp_path) / "aptos2019" / "train.csv"
    path.write_text(path.read_text().replace(",4", ",5", 1))
    with pytest.raises(DataError, match="train.csv: a grade must be one of 0, 1, 2, 3, 4, got '5'"):
        read_aptos2019(tmp_path)


def test_a_broken_picture_is_left_out_and_named(tmp_path):
    whole = read_aptos2019(aptos(tmp_path))
    (tmp_path / "aptos2019" / "train_images" / f"{3:012x}.png").write_bytes(b"no picture")
    data = read_aptos2019(tmp_path)
    assert len(data) == 29
    assert data.labels[:5].tolist() == [0, 1, 2, 4, 0]
    assert data.samples[3].tolist() == whole.samples[4].tolist()
    assert any("1 of 30 pictures are unreadable and left out" in note for note in data.notes)
