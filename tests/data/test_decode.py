import io

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.data.decode import read_pictures
from augtree.errors import ArgumentError

RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


def png(image, **options):
    return packed(image, "PNG", **options)


def packed(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(*files, size=None):
    samples, notes, problems = read_pictures([lambda file=file: io.BytesIO(file) for file in files], size)
    return samples, notes, problems


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
    assert "16-bit values are divided by 257" in notes
    bits = Image.fromarray(np.array([[True, False]]))
    assert read(png(bits))[0].tolist() == [[[[255, 0]]]]


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
    _, _, problems = read_pictures([*(lambda file=file: io.BytesIO(file) for file in files), missing])
    assert set(problems) == {1, 2, 3, 4, 5}
    assert problems[1] == "is no picture that Pillow knows"
    assert problems[2].startswith("cannot be read (")
    assert problems[3] == "cannot be read (must have whole values, got floats)"
    assert problems[4] == "cannot be read (16-bit values must be from 0 to 65535, got 70000 to 70000)"
    assert problems[5] == "there is no such file"


def test_where_nothing_can_be_read():
    samples, notes, problems = read(b"x", b"y")
    assert (len(samples), notes, set(problems)) == (0, (), {0, 1})
