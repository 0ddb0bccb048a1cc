import subprocess
import sys

import pytest
from PIL import Image

from augtree.cli.reading import parse_reader_options
from augtree.data.named.iwildcam import read_iwildcam
from augtree.data.named.svhn import read_svhn
from augtree.errors import ArgumentError, AugtreeError
from support.commands import invoke, last


@pytest.fixture
def folder(tmp_path):
    """Twenty pictures of two classes and two groups."""
    place = tmp_path / "pets"
    place.mkdir()
    lines = ["path,label,group,camera"]
    for i in range(20):
        Image.new("RGB", (6, 6), (i * 10, 0, 99)).save(place / f"{i}.png")
        lines.append(f"{i}.png,{('cat', 'dog')[i % 2]},{('day', 'night')[i // 2 % 2]},{i % 5}")
    (place / "index.csv").write_text("\n".join(lines))
    return place


def test_list_says_what_is_there(tmp_path):
    (tmp_path / "tu").mkdir()
    (tmp_path / "tu" / "MUTAG.zip").touch()
    done = invoke("data", "list", "--root", tmp_path, "--json")
    found = {one["name"]: one for one in last(done)["sets"]}
    assert [name for name, one in found.items() if one["there"]] == ["digits", "MUTAG"]
    assert found["svhn"]["fetched"] == "--download"
    assert found["svhn"]["options"] == ["extra"]
    assert found["chestxray14"]["fetched"] == "manual"
    assert "MUTAG          present     188 molecules" in done.stderr
    assert "licence" not in done.stderr.splitlines()[1]
    assert "licence: CDLA-Permissive-1.0" in invoke("data", "list", "--root", tmp_path, "--pages").stdout


def test_info_of_a_folder(folder, tmp_path):
    out = tmp_path / "samples.png"
    done = invoke("data", "info", folder, "--labels", 4, "--out", out, "--json")
    found = last(done)
    assert found["counts"] == {"train": 4, "val": 4, "test": 4, "unlabelled": 8}
    assert found["groups"]["day"]["test"] + found["groups"]["night"]["test"] == 4
    assert found["sizes"] == {"channels": 3, "height": 6, "width": 6}
    assert found["picture"] == str(out)
    assert found["source"]["labels"] == 4
    assert f"fingerprint {found['fingerprint']}" in done.stderr
    assert "no split is given: 60/20/20 by label and group, seed 0" in done.stderr
    with Image.open(out) as picture:
        assert picture.format == "PNG"


def test_info_with_other_groups_and_as_svg(folder, tmp_path):
    out = tmp_path / "samples.svg"
    found = last(invoke("data", "info", folder, "--groups", "column:camera", "--out", out, "--json"))
    assert list(found["groups"]) == ["0", "1", "2", "3", "4"]
    joined = last(invoke("data", "info", folder, "--groups", "column:camera", "--merge", "nearest", "--json"))
    assert 1 <= len(joined["groups"]) < 5
    assert any("+" in name for name in joined["groups"])
    assert out.read_text().startswith("<svg ")


def test_info_of_a_name_that_is_not_there(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "augtree", "data", "info", "iwildcam", "--root", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "augtree: " in done.stderr
    assert "iwildcam_v2.0/ with metadata.csv" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_existing_picture_is_replaced_only_when_wanted(folder, tmp_path):
    out = tmp_path / "samples.png"
    out.write_bytes(b"mine")
    with pytest.raises(AugtreeError, match="--out must be a new file"):
        invoke("data", "info", folder, "--out", out)
    assert out.read_bytes() == b"mine"
    assert invoke("data", "info", folder, "--out", out, "--overwrite").exit_code == 0
    with Image.open(out) as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "samples.gif"], "--out must end in .png or .svg"),
        (["--out", "no/where/samples.png"], "--out must be in an existing folder"),
        (["--data-option", "cameras=3"], "--data-option must be left out for digits: it has no options"),
        (["--size", 9], "size must be left out for digits"),
        (["--labels", 0], "labels must be a whole number from 1 to 1078"),
    ],
)
def test_what_cannot_be(arguments, message):
    with pytest.raises(AugtreeError, match=message):
        invoke("data", "info", "digits", *arguments)


def test_by_hand_means_by_hand(tmp_path):
    with pytest.raises(AugtreeError, match="iwildcam must be fetched by hand"):
        invoke("data", "info", "iwildcam", "--root", tmp_path, "--download")


def test_reader_options_have_the_reader_s_types():
    assert parse_reader_options("svhn", read_svhn, ["extra=yes"]) == {"extra": True}
    given = ["cameras=3", "judged=id", "partial=false"]
    assert parse_reader_options("iwildcam", read_iwildcam, given) == {"cameras": 3, "judged": "id", "partial": False}
    for text, message in {
        "cameras=three": "--data-option cameras must be a whole number, got 'three'",
        "partial=maybe": "--data-option partial must be one of true, yes",
        "camera=3": r"must be NAME=VALUE with one of cameras, judged, partial for iwildcam \(did you mean cam",
        "cameras": "must be NAME=VALUE",
    }.items():
        with pytest.raises(ArgumentError, match=message):
            parse_reader_options("iwildcam", read_iwildcam, [text])


def test_a_search_takes_the_same_options(folder, tmp_path):
    quick = ["--model", "cnn", "--steps", 2, "--batch-size", 8, "--out", tmp_path / "run", "--json"]
    done = invoke("train", folder, "--labels", 6, *quick)
    assert "unlabelled 6" in done.stderr
    assert "6 of 12 training samples keep their labels" in done.stderr
    assert last(done)["out"] == str(tmp_path / "run")
