import zipfile

import numpy as np
import pytest
from PIL import Image

from augtree.data.pictures.folder import read_folder
from augtree.errors import ArgumentError, DataError


def draw(path, value=0, size=(4, 4)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, value).save(path)


def make(folder, rows, head="path,label", end="\n", encoding="utf-8"):
    """A folder whose index.csv has these lines; what they name is drawn, its grey value the number of the line."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, row in enumerate(rows):
        draw(folder / row.split(",")[0].strip('"'), i)
    (folder / "index.csv").write_bytes(end.join([head, *rows, ""]).encode(encoding))
    return folder


def pack(folder, path, top=""):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, f"{top}{file.relative_to(folder).as_posix()}")
    return path


FULL = [f"p/{i}.png,{'dog' if i % 2 else 'cat'},{'day' if i < 6 else 'night'},train" for i in range(8)]
FULL += ["p/8.png,cat,day,VALID", "p/9.png,dog,night,test"]
HEAD = "path,label,group,split"


def values(data):
    return data.samples[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("top", ["", "top/", "a/b/"])
@pytest.mark.parametrize("zipped", [False, True])
def test_a_folder_with_its_index(tmp_path, zipped, top):
    folder = make(tmp_path / "set" / top, FULL, HEAD)
    path = pack(folder, tmp_path / "set.zip", top) if zipped else tmp_path / "set"
    data = read_folder(path)
    assert data.name == "set"
    assert values(data) == list(range(10))
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 1] * 5
    assert data.group_names == ("day", "night")
    assert data.groups.tolist() == [0] * 6 + [1, 1, 0, 1]
    assert data.split.tolist() == [0] * 8 + [1, 2]
    assert data.notes == ("all pictures are grey: 1 channel", "all pictures are 4x4 and stay so")
    assert data.source == {"source": str(path), "seed": 0}
    assert data.columns == {}


def test_where_it_lies_does_not_matter(tmp_path):
    folder = make(tmp_path / "one", FULL, HEAD)
    again = make(tmp_path / "two", FULL, HEAD)
    prints = {read_folder(path).fingerprint for path in (folder, again, pack(folder, tmp_path / "x.zip", "t/"))}
    assert len(prints) == 1


@pytest.mark.parametrize(("end", "encoding"), [("\r\n", "utf-8-sig"), ("\n", "utf-8-sig"), ("\r\n", "utf-8")])
def test_what_other_programs_write(tmp_path, end, encoding):
    rows = ['"a.png","Hund, groß"', " b.png , Katze ", "c.png,Katze", 'd.png,"Hund, groß"', ""]
    (tmp_path / "set").mkdir()
    for name in "abcd":
        draw(tmp_path / "set" / f"{name}.png")
    text = end.join(["Path, LABEL ", *rows])
    (tmp_path / "set" / "index.csv").write_bytes(text.encode(encoding))
    data = read_folder(tmp_path / "set")
    assert data.classes == ("Hund, groß", "Katze")
    assert data.labels.tolist() == [0, 1, 1, 0]


def test_backslashes_of_windows_serve(tmp_path):
    make(tmp_path, ["p/a.png,x", "p/b.png,y"])
    (tmp_path / "index.csv").write_text("path,label\np\\b.png,x\n./p/a.png,y\n")
    assert values(read_folder(tmp_path)) == [1, 0]


def test_grades_are_sorted_as_numbers(tmp_path):
    data = read_folder(make(tmp_path, ["a.png,10", "b.png,9", "c.png,10", "d.png,9"]))
    assert data.classes == ("9", "10")
    assert data.labels.tolist() == [1, 0, 1, 0]


def test_several_labels(tmp_path):
    rows = ["a.png,cat; dog,train", "b.png,dog,train", "c.png,,train", "d.png,cat;,val", "e.png,cat,test"]
    data = read_folder(make(tmp_path, rows, "path,label,split"))
    assert data.multilabel
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [[1, 1], [0, 1], [0, 0], [1, 0], [1, 0]]


def test_a_split_is_made_where_none_is_given(tmp_path):
    rows = [f"{i}.png,{i % 2},{i % 3}" for i in range(30)]
    data = read_folder(make(tmp_path, rows, "path,label,group"))
    assert data.counts == {"train": 18, "val": 6, "test": 6}
    assert data.notes[-1] == "no split is given: 60/20/20 by label and group, seed 0"
    assert (read_folder(tmp_path, seed=1).split != data.split).any()
    (tmp_path / "index.csv").write_text("path,label,split\n" + "".join(f"{i}.png,{i % 2},\n" for i in range(30)))
    assert read_folder(tmp_path).notes[-1] == "no split is given: 60/20/20 by label, seed 0"


def test_validation_is_made_where_it_is_missing(tmp_path):
    rows = [f"{i}.png,{i % 2},{'test' if i >= 20 else 'train'}" for i in range(30)]
    data = read_folder(make(tmp_path, rows, "path,label,split"))
    assert data.counts == {"train": 16, "val": 4, "test": 10}
    assert "no validation samples are given" in data.notes[-1]


def test_patients_stay_together(tmp_path):
    rows = [f"{i}.png,{i % 2},train,p{i // 4},{i}" for i in range(48)]
    folder = make(tmp_path, rows, "path,label,split,patient,age")
    data = read_folder(folder, split_by="patient")
    patients = np.array(data.columns["patient"])
    assert all(len(set(data.split[patients == patient])) == 1 for patient in patients)
    assert min(data.counts.values()) > 4
    assert data.notes[-1].endswith("each patient in one of them, seed 0; the split of the files is not used")
    assert data.source == {"source": str(folder), "split_by": "patient", "seed": 0}
    assert data.columns["age"] == tuple(str(i) for i in range(48))
    of = f"split_by must be a column of {folder}: index.csv"
    with pytest.raises(ArgumentError) as error:
        read_folder(folder, split_by="pateint")
    assert str(error.value) == f"{of} (there: patient, age) (did you mean patient?), got 'pateint'"
    for name in ("path", "label", "split"):
        with pytest.raises(ArgumentError) as error:
            read_folder(folder, split_by=name)
        assert str(error.value) == f"{of} other than path, label and split (there: patient, age), got '{name}'"


def test_folders_of_classes_have_no_columns_to_split_by(tmp_path):
    for i in range(4):
        draw(tmp_path / "ab"[i % 2] / f"{i}.png")
    with pytest.raises(ArgumentError) as error:
        read_folder(tmp_path, split_by="patient")
    assert str(error.value) == f"split_by must be left out for {tmp_path}: it has no index.csv, got 'patient'"


def test_whole_groups_can_be_held_out(tmp_path):
    rows = [f"{i}.png,{i // 3 % 2},g{i % 3}" for i in range(30)]
    data = read_folder(make(tmp_path, rows, "path,label,group"), split_by="group")
    assert sorted(data.counts.values()) == [10, 10, 10]
    assert all(len(set(data.split[data.groups == group])) == 1 for group in range(3))
    (tmp_path / "index.csv").write_text(
        "path,label,group\n" + "".join(f"{i}.png,{i % 2},{i % 2}\n" for i in range(9))
    )
    with pytest.raises(
        ArgumentError, match="split_by must have values enough for three splits: clusters must be at least 3"
    ):
        read_folder(tmp_path, split_by="group")


def test_sizes_are_made_one(tmp_path):
    for i, size in enumerate([(10, 20), (30, 12), (16, 16), (16, 16)]):
        draw(tmp_path / "ab"[i % 2] / f"{i}.png", i, size)
    data = read_folder(tmp_path)
    assert data.samples.shape == (4, 1, 14, 14)
    assert "shorter side of 14" in data.notes[1]
    asked = read_folder(tmp_path, size=7)
    assert asked.samples.shape == (4, 1, 7, 7)
    assert asked.source["size"] == 7


@pytest.mark.parametrize("top", ["", "top/"])
def test_a_folder_a_class(tmp_path, top):
    for i, name in enumerate(["cat/a.png", "cat/deep/b.JPG", "cat/c.png", "dog/a.png", "dog/b.png", "dog/c.png"]):
        draw(tmp_path / top / name, i)
    draw(tmp_path / top / ".thumbs" / "a.png", 99)
    (tmp_path / top / "cat" / "notes.txt").write_text("x")
    data = read_folder(tmp_path)
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(values(data)) == [0, 1, 2, 3, 4, 5]
    assert data.notes[0] == "1 files that are no pictures in a class folder are left out"
    assert data.group_names == ("all",)
    assert data.counts == {"train": 2, "val": 2, "test": 2}


def test_links_to_files_count_and_what_is_no_file_does_not(tmp_path):
    for name in ("cat", "dog"):
        for i in range(3):
            draw(tmp_path / "set" / name / f"{i}.png", i)
    draw(tmp_path / "elsewhere" / "x.png", 50)
    (tmp_path / "set" / "cat" / "z.png").symlink_to(tmp_path / "elsewhere" / "x.png")
    (tmp_path / "set" / "dog" / "z.png").mkdir()
    (tmp_path / "set" / "cow").symlink_to(tmp_path / "elsewhere")
    data = read_folder(tmp_path / "set")
    assert values(data) == [0, 1, 2, 50, 0, 1, 2]
    assert data.classes == ("cat", "dog")


def test_splits_above_the_classes(tmp_path):
    for split in ("Train", "validation", "test"):
        for name in ("cat", "dog"):
            draw(tmp_path / split / name / "a.png")
    data = read_folder(pack(tmp_path, tmp_path.parent / "packed.zip", "top/"))
    assert data.split.tolist() == [0, 0, 2, 2, 1, 1]
    assert data.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_semicolon_in_a_folder_is_a_name(tmp_path):
    for name in ("a;b", "c"):
        draw(tmp_path / name / "x.png")
    assert read_folder(tmp_path).classes == ("a;b", "c")


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        ("file,label", ["a.png,x"], "index.csv must have the columns path and label, .*got 'file,label'"),
        ("path;label", ["a.png,x"], "must have the columns path and label, separated by commas, got 'path;label'"),
        ("path,label,label", ["a.png,x,y"], "index.csv must have each column once, got label twice"),
        ("path,label", [], "index.csv must have a line for each picture, got none"),
        ("path,label", ["a.png,x", "b.png"], "index.csv line 3 must have 2 cells, got 1"),
        ("path,label", ["a.png,x", "b.png,"], r"index.csv line 3: label must not be empty \(1 such lines\)"),
        ("path,label,group", ["a.png,x,", "b.png,y,"], r"index.csv line 2: group must not be empty \(2 such lines\)"),
        ("path,label", ["a.png,x", "./a.png,y"], "line 3: each path must be there once, got './a.png', as in line 2"),
        (
            "path,label,split",
            ["a.png,x,train", "b.png,y,tran"],
            r"line 3: split must be one of train, .*got 'tran' \(did",
        ),
        ("path,label,split", ["a.png,x,train", "b.png,y,"], "line 3: split must be one of train, .*got ''"),
        ("path,label", ["a.png,x", "b.png,x"], "must have at least 2 classes, got x"),
        (
            "path,label,split",
            ["a.png,x,train", "b.png,y,test"],
            "every class must have a training sample, but 1 have none: y",
        ),
        ("path,label,split", ["a.png,x;z,train", "b.png,y,test"], "must have a training sample, but 1 have none: y"),
        (
            "path,label,split",
            ["a.png,x,val", "b.png,y,test"],
            "must have training samples, got none in the split train",
        ),
        ("path,label", ['a.png,"x', "b.png,y"], "index.csv line 3 must be CSV"),
    ],
)
def test_a_broken_index(tmp_path, head, rows, message):
    make(tmp_path / "set", rows, head)
    with pytest.raises(DataError, match=message):
        read_folder(tmp_path / "set")


def test_an_index_that_is_no_text(tmp_path):
    make(tmp_path, ["a.png,ä", "b.png,b"], encoding="latin-1")
    with pytest.raises(DataError, match="index.csv must be UTF-8 .*: save it as CSV UTF-8"):
        read_folder(tmp_path)
    (tmp_path / "index.csv").write_text("")
    with pytest.raises(DataError, match="must have the columns path and label, got an empty file"):
        read_folder(tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
def test_pictures_that_cannot_be_read_are_listed(tmp_path, zipped):
    folder = make(tmp_path / "set", [f"{i}.png,{i % 2}" for i in range(10)])
    draw(tmp_path / "secret.png")
    text = (folder / "index.csv").read_text()
    text = text.replace("\n1.png", "\n../secret.png").replace("\n3.png", "\nmissing.png")
    (folder / "index.csv").write_text(text.replace("\n4.png", f"\n{tmp_path}/secret.png"))
    (folder / "5.png").write_text("no picture")
    (folder / "6.png").write_bytes((folder / "7.png").read_bytes()[:50])
    (folder / "8.png").write_text("")
    with pytest.raises(DataError) as caught:
        read_folder(pack(folder, tmp_path / "set.zip") if zipped else folder)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("index.csv: at least half of the pictures must be readable; 6 of 10 are unreadable:")
    assert lines[1] == "  line 3: ../secret.png: cannot be read (it is outside of the folder)"
    assert lines[2] == "  line 5: missing.png: there is no such file"
    assert lines[3].startswith("  line 6: /")
    why = "it is an absolute path, and must be relative to the folder of index.csv"
    assert lines[3].endswith(f"secret.png: cannot be read ({why})")
    assert lines[4] == "  line 7: 5.png: is no picture that Pillow knows"
    assert lines[5].startswith("  line 8: 6.png: cannot be read (")
    assert lines[6:] == ["  and 1 more"]


def test_a_broken_picture_is_left_out_and_named(tmp_path):
    for i in range(5):
        for name in ("cat", "dog"):
            draw(tmp_path / name / f"{i}.png", i)
    expected = read_folder(tmp_path)
    (tmp_path / "dog" / "1.png").write_text("x")
    data = read_folder(tmp_path)
    assert (
        data.notes[-1] == "1 of 10 pictures are unreadable and left out: dog/1.png: is no picture that Pillow knows"
    )
    left = [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert values(data) == [0, 1, 2, 3, 4, 0, 2, 3, 4]
    assert data.split.tolist() == expected.split[left].tolist()
    assert data.labels.tolist() == expected.labels[left].tolist()


def test_a_class_that_is_broken_as_a_whole(tmp_path):
    folder = make(
        tmp_path,
        [f"{i}.png,{'rare' if i in (3, 9) else i % 2},{'train' if i < 7 else 'val'}" for i in range(10)],
        "path,label,split",
    )
    (folder / "3.png").write_text("x")
    with pytest.raises(
        DataError, match="but training samples of rare lost all; 1 of 10 are unreadable:\n  line 5: 3.png"
    ):
        read_folder(folder)


def test_what_is_no_set(tmp_path):
    with pytest.raises(DataError, match=r"must be a folder or a zip file \(.*No such file"):
        read_folder(tmp_path / "nowhere")
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="must be a folder or a zip file"):
        read_folder(tmp_path / "bad.zip")
    draw(tmp_path / "flat" / "a.png")
    message = "must have index.csv, or a folder for each class with pictures in it .*got 1 files and neither"
    with pytest.raises(DataError, match=message):
        read_folder(tmp_path / "flat")
    draw(tmp_path / "one" / "cat" / "a.png")
    with pytest.raises(DataError, match="must have at least 2 classes, got cat"):
        read_folder(tmp_path / "one")


def test_damaged_zip_files_are_refused_or_read_as_they_were(tmp_path):
    path = pack(make(tmp_path / "set", FULL, HEAD), tmp_path / "set.zip")
    whole, expected, refused = path.read_bytes(), read_folder(path).fingerprint, 0
    told = 0
    for place in range(30, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            data = read_folder(path)
            assert data.fingerprint == expected or "pictures are unreadable and left out" in data.notes[-1]
            told += data.fingerprint != expected
        except DataError:
            refused += 1
    assert refused > 5
    assert told > 5


def test_folders_are_all_classes_or_all_splits(tmp_path):
    for top in ("Training", "Testing"):
        for name in ("cat", "dog"):
            (tmp_path / "a" / top / name).mkdir(parents=True)
            for i in range(4):
                Image.new("L", (4, 4), i).save(tmp_path / "a" / top / name / f"{i}.png")
    data = read_folder(tmp_path / "a")
    assert data.classes == ("cat", "dog")
    assert data.counts["test"] == 8
    (tmp_path / "a" / "extra").mkdir()
    Image.new("L", (4, 4)).save(tmp_path / "a" / "extra" / "x.png")
    with pytest.raises(DataError, match="all be classes or all be splits, got Testing, Training beside extra"):
        read_folder(tmp_path / "a")


def test_links_that_lead_nowhere_are_broken_pictures(tmp_path):
    for i in range(8):
        draw(tmp_path / "set" / ("cat", "dog")[i % 2] / f"{i}.png", i)
    (tmp_path / "set/cat/circle.png").symlink_to("circle.png")
    (tmp_path / "set/dog/nothing.png").symlink_to("nothing at all")
    (tmp_path / "set/cat/folder.png").symlink_to(tmp_path)  # links to folders are not followed
    data = read_folder(tmp_path / "set")
    assert len(data) == 8
    (note,) = [note for note in data.notes if "unreadable" in note]
    assert note.startswith("2 of 10 pictures are unreadable and left out: cat/circle.png: cannot be read (")
    assert "dog/nothing.png: there is no such file" in note


@pytest.mark.parametrize("path", ["/data/1.png", "C:\\data\\1.png", "//server/share/1.png"])
def test_absolute_paths_are_told_as_such(tmp_path, path):
    folder = make(tmp_path / "set", [f"{i}.png,{i % 2}" for i in range(10)])
    text = (folder / "index.csv").read_text()
    (folder / "index.csv").write_text(text.replace("\n1.png", f"\n{path}"))
    (note,) = [note for note in read_folder(folder).notes if "unreadable" in note]
    assert note.endswith("cannot be read (it is an absolute path, and must be relative to the folder of index.csv)")


def test_names_cannot_break_a_message(tmp_path):
    rows = [f'{i}.png,"a{chr(10)}{"bc"[i % 2]}{chr(27)}",{"train" if i < 8 else "val"}' for i in range(9)]
    rows.append(f'9.png,"evil{chr(10)}",val')
    with pytest.raises(DataError) as caught:
        read_folder(make(tmp_path / "set", rows, "path,label,split"))
    assert str(caught.value).endswith("but 1 have none: evil")  # cells are stripped
    one = [f'{i}.png,"a{chr(10)}b{chr(27)}"' for i in range(9)]
    with pytest.raises(DataError) as caught:
        read_folder(make(tmp_path / "one", one))
    assert str(caught.value).endswith(r"must have at least 2 classes, got a\nb\x1b")
