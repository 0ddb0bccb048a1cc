import io

import numpy as np
import pytest
import torch
from PIL import Image

from augtree.report import fonts
from augtree.report.fonts import drawable
from augtree.report.sheet import Row, draw_sheet


@pytest.fixture
def one_font(monkeypatch):
    """A machine with Pillow's own font alone."""
    monkeypatch.setattr(fonts, "FONTS", ())


def sheet(name):
    picture = torch.zeros(1, 8, 8, dtype=torch.uint8)
    image = Image.open(io.BytesIO(draw_sheet("Names", [Row(name, picture, picture[None], [(name,)])])))
    return np.asarray(image.convert("L"))


def test_a_font_that_has_all_letters_is_taken():
    names = [drawable(text, 11)[0].getname() for text in ("cat", "кошка")]
    if names[0] == names[1]:
        pytest.skip("no other font on this machine")
    assert [drawable(text, 11)[1] for text in ("cat", "кошка", "Ωμέγα cat")] == ["cat", "кошка", "Ωμέγα cat"]
    assert not np.array_equal(sheet("кошка"), sheet("мышка"))


@pytest.mark.usefixtures("one_font")
def test_without_one_letters_are_escaped():
    assert drawable("a кот", 11)[1] == r"a \u043a\u043e\u0442"
    assert drawable("cat, dog", 11)[1] == "cat, dog"
    assert not np.array_equal(sheet("кот"), sheet("кит"))  # and not two rows of boxes


def test_what_breaks_a_line_is_escaped():
    assert drawable("a\nb\x1b", 11)[1] == r"a\nb\x1b"
    assert np.array_equal(sheet("a\nb"), sheet(r"a\nb"))
