import io
import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.data.pictures import readable
from augtree.data.pictures.readable import in_order, readable_pictures
from augtree.errors import ArgumentError

RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


def png(image, **options):
    return packed(image, "PNG", **options)


def packed(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(*files, size=None):
    found = readable_pictures([lambda file=file: io.BytesIO(file) for file in files], size)
    return found.samples, found.notes, found.problems


def colour(width, height, value=(10, 20, 30)):
    return Image.new("RGB", (width, height), value)


def test_grey_pictures_of_one_size_stay_as_they_are():
    samples, notes, problems = read(png(Image.fromarray(RAMP)), png(Image.fromarray(RAMP.T)))
    assert samples.dtype == torch.uint8
    assert samples.tolist() == [[RAMP.tolist()], [RAMP.T.tolist()]]
    assert notes == ("all pictures are grey: 1 channel", "all pictures are 8x8 and stay so")
    assert problems == {}


def test_one_coloured_picture_makes_all_rgb():
    samples, notes, _ = read(png(Image.fromarray(RAMP)), png(colour(8, 8)))
    assert samples.shape == (2, 3, 8, 8)
    assert (samples[0] == torch.from_numpy(RAMP)).all()
    assert samples[1, :, 0, 0].tolist() == [10, 20, 30]
    assert notes[0] == "pictures are RGB: 3 channels, the grey ones too"


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "WEBP", "JPEG"])
def test_forms_of_files(kind):
    samples, _, problems = read(packed(colour(6, 4, (200, 100, 50)), kind))
    assert problems == {}
    assert samples.shape == (1, 3, 4, 6)
    assert np.abs(samples[0, :, 0, 0].int().numpy() - [200, 100, 50]).max() <= 4


def test_transparent_parts_become_black():
    half = Image.new("RGBA", (2, 1), (255, 255, 255, 255))
    half.putpixel((1, 0), (255, 255, 255, 0))
    samples, notes, _ = read(png(half))
    assert samples[0, :, 0].tolist() == [[255, 0]] * 3
    assert "transparent parts are laid over black" in notes
    grey = Image.new("LA", (2, 1), (80, 255))
    grey.putpixel((1, 0), (80, 0))
    assert read(png(grey))[0].tolist() == [[[[80, 0]]]]


def test_palettes_with_a_transparent_colour():
    image = Image.new("P", (2, 1))
    image.putpalette([9, 8, 7, 50, 60, 70])
    image.putpixel((1, 0), 1)
    assert read(png(image))[0][0, :, 0].tolist() == [[9, 50], [8, 60], [7, 70]]
    assert read(png(image, transparency=0))[0][0, :, 0].tolist() == [[0, 50], [0, 60], [0, 70]]


def test_sixteen_bits_and_one_bit():
    deep = Image.fromarray(np.array([[0, 257, 65535, 25700]], np.uint16))
    samples, notes, _ = read(png(deep))
    assert samples.tolist() == [[[[0, 1, 255, 100]]]]
    assert "deep grey values have 16 bits in this set: they are divided by 257" in notes
    bits = Image.fromarray(np.array([[True, False]]))
    assert read(png(bits))[0].tolist() == [[[[255, 0]]]]


@pytest.mark.parametrize(
    ("largest", "bits", "divisor"),
    [(255, 8, "1"), (256, 10, "4.012"), (4095, 12, "16.06"), (4096, 14, "64.25"), (16384, 16, "257")],
)
def test_the_depth_of_a_set_is_the_least_that_holds_it(largest, bits, divisor):
    dark = png(Image.fromarray(np.array([[0, 5]], np.uint16)))
    samples, notes, _ = read(dark, png(Image.fromarray(np.array([[largest, 200]], np.uint16))))
    white = 2**bits - 1
    expected = [[0, round(5 * 255 / white)], [round(largest * 255 / white), round(200 * 255 / white)]]
    assert samples[:, 0, 0].tolist() == expected
    assert f"deep grey values have {bits} bits in this set: they are divided by {divisor}" in notes


def tiff_of_12_bits(*values):
    """A grey TIFF of one row, written by hand: Pillow reads such files but writes none."""
    data = int("".join(f"{value:012b}" for value in values), 2).to_bytes(len(values) * 12 // 8, "big")
    short, long = 3, 4
    tags = [(256, short, len(values)), (257, short, 1), (258, short, 12), (259, short, 1), (262, short, 1)]
    tags += [(273, long, 8), (277, short, 1), (278, short, 1), (279, long, len(data))]
    table = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    head = struct.pack("<2sHI", b"II", 42, 8 + len(data))
    return head + data + struct.pack("<H", len(tags)) + table + struct.pack("<I", 0)


def test_a_file_that_states_its_depth_is_scaled_by_that():
    samples, notes, problems = read(tiff_of_12_bits(0, 16, 4095, 2048), png(Image.fromarray(RAMP[:1, :4])))
    assert problems == {}
    assert samples[:, 0, 0].tolist() == [[0, 1, 255, 128], [0, 4, 8, 12]]
    assert "deep grey values are scaled by the depth that their files state" in notes
    samples, notes, _ = read(b"P5 2 1 4095\n" + struct.pack(">2H", 2048, 160))
    assert samples.flatten().tolist() == [128, 10]
    both = read(tiff_of_12_bits(4095, 0), png(Image.fromarray(np.array([[1023, 0]], np.uint16))))
    assert both[0][:, 0, 0].tolist() == [[255, 0], [255, 0]]


def test_sixteen_bits_a_colour():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + struct.pack(">3H", 65535, 0x1234, 255)
    head = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(row)), chunk(b"IEND", b"")]
    samples, notes, _ = read(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    assert samples.flatten().tolist() == [255, 0x12, 0]
    assert "of 16-bit colours the higher byte is taken" in notes
    assert not any("16-bit" in note for note in read(png(colour(1, 1)))[1])


def test_the_orientation_of_the_camera_is_applied():
    image = Image.fromarray(np.array([[10, 200, 90]], np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    samples, notes, _ = read(png(image, exif=exif))
    assert samples.tolist() == [[[[10], [200], [90]]]]
    assert notes[-1] == "all pictures are 1x3 and stay so"


def test_of_an_animation_the_first_frame():
    frames = [Image.new("L", (2, 2), value) for value in (50, 200)]
    samples, _, problems = read(packed(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert problems == {}
    assert samples.unique().tolist() == [50]


def test_pictures_of_several_sizes_take_the_median_shorter_side():
    samples, notes, _ = read(png(colour(10, 30)), png(colour(50, 20)), png(colour(40, 60)))
    assert samples.shape == (3, 3, 20, 20)
    assert notes[-1] == (
        "pictures (3 sizes, shorter side 10 to 40) are scaled to a shorter side of 20 "
        "(the median shorter side, at most 224) and cut to the 20x20 in the middle"
    )


def test_large_pictures_become_224():
    assert read(png(colour(225, 300)))[0].shape == (1, 3, 224, 224)
    assert read(png(colour(224, 200)))[0].shape == (1, 3, 200, 224)
    assert read(png(colour(225, 200)))[0].shape == (1, 3, 200, 200)


def test_a_size_that_is_asked_for():
    samples, notes, _ = read(png(colour(8, 8)), size=5)
    assert samples.shape == (1, 3, 5, 5)
    assert "(8x8) are scaled to a shorter side of 5 (as asked) and cut to the 5x5 in the middle" in notes[-1]
    for size in (0, 9000, 2.5):
        with pytest.raises(ArgumentError, match="size must be a whole number from 1 to 8192"):
            read(png(colour(8, 8)), size=size)


def test_the_middle_is_what_is_cut_out():
    wide = np.concatenate([np.zeros((8, 4)), RAMP, np.full((8, 4), 255)], axis=1).astype(np.uint8)
    assert read(png(Image.fromarray(wide)), size=8)[0].tolist() == [[RAMP.tolist()]]
    assert read(png(Image.fromarray(wide.T)), size=8)[0].tolist() == [[RAMP.T.tolist()]]


def test_scaling_is_that_of_pillow():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 30), dtype=np.uint8))
    expected = np.asarray(noise.resize((20, 20), Image.Resampling.BILINEAR))
    assert (read(png(noise), size=20)[0][0, 0].numpy() == expected).all()


def test_a_large_jpeg_is_close_to_its_full_decoding(photos):
    large = Image.fromarray(photos[0].permute(1, 2, 0).numpy()).resize((400, 400), Image.Resampling.BICUBIC)
    file = packed(large, "JPEG", quality=95)
    expected = np.asarray(Image.open(io.BytesIO(file)).resize((40, 40), Image.Resampling.BILINEAR)).astype(int)
    found = read(file, size=40)[0][0].permute(1, 2, 0).numpy()
    assert np.abs(found - expected).mean() < 2


def test_what_cannot_be_read_is_told_apart():
    good = png(Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)))

    def missing():
        raise FileNotFoundError("x")

    floats = packed(Image.fromarray(np.zeros((64, 64), np.float32)), "TIFF")
    deep = packed(Image.fromarray(np.full((64, 64), 70000, np.int32)), "TIFF")
    files = [good, b"no picture", good[: len(good) // 2], floats, deep]
    problems = readable_pictures([*(lambda file=file: io.BytesIO(file) for file in files), missing]).problems
    assert set(problems) == {1, 2, 3, 4, 5}
    assert problems[1] == "is no picture that Pillow knows"
    assert problems[2].startswith("cannot be read (")
    assert problems[3] == "cannot be read (must have whole values, got floats)"
    assert problems[4] == "cannot be read (16-bit values must be from 0 to 65535, got 70000 to 70000)"
    assert problems[5] == "there is no such file"


def test_where_nothing_can_be_read():
    samples, notes, problems = read(b"x", b"y")
    assert (len(samples), notes, set(problems)) == (0, (), {0, 1})


def test_what_can_be_read_comes_without_the_rest():
    files = [png(Image.new("L", (2, 2), value)) for value in range(5)]
    files[1], files[3] = b"no picture", files[3][:44]
    openers = [lambda file=file: io.BytesIO(file) for file in files]
    found = readable_pictures(openers)
    assert found.samples[:, 0, 0, 0].tolist() == [0, 2, 4]
    assert found.rows.tolist() == [0, 2, 4]
    assert set(found.problems) == {1, 3}
    assert found.kept is None


def test_progress_counts_headers_and_pictures(monkeypatch):
    monkeypatch.setattr(readable, "AT_ONCE", 2)
    file, told = png(Image.new("L", (2, 2))), []
    readable_pictures([lambda: io.BytesIO(file)] * 3, progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 6), (3, 6), (5, 6), (6, 6)]


def test_threads_are_never_far_ahead_of_what_is_written():
    started, pool = [], ThreadPoolExecutor(2)
    with pool:
        parts = in_order(pool, lambda part: started.append(part) or part, [[i] for i in range(100)], 4)
        assert [next(parts), next(parts)] == [[0], [1]]
        time.sleep(0.05)
        assert len(started) <= 6
        assert list(parts) == [[i] for i in range(2, 100)]
