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


def refused(path, pointer=None):
    begin = time.perf_counter()
    with pytest.raises(PolicyFileError) as caught:
        at.load(path)
    assert time.perf_counter() - begin < 1
    error = caught.value
    assert error.path == path
    if pointer is not None:
        assert error.pointer == pointer
    else:
        assert error.pointer == "" or error.pointer.startswith("/")
    assert len(str(error)) < 1000
    str(error).encode()
    return error


WRONG = [None, True, "x", [], {}, -1, 2, 1e999, -1e999, float("nan"), 10**40]
"""What can stand nowhere that a number from 0 to 1 is wanted."""
BAD_VALUES = [
    *[(TREE, "/nodes/1/p", value, "/nodes/1/p") for value in WRONG],
    *[(TREE, "/nodes/3/transform/steps/1/p", value, "/nodes/3/transform/steps/1/p") for value in WRONG],
    *[(TREE, "/nodes/1/transform/magnitude", value, "/nodes/1/transform/magnitude") for value in [*WRONG, 0]],
    *[
        (TREE, "/nodes/1/transform/fill", value, "/nodes/1/transform/fill")
        for value in (-1, 256, 1.5, "0", None, True)
    ],
    *[(FOREST, "/groups/photo/weight", value, "/groups/photo/weight") for value in WRONG],
    *[(TREE, "/augtree", value, "/augtree") for value in (0, 2, "1", None, True, [1], 1.5, 10**30)],
    *[(TREE, "/kind", value, "/kind") for value in ("shrub", None, 1, ["tree"], "Tree", "")],
    *[(TREE, "/nodes", value, "") for value in ([], None, "1", 7)],
    *[(TREE, "/nodes/2", value, "/nodes/2") for value in (None, 3, "Rotate", [], {})],
    *[(TREE, "/nodes/2/transform", value, "/nodes/2/transform") for value in (None, "Color", 1, [])],
    *[
        (TREE, "/nodes/2/transform/name", value, "/nodes/2/transform/name")
        for value in (None, 1, "Colour", "", "os.system")
    ],
    (TREE, "/nodes/2/transform/strength", 0.5, "/nodes/2/transform/strength"),
    (TREE, "/nodes/2/q", 0.5, "/nodes/2"),
    (TREE, "/nodes/2/p", GONE, "/nodes/2"),
    (TREE, "/nodes/2/transform", GONE, "/nodes/2"),
    (TREE, "/nodes/2/transform/name", GONE, "/nodes/2/transform/name"),
    (TREE, "/nodes/2/transform/magnitude", GONE, "/nodes/2/transform"),
    (TREE, "/augtree", GONE, ""),
    (TREE, "/kind", GONE, "/kind"),
    (TREE, "/nodes", GONE, ""),
    (TREE, "/comment", "hello", "/comment"),
    (TREE, "/nodes/2/p", 0.3 + 2e-9, "/nodes/2/p"),  # siblings must sum to 1
    (TREE, "/nodes/3/p", 0.6, "/nodes/2/p"),
    (TREE, "/nodes/1", GONE, "/nodes/2"),  # orphans
    (TREE, "/nodes/3", GONE, "/nodes/6"),
    (TREE, "/nodes/11", TREE["nodes"]["2"], "/nodes/11"),
    (TREE, "/nodes/3/transform", {"name": "Identity"}, "/nodes/6"),  # a child under Identity
    (TREE, "/nodes/1/transform", {"name": "Identity"}, "/nodes/2"),
    (TREE, "/nodes/6/transform/nodes/1/p", 3, "/nodes/6/transform/nodes/1/p"),
    (TREE, "/nodes/6/transform/nodes/2", TREE["nodes"]["2"] | {"p": 7}, "/nodes/6/transform/nodes/2/p"),
    *[
        (TREE, f"/nodes/{key}", TREE["nodes"]["2"], "/nodes")
        for key in ("0", "-1", "01", "1.0", "x", "", "1e3", "９")
    ],
    *[(TREE, f"/nodes/{key}", TREE["nodes"]["2"], "/nodes") for key in ("1024", "99999999", "1" * 400)],
    (TREE, "/nodes/3/transform/steps", "Flip", "/nodes/3/transform"),
    (TREE, "/nodes/3/transform/steps", None, "/nodes/3/transform"),
    (TREE, "/nodes/3/transform/steps/0", "Flip", "/nodes/3/transform/steps/0"),
    (TREE, "/nodes/3/transform/steps/0/transform/p", 2, "/nodes/3/transform/steps/0/transform/p"),
    (TREE, "/nodes/3/transform/steps", [TREE["nodes"]["2"]] * 65, "/nodes/3/transform/steps"),
    *[
        (TREE, "/nodes/3/transform/steps/1/transform/scale", value, "/nodes/3/transform/steps/1/transform/scale")
        for value in ([], [0.1], [0.9, 0.1], "ab", None, [0.1, 0.2, 0.3], [0, 2], {"a": 1})
    ],
    (TREE, "/nodes/2/transform", {"name": "Normalize", "mean": [0.5], "deviation": [0.5]}, "/nodes/2/transform"),
    (TREE, "/nodes/2/transform", {"name": "DropNodes", "magnitude": 0.2}, "/nodes/2/transform"),
    (TREE, "/nodes/2/transform", {"name": "RandAugment", "n": 10**9, "m": 3, "fill": 0}, "/nodes/2/transform/n"),
    (
        TREE,
        "/nodes/2/transform",
        {"name": "AutoAugment", "policy": "../../x", "fill": 0},
        "/nodes/2/transform/policy",
    ),
    (TREE, "/nodes/2/transform", {"name": "__class__"}, "/nodes/2/transform/name"),
    (TREE, "/nodes/2/transform", {"name": "Wrapped", "function": "os.system"}, "/nodes/2/transform/name"),
    (FOREST, "/groups", {}, "/groups"),
    (FOREST, "/groups", [], "/groups"),
    (FOREST, "/groups", GONE, ""),
    (FOREST, "/groups/photo", None, "/groups/photo"),
    (FOREST, "/groups/photo/weight", GONE, "/groups/photo"),
    (FOREST, "/groups/photo/nodes", GONE, "/groups/photo"),
    (FOREST, "/groups/photo/weight", 0.5, "/groups"),
    (FOREST, "/groups/photo/nodes/1/p", 2, "/groups/photo/nodes/1/p"),
    (FOREST, "/groups/a~1b~0c/nodes", {"1": 3}, "/groups/a~1b~0c/nodes/1"),
    (FOREST, "/groups/a~1b~0c/weight", "x", "/groups/a~1b~0c/weight"),
    (FOREST, "/groups/photo/extra", 1, "/groups/photo/extra"),
    (FOREST, "/nodes", {}, "/nodes"),
    (TRANSFORM, "/transform", None, "/transform"),
    (TRANSFORM, "/transform", GONE, ""),
    (TRANSFORM, "/transform/name", "Fog", "/transform/name"),
    (TRANSFORM, "/other", 1, "/other"),
]


@pytest.mark.parametrize(("document", "place", "value", "pointer"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_place(tmp_path, document, place, value, pointer):
    path = tmp_path / "policy.json"
    path.write_text(changed(document, place, value))
    refused(path, pointer)


def test_the_documents_are_good_before_they_are_changed(tmp_path):
    for document in (TREE, FOREST, TRANSFORM):
        (tmp_path / "good.json").write_text(json.dumps(document))
        at.load(tmp_path / "good.json")


def test_siblings_may_miss_1_by_a_rounding_error(tmp_path):
    (tmp_path / "t.json").write_text(changed(TREE, "/nodes/2/p", 0.3 + 5e-10))
    assert at.load(tmp_path / "t.json")[2].p == 0.3 + 5e-10


TEXTS = {
    "empty": b"",
    "white space": b" \n\t ",
    "not JSON": b"Rotate(0.6)",
    "Python": b"__import__('os').system('true')",
    "YAML": b"augtree: 1\nkind: tree\n",
    "a number": b"1",
    "a string": b'"tree"',
    "null": b"null",
    "a list": b"[1, 2]",
    "two documents": b'{"augtree": 1} {"augtree": 1}',
    "a trailing comma": b'{"augtree": 1,}',
    "a comment": b'{"augtree": 1} // tree',
    "single quotes": b"{'augtree': 1}",
    "a nul byte": b'{"augtree": 1, "kind": "tr\x00ee"}',
    "not UTF-8": b'{"augtree": 1, "kind": "\xff\xfe"}',
    "UTF-16": '{"augtree": 1}'.encode("utf-16"),
    "Latin-1": '{"augtree": 1, "kind": "B\xe4ume"}'.encode("latin-1"),
    "a pickle": pickle.dumps(TREE),
    "a zip": b"PK\x03\x04" + bytes(200),
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(64),
    "NaN": b'{"augtree": NaN}',
    "Infinity": b'{"augtree": 1, "kind": "tree", "nodes": {"1": {"transform": {"name": "Invert"}, "p": Infinity}}}',
    "1e999": b'{"augtree": 1e999, "kind": "tree", "nodes": {}}',
    "a doubled key": b'{"augtree": 1, "kind": "tree", "kind": "tree", "nodes": {}}',
    "a doubled node": b'{"augtree": 1, "kind": "tree", "nodes": {"1": {}, "1": {}}}',
    "a doubled version": b'{"augtree": 2, "augtree": 1, "kind": "tree", "nodes": {}}',
    "deep lists": b'{"augtree": 1, "kind": ' + b"[" * 200 + b"]" * 200 + b"}",
    "very deep lists": b"[" * 100_000 + b"]" * 100_000,
    "very deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "an endless number": b'{"augtree": ' + b"9" * 100_000 + b"}",
    "an endless string": b'{"augtree": 1, "kind": "' + b"x" * 500_000 + b'"}',
    "a lone surrogate": b'{"augtree": 1, "kind": "tree", "nodes": {"\\ud800": 1}}',
    "a lone surrogate as a value": b'{"augtree": 1, "kind": "\\udfff"}',
    "too large": b'{"augtree": 1, "x": "' + b"x" * LARGEST_FILE + b'"}',
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_is_no_policy_is_refused(tmp_path, what):
    path = tmp_path / "policy.json"
    path.write_bytes(TEXTS[what])
    refused(path)


def test_doubled_keys_are_named(tmp_path):
    path = tmp_path / "policy.json"
    path.write_bytes(TEXTS["a doubled node"])
    assert "must not stand twice" in str(refused(path, "/nodes/1"))


@pytest.mark.parametrize("document", [TREE, FOREST, TRANSFORM], ids=["tree", "forest", "transform"])
def test_truncated_files_are_refused(tmp_path, document):
    text = json.dumps(document)
    path = tmp_path / "policy.json"
    for end in range(0, len(text), 11):
        path.write_text(text[:end])
        assert refused(path, "").problem


def test_files_with_flipped_bytes_are_refused_or_read(tmp_path):
    """Two thousand files with a byte changed: a policy, or a PolicyFileError, and nothing else."""
    rng = random.Random(0)
    text = json.dumps(TREE).encode()
    path = tmp_path / "policy.json"
    outcomes = {True: 0, False: 0}
    for _ in range(2000):
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
