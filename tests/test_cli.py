import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import augtree as at
from augtree.cli import app
from augtree.transforms import Invert


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "augtree", *map(str, arguments)], capture_output=True, text=True)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


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
    assert "Invert(1)  applied to 50 %" in done.stdout
    assert "1 of 6 pictures were shrunk to 224 pixels first (--size)." in done.stdout
    last = json.loads(done.stdout.splitlines()[-1])
    assert last == {"sheet": str(out), "policy": str(tmp_path / "tree.json"), "pictures": 6, "copies": 4, "shrunk": 1}
    with Image.open(out) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 5 * 100
        assert sheet.height > 6 * 100


def test_the_same_seed_gives_the_same_sheet(tmp_path, pictures):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert invoke("apply", "trivialaugment", pictures, "--out", tmp_path / name, "--seed", seed).exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


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
    cases = [
        (("apply", tmp_path / "broken.json", pictures), 'must be {"transform": ..., "p": ...}, got 3 at /nodes/1'),
        (("apply", tmp_path / "missing.json", pictures), "a policy must be a file or one of none, randaugment"),
        (("apply", "none", tmp_path / "broken.png"), "broken.png: must be a picture, got"),
        (("apply", "none", tmp_path / "missing.png"), "missing.png: must be a picture, got"),
        (("apply", "none", tmp_path / "empty"), "a folder must have pictures"),
    ]
    for arguments, message in cases:
        with pytest.raises(at.AugtreeError) as caught:
            invoke(*arguments, "--out", out)
        assert message in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    assert out.read_bytes() == b"what was there before"
    done = run("apply", tmp_path / "broken.json", pictures, "--out", out)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("augtree: ")
    assert "Traceback" not in done.stderr


def test_demo(tmp_path):
    done = invoke("demo", "--out", tmp_path / "demo", "--json")
    assert done.exit_code == 0
    last = json.loads(done.stdout.splitlines()[-1])
    assert at.load(last["tree"]).depth == 3
    with Image.open(last["sheet"]) as sheet:
        assert sheet.width > 800
    assert (tmp_path / "demo" / "tree.svg").read_text().startswith("<svg")
    assert sum(row["p"] for row in last["paths"]) == pytest.approx(1)
    for row in last["paths"]:
        assert row["share"] == pytest.approx(row["p"], abs=0.015)


def test_help_names_the_commands():
    done = invoke("--help")
    assert done.exit_code == 0
    for command in ("demo", "apply"):
        assert command in done.stdout
