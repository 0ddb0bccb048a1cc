import math

import pytest

from augtree import errors
from augtree.errors import (
    ArgumentError,
    CheckError,
    DataError,
    MissingExtraError,
    PolicyFileError,
    nearest,
    need,
    number,
    printable,
    shown,
    whole_number,
)


def test_everything_raised_on_purpose_is_an_augtree_error():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) == 13
    assert all(issubclass(kind, errors.AugtreeError) for kind in kinds)


def test_a_message_has_the_rule_the_value_and_the_place():
    assert str(ArgumentError("p", "must lie in [0, 1]", 1.4)) == "p must lie in [0, 1], got 1.4"
    error = PolicyFileError("tree.json", "/nodes/3/p", "p must lie in [0, 1], got 1.4")
    assert str(error) == "tree.json: p must lie in [0, 1], got 1.4 at /nodes/3/p"
    assert str(PolicyFileError("tree.json", "", "a policy must be JSON")) == "tree.json: a policy must be JSON"
    assert str(ArgumentError("p", "is missing")) == "p is missing"


def test_places_are_exact_and_shown_short():
    error = PolicyFileError("t.json", "/a~1b/\x1b[31m" + "x" * 1000, "no")
    assert error.pointer.startswith("/a~1b/\x1b")
    assert "\x1b" not in str(error)
    assert len(str(error)) < 300


def test_a_guess_at_what_was_meant():
    assert nearest("Rotat", ["Rotate", "Color"]) == " (did you mean Rotate?)"
    assert nearest("xyz", ["Rotate", "Color"]) == ""


def test_values_are_shown_short_and_printable():
    assert shown("\ud800") == "'\\ud800'"
    assert shown("a\nb\x1b[31m") == "'a\\nb\\x1b[31m'"
    assert shown("Skizze ü") == "'Skizze ü'"
    assert shown("x" * 1000).startswith("'xxx")
    assert len(shown("x" * 1000)) < 100


def test_all_failures_of_a_check_are_listed():
    text = str(CheckError("Fog", {"same key, same bytes": "two calls differ", "shape rule": "it shrank"}))
    assert text == "Fog fails 2 checks:\n  same key, same bytes: two calls differ\n  shape rule: it shrank"


def test_a_missing_package_names_its_extra():
    with pytest.raises(MissingExtraError, match=r'pip install "augtree\[graph\]"'):
        need("no_such_package", "graph")


@pytest.mark.parametrize("value", [True, "0.5", None, math.nan, math.inf, -0.1, 1.1, 10**400])
def test_numbers_outside_their_range_are_refused(value):
    with pytest.raises(ArgumentError, match=r"p must be a number in \[0, 1\]"):
        number("p", value, 0, 1)


def test_an_open_end_is_outside():
    assert number("m", 1, 0, 1, open_low=True) == 1.0
    with pytest.raises(ArgumentError, match=r"\(0, 1\]"):
        number("m", 0, 0, 1, open_low=True)


@pytest.mark.parametrize("value", [True, 1.0, "1", 0, 17])
def test_whole_numbers_are_whole(value):
    with pytest.raises(ArgumentError, match="n must be a whole number from 1 to 16"):
        whole_number("n", value, 1, 16)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\nb\r\x1b[2J\x9b", r"a\nb\r\x1b[2J\x9b"), ("\u202ecat\ud800", r"\u202ecat\ud800"), ("Füchse 猫\u3000", None)],
)
def test_text_that_can_be_printed(text, expected):
    assert printable(text) == (text if expected is None else expected)


def test_errors_cannot_move_the_cursor():
    evil = "cat\x1b[2J"
    for error in (DataError(evil), ArgumentError(evil, evil), PolicyFileError("a", "", evil), CheckError(evil, {})):
        assert "\x1b" not in str(error)
        assert r"cat\x1b[2J" in str(error)
    assert str(DataError("two\nlines")) == "two\nlines"
    assert str(ArgumentError("task", "must be one of a\nb")) == r"task must be one of a\nb"


def test_a_message_has_a_bounded_length():
    long = "x" * 100_000
    for error in (DataError(long), ArgumentError(long, "must be short"), PolicyFileError("a.json", "", long)):
        assert len(str(error)) < 9000
        assert str(error).endswith("characters)")
