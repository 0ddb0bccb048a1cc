"""Masks and boxes of pictures in files: the columns mask and box of index.csv."""

import zipfile
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from PIL import Image

from augtree.data import load
from augtree.data.pictures.folder import read_folder
from augtree.errors import DataError

RNG = np.random.default_rng(0)
SIZES = [(12, 8), (9, 9), (7, 15), (20, 11), (8, 8), (30, 6)]
"""Width and height."""


def smooth(width, height):
    """A mask with one object: an ellipse somewhere."""
    y, x = np.mgrid[:height, :width]
    a, b = RNG.random(2) * 0.6 + 0.2
    return ((x / width - a) ** 2 + (y / height - b) ** 2) < 0.08


def make(folder, cells, head="path,label,mask,box", sizes=SIZES, modes=("L",)):
    """Pictures that are white where their masks are, the masks, and an index.csv with these cells; the masks."""
    pixels, rows = [], [head]
    for i, (width, height) in enumerate(sizes):
        mask = smooth(width, height)
        pixels.append(mask)
        Image.fromarray(mask.astype(np.uint8) * 255).save(folder / f"{i}.png")
        mode = modes[i % len(modes)]
        if mode == "RGBA":  # opaque everywhere; red where the object is
            colours = np.stack([mask * 200, mask * 0, mask * 0, mask * 0 + 255], axis=-1).astype(np.uint8)
            Image.fromarray(colours).save(folder / f"m{i}.png")
        elif mode == "P":
            image = Image.fromarray(mask.astype(np.uint8) * 3, "L").convert("P")
            image.putdata(mask.astype(int).ravel().tolist())
            image.putpalette([9, 9, 9, 128, 0, 0])
            image.save(folder / f"m{i}.png")
        else:
            Image.fromarray(mask if mode == "1" else mask.astype(np.uint8)).save(folder / f"m{i}.png")
        rows.append(f"{i}.png,{'dog' if i % 2 else 'cat'},{cells(i)}")
    (folder / "index.csv").write_text("\n".join(rows))
    return pixels


def cut(pixels, side):
    """The mask of the square in the middle: for each of its pixels, the pixel that its centre is in."""
    height, width = pixels.shape
    short, half = min(width, height), Fraction(1, 2)
    at = [
        [floor(Fraction(length - short, 2) + (i + half) * short / side) for i in range(side)]
        for length in (height, width)
    ]
    return np.array([[pixels[y, x] for x in at[1]] for y in at[0]])


@pytest.mark.parametrize("size", [5, 8, 17])
@pytest.mark.parametrize("zipped", [False, True])
def test_masks_are_cut_as_their_pictures_are(tmp_path, size, zipped):
    (tmp_path / "set").mkdir()
    pixels = make(tmp_path / "set", lambda i: f"m{i}.png," if i != 4 else ",", modes=("L", "1", "RGBA", "P"))
    path = tmp_path / "set"
    if zipped:
        path = tmp_path / "set.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in (tmp_path / "set").iterdir():
                archive.write(file, file.name)
    data = load(path, size=size)
    masks = data.masks[:].numpy()
    for i, mask in enumerate(pixels):
        assert np.array_equal(masks[i], cut(mask, size) if i != 4 else np.zeros((size, size)))
        if i != 4:  # as bright as the mask says, but for pixels on the edge
            bright = data.samples[i, 0].numpy() > 127
            assert (bright != masks[i]).mean() < 0.15
    assert load(**data.source).fingerprint == data.fingerprint


def test_pictures_that_stay_as_they_are_have_masks_that_do(tmp_path):
    pixels = make(tmp_path, lambda i: f"m{i}.png,", sizes=[(7, 5)] * 6)
    assert np.array_equal(read_folder(tmp_path).masks[:].numpy(), pixels)


@pytest.mark.parametrize("size", [4, 8, 23])
def test_boxes_are_in_pixels_of_the_original_picture(tmp_path, size):
    cells = ["0 0 12 8", "3 2 5 9", "1 6 7 9", "2 1 4 3; 10 4 19 11", "0 0 1 1", ""]
    make(tmp_path, lambda i: f",{cells[i]}")
    masks = read_folder(tmp_path, size=size).masks[:].numpy()
    for i, (width, height) in enumerate(SIZES):
        whole = np.zeros((height, width), bool)
        for box in cells[i].split(";") if cells[i] else []:
            x0, y0, x1, y1 = map(int, box.split())
            whole[y0:y1, x0:x1] = True
        assert np.array_equal(masks[i], cut(whole, size)), i


def test_a_mask_counts_for_more_than_a_box(tmp_path):
    pixels = make(tmp_path, lambda i: f"{'' if i % 2 else f'm{i}.png'},0 0 6 6", sizes=[(6, 6)] * 6)
    masks = read_folder(tmp_path).masks[:].numpy()
    for i in range(6):
        assert np.array_equal(masks[i], np.ones((6, 6)) if i % 2 else pixels[i])


def test_a_turned_picture_has_its_mask_as_it_is_seen(tmp_path):
    pixels = make(tmp_path, lambda i: f"m{i}.png,", sizes=[(7, 5)] * 6)
    for i, mask in enumerate(pixels):
        lying = Image.fromarray(mask.astype(np.uint8) * 255).transpose(Image.Transpose.ROTATE_90)
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned right
        lying.save(tmp_path / f"{i}.png", exif=exif)
        if i % 2:
            lying.save(tmp_path / f"m{i}.png", exif=exif)
    data = read_folder(tmp_path)
    assert np.array_equal(data.samples[:, 0].numpy() > 127, data.masks[:].numpy())
    assert np.array_equal(data.masks[:].numpy(), pixels)


def test_columns_without_a_cell_are_no_masks(tmp_path):
    make(tmp_path, lambda i: ",")
    assert read_folder(tmp_path).masks is None


def test_pictures_that_cannot_be_read_leave_no_mask(tmp_path):
    pixels = make(tmp_path, lambda i: f"m{i}.png,", sizes=[(7, 5)] * 12)
    (tmp_path / "2.png").write_text("no picture")
    (tmp_path / "m2.png").unlink()
    assert np.array_equal(read_folder(tmp_path).masks[:].numpy(), np.delete(pixels, 2, axis=0))


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("m/no.png,", r"line 4: mask 'm/no.png': there is no such file$"),
        ("../m2.png,", r"line 4: mask '../m2.png': cannot be read \(it is outside of the folder\)"),
        ("index.csv,", r"line 4: mask 'index.csv': is no picture that Pillow knows"),
        ("m1.png,", r"line 4: mask 'm1.png' must be as large as its picture, 7x15, got 9x9"),
        (",0 0 7", r"line 4: box must be four numbers, x0 y0 x1 y1, got '0 0 7'"),
        (",a b c d", r"line 4: box must be four numbers, x0 y0 x1 y1, got 'a b c d'"),
        (',"0,0,2,2"', r"line 4: box must be four numbers, x0 y0 x1 y1, got '0,0,2,2'"),
        (",0 0 8 15", r"line 4: box must be x0 y0 x1 y1 within the picture of 7x15 pixels, .* got '0 0 8 15'"),
        (",3 0 3 15", r"line 4: box must be .* x0 < x1 and y0 < y1, got '3 0 3 15'"),
        (",0 0 2 2;", r"line 4: box must be four numbers, x0 y0 x1 y1, got ''"),
        (",0 0 inf 2", r"line 4: box must be"),
    ],
)
def test_a_wrong_mask_or_box_is_named_with_its_line(tmp_path, cell, words):
    make(tmp_path, lambda i: cell if i == 2 else f"m{i}.png,")
    with pytest.raises(DataError, match=r"index.csv " + words):
        read_folder(tmp_path, size=6)


def test_several_wrong_masks_are_counted(tmp_path):
    make(tmp_path, lambda i: f"no{i}.png,")
    with pytest.raises(DataError, match=r"line 2: mask 'no0.png': there is no such file \(one of 6 such lines\)"):
        read_folder(tmp_path, size=6)


def test_masks_are_kept_where_the_pictures_are(tmp_path, monkeypatch):
    (tmp_path / "set").mkdir()
    make(tmp_path / "set", lambda i: f"m{i}.png," if i % 2 else ",1 1 5 5")
    plain = read_folder(tmp_path / "set", size=8)
    first = read_folder(tmp_path / "set", size=8, cache=tmp_path / "cache")
    assert first.fingerprint == plain.fingerprint
    opened = []
    monkeypatch.setattr("augtree.data.pictures.masks.header", lambda file: opened.append(file))
    again = read_folder(tmp_path / "set", size=8, cache=tmp_path / "cache")
    assert again.fingerprint == plain.fingerprint
    assert not opened
    monkeypatch.undo()
    Image.fromarray(np.ones((9, 9), np.uint8)).save(tmp_path / "set" / "m1.png")
    changed = read_folder(tmp_path / "set", size=8, cache=tmp_path / "cache")
    assert changed.masks[[1]].all()
    assert len(list((tmp_path / "cache").glob("*/*/about.json"))) == 2  # of the pictures and of the masks
