import numpy as np
import pytest
from PIL import Image

from augtree.data import load
from augtree.data.named.chestxray import FINDINGS, read_chestxray14
from augtree.errors import DataError

HEAD = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient {sex},View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)
CELLS = ("No Finding", "Hernia", "Mass|Nodule", "Cardiomegaly|Edema|Effusion")


def write(root, edition="", parts=("images",), left_out=(), changes=()):
    """20 patients with three pictures each, the last four of them for testing."""
    folder = root / "chestxray14"
    for part in parts:
        (folder / part).mkdir(parents=True)
    lines, lists = [HEAD.format(sex="Sex" if edition else "Gender")], {0: [], 2: []}
    for patient in range(1, 21):
        for i in range(3):
            name = f"{patient:08d}_{i:03d}.png"
            sex, view = "MF"[patient % 2], "PA" if i else "AP"
            lines.append(f"{name},{CELLS[patient % 4]},{i},{patient},50,{sex},{view},8,8,0.1,0.1,")
            lists[2 if patient > 16 else 0].append(name)
            if name not in left_out:
                place = folder / parts[patient % len(parts)] / name
                Image.new("L", (8, 8), patient * 10 + i).save(place)
    texts = {
        f"Data_Entry_2017{edition}.csv": "\n".join(lines),
        "train_val_list.txt": "\n".join(lists[0]),
        "test_list.txt": "\n".join(lists[2]),
    }
    for name, old, new in changes:
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new, 1)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return root


@pytest.mark.parametrize("parts", [("images",), ("images_001/images", "images_002/images")])
@pytest.mark.parametrize("edition", ["", "_v2020"])
def test_a_tiny_set_by_hand(tmp_path, edition, parts):
    data = read_chestxray14(write(tmp_path, edition, parts))
    assert data.samples.shape == (60, 1, 8, 8)
    assert data.samples[[0, 1, 59], 0, 0, 0].tolist() == [10, 11, 202]
    assert (data.multilabel, data.classes, data.fill) == (True, FINDINGS, 0)
    names = [[FINDINGS[i] for i in row.nonzero().flatten()] for row in data.labels]
    assert names[0] == ["Hernia"]
    assert names[3] == ["Mass", "Nodule"]
    assert names[6] == ["Cardiomegaly", "Edema", "Effusion"]
    assert names[9] == []
    assert (data.split[48:] == 2).all()
    assert (data.split[:48] != 2).all()
    assert data.counts["val"] in (3, 6)


def test_no_patient_is_in_two_splits(tmp_path):
    data = read_chestxray14(write(tmp_path), seed=3)
    patients = np.array(data.columns["patient"])
    assert (data.split == 1).any()
    for patient in set(patients.tolist()):
        assert len(set(data.split[patients == patient].tolist())) == 1


@pytest.mark.parametrize("edition", ["", "_v2020"])
def test_groups(tmp_path, edition):
    data = load("chestxray14", write(tmp_path, edition), groups="column:sex", size=4)
    assert data.group_names == ("F", "M")
    assert data.groups[:6].tolist() == [0, 0, 0, 1, 1, 1]
    assert load(**data.source).fingerprint == data.fingerprint
    assert data.columns["view"][:4] == ("AP", "PA", "PA", "AP")
    assert load("chestxray14", tmp_path, groups="column:view").group_names == ("AP", "PA")


def test_what_is_missing(tmp_path):
    with pytest.raises(DataError, match=r"must have Data_Entry_2017\*.csv .*nihcc.app.box.com.*fetched by hand"):
        read_chestxray14(tmp_path)
    write(tmp_path, left_out=("00000002_001.png",))
    with pytest.raises(DataError, match="must have all 60 pictures of its table, but 1 are missing"):
        read_chestxray14(tmp_path)
    data = read_chestxray14(tmp_path, partial=True)
    assert len(data) == 59
    assert "1 of 60 pictures are not there and are left out" in data.notes
    (tmp_path / "chestxray14" / "test_list.txt").unlink()
    with pytest.raises(DataError, match=r"must have test_list.txt\. chestxray14 is"):
        read_chestxray14(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Data_Entry_2017.csv", "Hernia", "Hernie"), "a finding must be one of .*or No Finding, got 'Hernie'"),
        (
            ("test_list.txt", "00000020_002.png", ""),
            "every picture must stand in .*1 do not, the first is 00000020_002",
        ),
        (
            ("Data_Entry_2017.csv", "_000.png,Hernia,0,1,", "_000.png,Hernia,0,20,"),
            "a patient must be in one of the lists",
        ),
        (("Data_Entry_2017.csv", "00000001_001.png", "00000001_000.png"), "must have each picture once, got 1"),
        (("Data_Entry_2017.csv", "Patient ID", "Patient"), "must have the column Patient ID, got"),
    ],
)
def test_broken_tables(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        read_chestxray14(write(tmp_path, changes=[change]))
