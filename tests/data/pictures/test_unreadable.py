from pathlib import Path

import numpy as np
import pytest

from augtree.data.pictures.unreadable import check_left_out, note_for
from augtree.errors import DataError

NAMES = [f"{i}.png" for i in range(8)]
LABELS = np.array([0, 1, 0, 1, 0, 1, 0, 1])
SPLIT = np.array([0, 0, 0, 0, 1, 1, 2, 2], np.int8)
GROUPS = np.array([0, 0, 0, 0, 0, 0, 0, 1])


def check(*broken, labels=LABELS, classes=("a", "b"), groups=GROUPS):
    check_left_out("here", NAMES, dict.fromkeys(broken, "gone"), labels, classes, SPLIT, groups, ("g", "h"))


@pytest.mark.parametrize(
    ("broken", "lost"),
    [
        ((4, 5), "split val"),
        ((7,), "group h"),
        ((6, 7), "split test, group h"),
        ((1, 3), "training samples of b"),
        ((0, 2, 4, 5), "split val, training samples of a"),
    ],
)
def test_what_would_lose_all(broken, lost):
    message = f"here: every split, group and class must keep readable pictures, but {lost} lost all; "
    with pytest.raises(DataError) as caught:
        check(*broken)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{message}{len(broken)} of 8 are unreadable:"
    assert lines[1] == f"  {broken[0]}.png: gone"


def test_half_may_be_unreadable_and_no_more():
    check(0, 1, 4, 6, groups=GROUPS * 0)
    rule = "here: at least half of the pictures must be readable"
    with pytest.raises(DataError, match=f"{rule}; 5 of 8 are unreadable:"):
        check(0, 1, 2, 4, 6, groups=GROUPS * 0)


def test_a_class_that_is_not_trained_on_cannot_be_lost():
    check(4, labels=np.array([0, 0, 0, 1, 2, 1, 0, 1]), classes=("a", "b", "only in val"))


def test_several_labels():
    labels = np.zeros((8, 2), np.uint8)
    labels[[0, 2], 0], labels[:, 1] = 1, 1
    check(0, labels=labels)
    with pytest.raises(DataError, match="but training samples of a lost all"):
        check(0, 2, labels=labels)


def test_the_note():
    assert note_for(NAMES, {}, None) == ()
    assert note_for(NAMES, {3: "gone"}, Path("x")) == (
        "1 of 8 pictures are unreadable and left out: 3.png: gone; all are listed in x/broken.csv",
    )
    (many,) = note_for(NAMES, dict.fromkeys(range(7), "gone"), None)
    assert many.endswith("4.png: gone; and 2 more")
    assert note_for(["a\nb"], {0: "gone"}, None)[0].endswith(r"left out: a\nb: gone")
