"""Broken and hostile policy files: always a PolicyFileError with its place, within a second, and no code run."""

import copy
import json
import os
import pickle
import random
import time

import pytest

import augtree as at
from augtree.errors import PolicyFileError
from augtree.policies.codec import LARGEST_FILE

TREE = {
    "augtree": 1,
    "kind": "tree",
    "nodes": {
        "1": {"transform": {"name": "Rotate", "magnitude": 0.6, "fill": 128}, "p": 0.7},
        "2": {"transform": {"name": "Color", "magnitude": 0.4}, "p": 0.3},
        "3": {
            "transform": {
                "name": "Chain",
                "steps": [
                    {"transform": {"name": "Flip", "p": 0.5}, "p": 1.0},
                    {"transform": {"name": "RandomCrop", "scale": [0.1, 1.0], "ratio": [0.75, 1.5]}, "p": 0.5},
                ],
            },
            "p": 0.7,
        },
        "6": {
            "transform": {
                "name": "Tree",
                "nodes": {"1": {"transform": {"name": "Invert", "magnitude": 1.0}, "p": 1.0}},
            },
            "p": 0.2,
        },
    },
}
FOREST = {
    "augtree": 1,
    "kind": "forest",
    "groups": {"photo": {"weight": 0.4, "nodes": TREE["nodes"]}, "a/b~c": {"weight": 0.6, "nodes": {}}},
}
TRANSFORM = {"augtree": 1, "kind": "transform", "transform": TREE["nodes"]["3"]["transform"]}
ONE_OF = {
    "augtree": 1,
    "kind": "transform",
    "transform": {
        "name": "OneOf",
        "choices": [
            {"transform": {"name": "Flip", "p": 0.5}, "weight": 3},
            {"transform": {"name": "Chain", "steps": [{"transform": {"name": "Equalize"}, "p": 1.0}]}, "weight": 0.5},
        ],
    },
}
GONE = object()


def changed(document, pointer, value):
    """The document with one value replaced, or taken away."""
    out = copy.deepcopy(document)
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    place = out
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    key = int(last) if isinstance(place, list) else last
    if value is GONE:
        del place[key]
    else:
        place[key] = value
    return json.dumps(out)


def refused(path, pointer=None, saying=None):
    begin = time.process_time()  # of this process: others may keep the machine busy
    with pytest.raises(PolicyFileError, match=saying) as caught:
        at.load(path)
    assert time.process_time() - begin < 5
    error = caught.value
    assert error.path == path
    if pointer is not None:
        assert error.pointer == pointer
    else:
        assert error.pointer == "" or error.pointer.startswith("/")
    assert len(str(error)) < 700 + len(str(path))
    assert str(error).isprintable()
    str(error).encode()
    return error


WRONG = [None, True, "x", [], {}, -1, 2, 1e999, -1e999, float("nan"), 10**40]
"""What can stand nowhere that a number from 0 to 1 is wanted."""
AT = object()
"""The error is at the place that was changed."""


def at_place(document, place, values, pointer=AT):
    return [(document, place, value, place if pointer is AT else pointer) for value in values]


NODE = TREE["nodes"]["2"]
DEEP = "/nodes/3/transform/steps/1/transform"
BAD_VALUES = [
    *at_place(TREE, "/nodes/1/p", WRONG),
    *at_place(TREE, "/nodes/3/transform/steps/1/p", WRONG),
    *at_place(TREE, "/nodes/1/transform/magnitude", [value for value in WRONG if value != {}] + [0]),
    *at_place(TREE, "/nodes/1/transform/magnitude", [{}], "/nodes/1/transform/magnitude/name"),
    *at_place(TREE, "/nodes/1/transform/fill", (-1, 256, 1.5, "0", None, True)),
    *at_place(FOREST, "/groups/photo/weight", WRONG),
    *at_place(TREE, "/augtree", (0, 2, "1", None, True, [1], 1.5, 10**30)),
    *at_place(TREE, "/kind", ("shrub", None, 1, ["tree"], "Tree", "")),
    *at_place(TREE, "/nodes", ([], None, "1", 7)),
    *at_place(TREE, "/nodes/2", (None, 3, "Rotate", [], {})),
    *at_place(TREE, "/nodes/2/transform", (None, "Color", 1, [])),
    *at_place(TREE, "/nodes/2/transform/name", (None, 1, "Colour", "", "os.system")),
    *at_place(TREE, "/nodes/2/transform/strength", [0.5]),
    *at_place(TREE, "/nodes/2/transform/a~1b~0c", [0.5]),
    *at_place(TREE, "/nodes/2/q", [0.5]),
    *at_place(TREE, "/nodes/2/p", [GONE], "/nodes/2"),
    *at_place(TREE, "/nodes/2/transform", [GONE], "/nodes/2"),
    *at_place(TREE, "/nodes/2/transform/name", [GONE]),
    *at_place(TREE, "/nodes/2/transform/magnitude", [GONE]),
    *at_place(TREE, "/augtree", [GONE], ""),
    *at_place(TREE, "/kind", [GONE]),
    *at_place(TREE, "/nodes", [GONE], ""),
    *at_place(TREE, "/comment", ["hello"]),
    *at_place(TREE, "/nodes/2/p", [0.3 + 2e-9]),  # siblings must sum to 1
    *at_place(TREE, "/nodes/3/p", [0.6], "/nodes/2/p"),
    *at_place(TREE, "/nodes/1", [GONE], "/nodes/2"),  # orphans
    *at_place(TREE, "/nodes/3", [GONE], "/nodes/6"),
    *at_place(TREE, "/nodes/11", [NODE]),
    *at_place(TREE, "/nodes/3/transform", [{"name": "Identity"}], "/nodes/6"),  # a child under Identity
    *at_place(TREE, "/nodes/1/transform", [{"name": "Identity"}], "/nodes/2"),
    *at_place(TREE, "/nodes/6/transform/nodes/1/p", [3]),
    *at_place(TREE, "/nodes/6/transform/nodes/2", [NODE | {"p": 7}], "/nodes/6/transform/nodes/2/p"),
    *(
        (TREE, f"/nodes/{key}", NODE, f"/nodes/{key}")
        for key in ("0", "-1", "01", "1.0", "x", "", "1e3", "９", "1024", "99999999", "1" * 400)
    ),
    *at_place(TREE, "/nodes/3/transform/steps", ("Flip", None, {}, 3)),
    *at_place(TREE, "/nodes/3/transform/steps/0", ("Flip", None, [])),
    *at_place(TREE, "/nodes/3/transform/steps/0/transform/p", [2]),
    *at_place(TREE, "/nodes/3/transform/steps", [[NODE] * 65]),
    *at_place(TREE, f"{DEEP}/scale", ([], [0.1], [0.9, 0.1], "ab", None, [0.1, 0.2, 0.3])),
    *at_place(TREE, f"{DEEP}/scale/1", ("x", 2, None, True)),
    *at_place(TREE, f"{DEEP}/scale", [{"a": 1}], f"{DEEP}/scale/name"),
    *at_place(TREE, "/nodes/2/transform", [{"name": "Normalize", "mean": [0.5], "std": [0.5]}]),
    *at_place(TREE, "/nodes/2/transform", [{"name": "DropNodes", "magnitude": 0.2}]),
    *at_place(TREE, "/nodes/2/transform", [{"name": "RandAugment", "n": 10**9}], "/nodes/2/transform/n"),
    *at_place(TREE, "/nodes/2/transform", [{"name": "AutoAugment", "policy": "../x"}], "/nodes/2/transform/policy"),
    *at_place(TREE, "/nodes/2/transform", [{"name": "AutoAugment", "policy": []}], "/nodes/2/transform/policy"),
    *at_place(TREE, "/nodes/2/transform", [{"name": "__class__"}], "/nodes/2/transform/name"),
    *at_place(TREE, "/nodes/2/transform", [{"name": "Wrapped", "function": "os.system"}], "/nodes/2/transform/name"),
    *at_place(FOREST, "/groups", ({}, [], None)),
    *at_place(FOREST, "/groups", [GONE], ""),
    *at_place(FOREST, "/groups/photo", (None, [], 3)),
    *at_place(FOREST, "/groups/photo/weight", [GONE], "/groups/photo"),
    *at_place(FOREST, "/groups/photo/nodes", [GONE], "/groups/photo"),
    *at_place(FOREST, "/groups/photo/weight", [0.5], "/groups"),
    *at_place(FOREST, "/groups/photo/nodes/1/p", [2]),
    *at_place(FOREST, "/groups/a~1b~0c/nodes", [{"1": 3}], "/groups/a~1b~0c/nodes/1"),
    *at_place(FOREST, "/groups/a~1b~0c/weight", ["x"]),
    *at_place(FOREST, "/groups/Skizze ü", [{"weight": 2, "nodes": {}}], "/groups/Skizze ü/weight"),
    *at_place(FOREST, "/groups/", [{"weight": 0, "nodes": {}}], "/groups"),
    *at_place(FOREST, "/groups/photo/extra", [1]),
    *at_place(FOREST, "/nodes", [{}]),
    *at_place(ONE_OF, "/transform/choices/1/weight", [value for value in WRONG if value != 2] + [0, 2e9]),
    *at_place(ONE_OF, "/transform/choices", ("Flip", None, {}, 3, [], [ONE_OF["transform"]["choices"][0]] * 257)),
    *at_place(ONE_OF, "/transform/choices", [GONE], "/transform"),
    *at_place(ONE_OF, "/transform/choices/0", ("Flip", None, [], {})),
    *at_place(ONE_OF, "/transform/choices/0/weight", [GONE], "/transform/choices/0"),
    *at_place(ONE_OF, "/transform/choices/0/p", [0.5]),
    *at_place(ONE_OF, "/transform/choices/0/transform/p", [2]),
    *at_place(ONE_OF, "/transform/choices/0/transform", [{"name": "Normalize"}], "/transform/choices/0"),
    *at_place(
        ONE_OF, "/transform/choices/0/transform", [{"name": "DropNodes", "magnitude": 0.2}], "/transform/choices"
    ),
    *at_place(ONE_OF, "/transform/choices/0/transform/name", ["OneOff"]),
    *at_place(ONE_OF, "/transform/steps", [[]]),
    *at_place(TRANSFORM, "/transform", [None]),
    *at_place(TRANSFORM, "/transform", [GONE], ""),
    *at_place(TRANSFORM, "/transform/name", ["Fog"]),
    *at_place(TRANSFORM, "/other", [1]),
]


@pytest.mark.parametrize(("document", "place", "value", "pointer"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_place(tmp_path, document, place, value, pointer):
    path = tmp_path / "policy.json"
    path.write_text(changed(document, place, value))
    refused(path, pointer)


def test_the_documents_are_good_before_they_are_changed(tmp_path):
    for document in (TREE, FOREST, TRANSFORM, ONE_OF):
        (tmp_path / "good.json").write_text(json.dumps(document))
        at.load(tmp_path / "good.json")


def test_siblings_may_miss_1_by_a_rounding_error(tmp_path):
    (tmp_path / "t.json").write_text(changed(TREE, "/nodes/2/p", 0.3 + 5e-10))
    assert at.load(tmp_path / "t.json")[2].p == 0.3 + 5e-10


GOOD = '{"augtree": 1, "kind": "tree", "nodes": {}%s}'


class Canary:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch canary-was-here",)


TEXTS = {
    "empty": (b"", "must be JSON"),
    "white space": (b" \n\t ", "must be JSON"),
    "not JSON": (b"Rotate(0.6)", "line 1, column 1"),
    "Python": (b"__import__('os').system('touch canary-was-here')", "must be JSON"),
    "YAML": (b"augtree: 1\nkind: tree\n", "must be JSON"),
    "a number": (b"1", "must be a JSON object, got 1"),
    "a string": (b'"tree"', "must be a JSON object"),
    "null": (b"null", "must be a JSON object, got None"),
    "a list": (b"[1, 2]", "must be a JSON object"),
    "two documents": (b'{"augtree": 1} {"augtree": 1}', "Extra data"),
    "a trailing comma": (b'{"augtree": 1,}', "line 1, column 1[45]"),
    "a comment": (b'{"augtree": 1} // tree', "Extra data"),
    "single quotes": (b"{'augtree': 1}", "must be JSON"),
    "a nul byte": (b'{"augtree": 1, "kind": "tr\x00ee"}', "must be JSON"),
    "not UTF-8": (b'{"augtree": 1, "kind": "\xff\xfe"}', "text in UTF-8, got byte 0xff at offset 24"),
    "UTF-16": ('{"augtree": 1}'.encode("utf-16"), "text in UTF-8"),
    "Latin-1": ('{"augtree": 1, "kind": "B\xe4ume"}'.encode("latin-1"), "text in UTF-8"),
    "a pickle": (pickle.dumps(Canary()), "text in UTF-8"),
    "a pickle in ASCII": (pickle.dumps(Canary(), protocol=0), "must be JSON"),
    "a zip": (b"PK\x03\x04" + bytes(200), "must be JSON"),
    "a PNG": (b"\x89PNG\r\n\x1a\n" + bytes(64), "text in UTF-8"),
    # Each of these is a good file but for the one thing.
    "NaN": (GOOD % ', "x": NaN', "a number must be finite, got nan at /x"),
    "Infinity": (GOOD % ', "x": [1, -Infinity]', "a number must be finite, got -inf at /x/1"),
    "1e999": (GOOD % ', "x": 1e999', "a number must be finite, got inf at /x"),
    "a doubled key": (GOOD % ', "kind": "tree"', "a key must not stand twice in an object at /kind"),
    "a doubled version": (GOOD % ', "augtree": 1', "must not stand twice in an object at /augtree"),
    "deep lists": (GOOD % (', "x": ' + "[" * 70 + "]" * 70), "a policy may be nested 64 deep"),
    "deep objects": (GOOD % (', "x": ' + '{"a": ' * 70 + "1" + "}" * 70), "a policy may be nested 64 deep"),
    "very deep lists": ("[" * 100_000 + "]" * 100_000, "nested"),
    "very deep objects": ('{"a":' * 40_000 + "1" + "}" * 40_000, "nested"),
    "an endless number": (GOOD % (', "x": ' + "9" * 100_000), "must be JSON that can be read"),
    "an endless string": (GOOD % (', "x": "' + "x" * 200_000 + '"'), "nothing but nodes"),
    "an endless key": (GOOD % (', "' + "x" * 200_000 + '": 1'), "nothing but nodes"),
    "a key with a terminal's escape": (GOOD % ', "a\\u001b[31m\\nb": 1', r"nothing but nodes, got 'a\\x1b\[31m\\nb'"),
    "a lone surrogate as a key": (GOOD % ', "\\ud800": 1', "text must be valid Unicode"),
    "a lone surrogate as a value": (GOOD % ', "x": "\\udfff"', "text must be valid Unicode, got '.*' at /x"),
    "too large": (GOOD % (" " * LARGEST_FILE), "a policy has at most 262144 bytes"),
    "a long key over many values": (
        GOOD % (', "' + "ü" * 60_000 + '": [' + "0," * 60_000 + "0]"),
        "nothing but nodes",
    ),
    "steps without end": (
        '{"augtree": 1, "kind": "transform", "transform": {"name": "Chain", "steps": [%s[]]}}' % ("[]," * 80_000),
        "an object with transform and p, got .* at /transform/steps/0",
    ),
    "many deep lists": (GOOD % (', "x": [%s 1]' % (("[" * 60 + "]" * 60 + ",") * 2000)), "nothing but nodes"),
    "trees in trees in trees": (
        '{"augtree": 1, "kind": "transform", "transform": '
        + '{"name": "Tree", "nodes": {"1": {"p": 1, "transform": ' * 20
        + '{"name": "Nothing"}'
        + "}}}" * 20
        + "}",
        "'Nothing' is no built-in transform",
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_is_no_policy_is_refused(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    content, saying = TEXTS[what]
    path = tmp_path / "policy.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(path, saying=saying)
    assert [file.name for file in tmp_path.iterdir()] == ["policy.json"]  # no canary


def test_a_good_file_is_good(tmp_path):
    (tmp_path / "t.json").write_text(GOOD % "")
    assert at.load(tmp_path / "t.json") == at.Tree()


def test_trees_in_trees_are_read_quickly(tmp_path):
    """Properties of nested trees must not be worked out twice at each level."""
    inner = '{"name": "Invert"}'
    for _ in range(20):
        inner = '{"name": "Tree", "nodes": {"1": {"p": 1, "transform": %s}}}' % inner
    (tmp_path / "t.json").write_text('{"augtree": 1, "kind": "transform", "transform": %s}' % inner)
    begin = time.process_time()  # of this process: others may keep the machine busy
    assert at.load(tmp_path / "t.json").domain == "image"
    assert time.process_time() - begin < 5


def test_what_was_meant_is_guessed(tmp_path):
    (tmp_path / "t.json").write_text(changed(TREE, "/nodes/2/transform/name", "Colour"))
    assert "'Colour' is no built-in transform (did you mean Color?)" in str(refused(tmp_path / "t.json"))


def test_doubled_keys_are_named(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"augtree": 1, "kind": "tree", "nodes": {"1": {}, "1": {}}}')
    assert "must not stand twice" in str(refused(path, "/nodes/1"))


@pytest.mark.parametrize("document", [TREE, FOREST, TRANSFORM], ids=["tree", "forest", "transform"])
def test_truncated_files_are_refused(tmp_path, document):
    text = json.dumps(document)
    for end in range(0, len(text), 11):
        path = tmp_path / f"{end}.json"
        path.write_text(text[:end])
        assert refused(path, "").problem


def test_files_with_flipped_bytes_are_refused_or_read(tmp_path):
    """Two thousand files with a byte changed: a policy, or a PolicyFileError, and nothing else."""
    rng = random.Random(0)
    text = json.dumps(TREE).encode()
    outcomes = {True: 0, False: 0}
    for number in range(2000):
        path = tmp_path / f"{number}.json"  # some disks wait where a file is written over
        spoilt = bytearray(text)
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        path.write_bytes(bytes(spoilt))
        try:
            read = at.load(path)
        except PolicyFileError:
            outcomes[False] += 1
        else:
            assert isinstance(read, at.Tree)
            outcomes[True] += 1
    assert outcomes[False] > 500


def test_things_that_are_no_files_are_refused(tmp_path):
    refused(tmp_path, "")
    refused(tmp_path / "missing.json", "")
    refused(tmp_path / ("x" * 300), "")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "")  # reading it would wait for ever
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop", "")


def test_there_are_at_least_150_cases():
    assert len(BAD_VALUES) + len(TEXTS) >= 150
