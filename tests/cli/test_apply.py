import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

import augtree as at
from augtree.errors import DataError
from augtree.report import sheet as sheet_module
from augtree.report.sheet import caption, read_picture
from augtree.transforms import Chain, DropNodes, Invert, Normalize
from support.by_hand import by_hand
from support.commands import invoke


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "augtree", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(3):
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    Image.fromarray(rng.integers(0, 256, (40, 10), dtype=np.uint8)).save(folder / "grey.jpg")
    Image.new("RGBA", (300, 500), (1, 2, 3, 4)).save(folder / "large.PNG")
    Image.fromarray((rng.integers(0, 65536, (9, 9))).astype(np.uint16)).save(folder / "deep.tif")
    (folder / "notes.txt").write_text("no picture")
    return folder


def test_apply_writes_a_sheet_and_says_what_it_did(tmp_path, pictures):
    at.Tree().with_node(1, Invert(1.0), p=0.5).save(tmp_path / "tree.json")
    out = tmp_path / "sheet.png"
    done = invoke("apply", tmp_path / "tree.json", pictures, "--out", out, "--copies", 4, "--json")
    assert done.exit_code == 0
    assert "Invert(1)  applied to 50 %" in done.stderr
    assert "1 of 6 pictures were shrunk to 224 pixels first (--size)." in done.stderr
    last = json.loads(done.stdout)
    assert last == {
        "sheet": str(out),
        "policy": str(tmp_path / "tree.json"),
        "pictures": 6,
        "copies": 4,
        "shrunk": 1,
        "left_out": 0,
    }
    with Image.open(out) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 5 * 100
        assert sheet.height > 6 * 100


def test_the_same_seed_gives_the_same_sheet(tmp_path, pictures):
    for name, seed in (("a.png", 1), ("b.png", 1), ("c.png", 2)):
        assert invoke("apply", "trivialaugment", pictures, "--out", tmp_path / name, "--seed", seed).exit_code == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "c.png").read_bytes()


@pytest.mark.parametrize(
    "name", ["none", "randaugment", "autoaugment-cifar10", "autoaugment-svhn", "autoaugment-imagenet"]
)
def test_free_policies_by_name(tmp_path, pictures, name):
    assert invoke("apply", name, pictures / "0.png", "--out", tmp_path / "s.png", "--copies", 2).exit_code == 0


def test_many_pictures_are_cut_short_aloud(tmp_path, pictures):
    done = invoke("apply", "none", pictures, "--most", 2, "--out", tmp_path / "s.png")
    assert "Showing 2 of 6 pictures (--most)." in done.stdout


def test_errors_are_one_line_and_lose_nothing(tmp_path, pictures):
    out = tmp_path / "sheet.png"
    out.write_bytes(b"what was there before")
    (tmp_path / "broken.json").write_text('{"augtree": 1, "kind": "tree", "nodes": {"1": 3}}')
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    (tmp_path / "empty").mkdir()
    at.save(Chain([Normalize()]), tmp_path / "floats.json")
    cases = [
        (("apply", tmp_path / "broken.json", pictures), "an object with transform and p, got 3 at /nodes/1"),
        (
            ("apply", tmp_path / "missing.json", pictures),
            "there is no such file, and the names are none, randaugment",
        ),
        (("apply", "trivialaugmnt", pictures), "(did you mean trivialaugment?)"),
        (("apply", "none", tmp_path / "broken.png"), "broken.png: must be a picture ("),
        (("apply", "none", tmp_path / "missing.png"), "missing.png: must be a picture (No such file or directory)"),
        (("apply", "none", tmp_path / "empty"), "a folder must have pictures"),
        (("apply", tmp_path / "floats.json", pictures), "leave Normalize out"),
    ]
    for arguments, message in cases:
        with pytest.raises(at.AugtreeError) as caught:
            invoke(*arguments, "--out", out, "--overwrite")
        assert message in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    assert out.read_bytes() == b"what was there before"
    done = run("apply", tmp_path / "broken.json", pictures, "--out", out, "--overwrite")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("augtree: ")
    assert "Traceback" not in done.stderr


def test_a_run_s_folder_means_its_policy(tmp_path, pictures):
    tree = at.Tree().with_node(1, Invert(1.0), p=0.25)
    out = tmp_path / "s.png"
    for name in ("tree.json", "policy.json"):
        run = tmp_path / name.removesuffix(".json")
        run.mkdir()
        tree.save(run / name)
        done = invoke("apply", run, pictures, "--out", out, "--overwrite")
        assert done.exit_code == 0
        assert "Invert(1)  applied to 25 %" in done.stdout


@pytest.fixture
def graphs(tmp_path):
    """A set of graphs, as a folder and as a zip file; a tree for them; a run that is not done."""
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "MUTAG" / "MUTAG_A.txt").write_text("1, 2\n")
    for name, inside in (("MUTAG.zip", "MUTAG/MUTAG_A.txt"), ("pictures.zip", "a/0.png")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(inside, "1, 2\n")
    at.Tree().with_node(1, DropNodes(0.2)).save(tmp_path / "graphs.json")
    at.Forest({"a": (at.Tree().with_node(1, DropNodes(0.2)), 1.0)}).save(tmp_path / "forest.json")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "spec.json").write_text("{}")
    (tmp_path / "other").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("policy", "place", "message"),
    [
        (
            "run",
            "pictures",
            r"run: a folder must be that of a run with a policy \(tree.json, .* none yet: the run is not",
        ),
        ("other", "pictures", r"other: a folder must be that of a run with a policy \(.*\), but there is none$"),
        ("graphs.json", "pictures", "graphs.json: a policy must work on pictures here, got one for graphs"),
        ("forest.json", "pictures", "forest.json: a policy must work on pictures here, got one for graphs"),
        ("none", "MUTAG", "MUTAG: must be a picture or a folder with pictures, got a set of graphs"),
        ("none", "MUTAG.zip", "MUTAG.zip: must be a picture or a folder with pictures, got a set of graphs"),
        ("none", "pictures.zip", "got a zip file: unpack it first"),
        ("none", "NCI1", r"NCI1: must be a picture .* no such file or folder \(the name of a data set will not do\)"),
        ("none", "run", r"run: a folder must have pictures \(.*\), got none \(it is a run's folder\)"),
    ],
)
def test_what_is_no_policy_and_no_picture_gets_a_clear_line(graphs, pictures, policy, place, message):
    out = graphs / "sheet.png"
    given = policy if policy == "none" else graphs / policy
    with pytest.raises(at.AugtreeError, match=message):
        invoke("apply", given, graphs / place, "--out", out)
    assert not out.exists()


def test_nothing_that_was_to_be_read_is_written_over(tmp_path, pictures, monkeypatch):
    at.Tree().save(tmp_path / "tree.png")
    before = (pictures / "0.png").read_bytes()
    for out in (pictures / "0.png", tmp_path / "tree.png", pictures / ".." / "pictures" / "0.png"):
        with pytest.raises(at.AugtreeError, match="--out must not be one of the files to read"):
            invoke("apply", tmp_path / "tree.png", pictures / "0.png", "--out", out)
    for out in ("sheet.jpg", "sheet", "."):
        with pytest.raises(at.AugtreeError, match=r"--out must end in \.png"):
            invoke("apply", "none", pictures / "0.png", "--out", tmp_path / out)
    assert (pictures / "0.png").read_bytes() == before
    monkeypatch.chdir(pictures)
    for _ in range(2):  # the sheet of the first run is no picture for the second
        done = invoke("apply", "none", ".", "--overwrite", "--json")
        assert json.loads(done.stdout)["pictures"] == 6


def test_an_existing_sheet_is_replaced_only_when_wanted(tmp_path, pictures, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sheet = tmp_path / "sheet.png"
    sheet.write_bytes(b"mine")
    with pytest.raises(at.AugtreeError, match=r"--out must be a new file \(--overwrite replaces .*got 'sheet.png'"):
        invoke("apply", "none", pictures)
    assert sheet.read_bytes() == b"mine"
    assert invoke("apply", "none", pictures, "--overwrite").exit_code == 0
    with Image.open(sheet) as drawn:
        assert drawn.format == "PNG"


def test_broken_files_in_a_folder_are_left_out_aloud(tmp_path, pictures):
    whole = (pictures / "large.PNG").read_bytes()
    (pictures / "1.png").write_bytes(whole[:200])
    (pictures / "2.png").write_bytes(b"")
    (pictures / "folder.png").mkdir()
    done = invoke("apply", "none", pictures, "--out", tmp_path / "s.png", "--json")
    assert done.stderr.count("Left out: ") == 2
    assert json.loads(done.stdout)["left_out"] == 2
    for file in pictures.glob("*.*"):
        if file.is_file():
            file.write_bytes(b"")
    with pytest.raises(at.AugtreeError, match="there must be a picture that can be read, but "):
        invoke("apply", "none", pictures, "--out", tmp_path / "t.png")


def test_the_sheet_shows_what_happened(tmp_path):
    """Every picture stands on the sheet pixel by pixel, enlarged; the inverted version beside the original."""
    Image.new("L", (1, 1), 30).save(tmp_path / "dot.png")
    at.Tree().with_node(1, Invert()).save(tmp_path / "tree.json")
    invoke("apply", tmp_path / "tree.json", tmp_path / "dot.png", "--out", tmp_path / "s.png", "--copies", 1)
    with Image.open(tmp_path / "s.png") as sheet:
        colours = {colour for _, colour in sheet.getcolors(1 << 20)}
    assert {(30, 30, 30), (225, 225, 225)} <= colours


def test_pictures_are_read_as_people_see_them(tmp_path):
    upright = Image.new("RGB", (4, 2))
    upright.putpixel((0, 0), (255, 0, 0))
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held on its side
    upright.save(tmp_path / "turned.png", exif=turned)
    picture, _ = read_picture(tmp_path / "turned.png", 224)
    assert picture.shape == (3, 4, 2)
    assert picture[:, 0, 1].tolist() == [255, 0, 0]
    Image.fromarray(np.array([[0, 256, 65535]], np.uint16)).save(tmp_path / "deep.tif")
    assert read_picture(tmp_path / "deep.tif", 224)[0].tolist() == [[[0, 1, 255]]]
    palette = Image.new("P", (2, 1))
    palette.putpalette([9, 8, 7, 6, 5, 4])
    palette.save(tmp_path / "palette.png", transparency=b"\x00\xff")
    assert read_picture(tmp_path / "palette.png", 224)[0][:, 0, 0].tolist() == [9, 8, 7]
    Image.new("CMYK", (3, 3)).save(tmp_path / "print.jpg")
    assert read_picture(tmp_path / "print.jpg", 224)[0].shape == (3, 3, 3)
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(DataError, match="its values have no known range, mode F"):
        read_picture(tmp_path / "float.tif", 224)


def test_long_captions_say_that_there_is_more():
    assert caption(("a", "b", "c", "d", "e")) == ["a", "b", "c", "d", "e"]
    assert caption(("a", "b", "c", "d", "e", "f")) == ["a", "b", "c", "d", "and 2 more"]
    assert caption(()) == ["unchanged"]


def test_large_batches_are_cut(monkeypatch):
    monkeypatch.setattr(sheet_module, "BATCH_BYTES", 1000)
    pictures = [torch.zeros(1, 10, 10, dtype=torch.uint8)] * 5 + [torch.zeros(1, 9, 9, dtype=torch.uint8)]
    assert list(sheet_module.batches(pictures, copies=3)) == [[0, 1, 2], [3, 4], [5]]


def test_terminals_without_the_letters_get_question_marks(tmp_path):
    by_hand().save(tmp_path / "tree.json")
    Image.new("L", (8, 8)).save(tmp_path / "dot.png")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "augtree", "apply", *("tree.json", ".", "--out", "sheet.png")],
        capture_output=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert b"applied to 80 %" in done.stdout
