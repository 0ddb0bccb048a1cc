"""Masks and boxes of pictures in memory."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augtree.data import from_arrays, group
from augtree.data.masks import Masks, centres, inside
from augtree.errors import ArgumentError, CheckError
from augtree.report.summary import summary, summary_lines
from augtree.testing import check_dataset

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (40, 3, 5, 6)).astype(np.uint8)
PIXELS = RNG.random((40, 5, 6)) < 0.3
PIXELS[3] = False
BOXES = np.array([[1, 0, 4, 2], [0, 0, 6, 5], [0, 0, 0, 0], [5, 4, 6, 5]] * 10)


def made(**more):
    return from_arrays(PICTURES, np.arange(40) % 2, groups=np.arange(40) // 2 % 2, **more)


@pytest.mark.parametrize(
    "given", [PIXELS, PIXELS.astype(np.uint8) * 255, torch.from_numpy(PIXELS), PIXELS.astype(np.int32) * -7]
)
def test_masks_are_what_was_given(given):
    masks = made(masks=given).masks
    assert masks[:].dtype == torch.bool
    assert np.array_equal(masks[:].numpy(), PIXELS)
    assert np.array_equal(masks[[7, 3]].numpy(), PIXELS[[7, 3]])
    assert masks.areas.tolist() == PIXELS.sum((1, 2)).tolist()
    assert masks.bits.nbytes == 40 * 4  # 30 pixels


def test_boxes_become_masks():
    masks = made(boxes=BOXES).masks[:]
    for mask, (x0, y0, x1, y1) in zip(masks, BOXES.tolist(), strict=True):
        for y, x in np.ndindex(5, 6):
            assert mask[y, x] == (x0 <= x < x1 and y0 <= y < y1)
    halves = made(boxes=np.array([[0.6, 0, 2.4, 5.0]] * 40)).masks[[0]][0]
    assert halves.any(0).tolist() == [False, True, False, False, False, False]  # by the middle of a pixel


def test_masks_go_with_their_samples():
    data = made(masks=PIXELS)
    rows = [9, 2, 30, 0]
    train_first = data.take([*data.indices("train")[:1], *rows])
    assert np.array_equal(train_first.masks[1:5].numpy(), PIXELS[rows])
    few = data.few(train=6, val=3)
    where = {PICTURES[i].tobytes(): i for i in range(40)}
    kept = [where[picture.numpy().tobytes()] for picture in few.samples]
    assert len(kept) < 40
    assert np.array_equal(few.masks[:].numpy(), PIXELS[kept])
    for same in (
        data.with_labels(5),
        group(data, lambda p: str(int(p[0, 0, 0]) % 2)),
        pickle.loads(pickle.dumps(data)),
    ):
        assert np.array_equal(same.masks[:].numpy(), PIXELS)


def test_the_fingerprint_has_the_masks_if_there_are_any():
    plain, masked = made(), made(masks=PIXELS)
    # as it was before data sets could have masks
    assert plain.fingerprint == "6bbabc5e61fe6d9db3952eb470368f831ebc793162206339003026cf1c5710b9"
    assert masked.fingerprint not in (plain.fingerprint, made(masks=~PIXELS).fingerprint)
    assert masked.fingerprint == made(masks=PIXELS * 3).fingerprint


def test_a_data_set_with_masks_passes_its_checks_and_says_how_many_there_are():
    data = made(masks=PIXELS, split=["train"] * 24 + ["val"] * 8 + ["test"] * 8)
    check_dataset(data, skip=["picklable"])
    assert summary(data)["masks"] == {"train": 23, "val": 8, "test": 8}
    assert "masks: train 23, val 8, test 8" in summary_lines(summary(data))
    assert summary(made())["masks"] is None
    assert not any("masks" in line for line in summary_lines(summary(made())))


def test_a_data_set_whose_masks_go_astray_does_not_pass_its_checks(monkeypatch):
    monkeypatch.setattr(Masks, "take", lambda self, rows: Masks(self.bits[rows][::-1].copy(), 5, 6))
    with pytest.raises(CheckError, match=r"take\(\) gives other masks"):
        check_dataset(made(masks=PIXELS), skip=["picklable"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"masks": PIXELS[:39]}, "masks must be as many as the samples, 40, got 39"),
        ({"masks": PIXELS[:, :4]}, "masks must be as large as the pictures, 6x5, got '6x4'"),
        ({"masks": PIXELS[0]}, r"masks must be an array \[N,H,W\] of truth values or whole numbers"),
        ({"masks": PIXELS * 0.5}, r"masks must be an array \[N,H,W\] .* got 'float64 \[40, 5, 6\]'"),
        ({"masks": PIXELS, "boxes": BOXES}, "boxes must be left out where masks are given"),
        ({"boxes": BOXES[:, :3]}, r"boxes must be numbers \[N,4\]: x0, y0, x1, y1 in pixels"),
        ({"boxes": BOXES[:3]}, "boxes must be as many as the samples, 40, got 3"),
        ({"boxes": BOXES + [[1, 0, 0, 0]]}, "boxes/2 must be x0 y0 x1 y1 within the picture of 6x5 pixels"),
        ({"boxes": BOXES * 1.1}, r"boxes/1 must be .* got \[0.0, 0.0, 6.6"),
        ({"boxes": BOXES[:, ::-1]}, r"boxes/0 must be .*, x0 < x1 and y0 < y1, got \[2, 4, 0, 1\]"),
        ({"boxes": np.full((40, 4), np.nan)}, "boxes/0 must be"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        made(**given)


def test_graphs_have_no_masks():
    graphs = [Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2) for _ in range(3)]
    for name in ("masks", "boxes"):
        with pytest.raises(ArgumentError, match=f"{name} must be left out for graphs"):
            from_arrays(graphs, [0, 1, 1], **{name: np.zeros((3, 4))})
    plain = from_arrays(graphs, [0, 1, 1])
    with pytest.raises(ArgumentError, match="masks must be left out for graphs"):
        replace(plain, masks=Masks.of(PIXELS[:3]))
    with pytest.raises(ArgumentError, match="masks must be Masks"):
        replace(made(), masks=PIXELS)


def test_centres_of_a_cut():
    assert centres(10, 10).tolist() == [i + 0.5 for i in range(10)]
    assert centres(10, 6, 3).tolist() == [3, 5, 7]
    assert centres(5, 4, 8)[:3].tolist() == [0.75, 1.25, 1.75]
    assert inside((1, 0, 2, 1), centres(2, 2), centres(3, 3)).tolist() == [
        [False, True, False],
        [False, False, False],
    ]
