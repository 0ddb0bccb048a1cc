"""Targeted augmentation: objects on the backgrounds of other groups, pixel by pixel, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augtree.baselines.targeted import Targeted, pasted
from augtree.data import from_arrays
from augtree.data.masks import Masks
from augtree.errors import ArgumentError
from augtree.training.state import seed_of
from augtree.transforms import Identity, RandomCrop
from support.blobs import blobs, by_hand, same
from support.methods import batch_of, grouped, masked, task


def cameras(train=90):
    """Pictures 1x5x4 of three labels in three groups (label 2 is never in group c), one mask in four is empty."""
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 3, train), rng.integers(0, 3, train)
    groups[(labels == 2) & (groups == 2)] = 0
    pixels = rng.random((train, 5, 4)) < 0.3
    pixels[rng.random(train) < 0.25] = False
    pixels[7] = True  # an object without a background
    return from_arrays(
        rng.integers(0, 256, (train, 5, 4)).astype(np.uint8),
        labels,
        groups=np.array(list("abc"))[groups],
        split=["train"] * (train - 20) + ["val"] * 10 + ["test"] * 10,
        masks=pixels,
        classes=("cat", "dog", "empty"),
        name="cameras",
    )


def pairs_of(method, data, steps=400):
    """All pairs of a sample and its background that some steps draw."""
    trainer, found = task().prepare(data), set()
    backgrounds = method.backgrounds(data, trainer.rows)
    for step in range(steps):
        places, partners = method.draw(backgrounds, batch_of(trainer, trainer.rows, step))
        found |= {*zip(trainer.rows[places].tolist(), partners.tolist(), strict=True)}
    return found


@pytest.mark.parametrize(
    "options", [{}, {"partners": "all"}, {"empty": "empty"}, {"partners": "all", "empty": "empty"}]
)
def test_a_sample_is_pasted_on_whatever_it_may_and_on_nothing_else(options):
    data = cameras()
    train, masks = data.indices("train").tolist(), data.masks[:]
    labels, groups = data.labels.tolist(), data.groups.tolist()
    areas = masks.sum((1, 2)).tolist()

    def may(i, j):
        if groups[i] == groups[j] or not areas[i]:
            return False
        if "empty" in options:
            seen = any(labels[k] == labels[i] and groups[k] == groups[j] for k in train)
            return labels[i] != 2 and labels[j] == 2 and (seen or "partners" in options)
        return 0 < areas[j] < 20 and (labels[i] == labels[j] or "partners" in options)

    allowed = {(i, j) for i in train for j in train if may(i, j)}
    found = pairs_of(Targeted(p=1, **options), data)
    assert found <= allowed
    assert len(found) > 0.95 * len(allowed)
    share = len({i for i, _ in allowed}) / len(train)
    assert Targeted(p=1, **options).backgrounds(data, data.indices("train")).share == pytest.approx(share)
    Targeted(**options).check(task(), data)


def test_so_many_of_the_samples_are_pasted():
    data = cameras()
    trainer, method = task().prepare(data), Targeted(p=0.3)
    backgrounds = method.backgrounds(data, trainer.rows)
    counts = [len(method.draw(backgrounds, batch_of(trainer, trainer.rows, step))[0]) for step in range(200)]
    assert sum(counts) / 200 / len(trainer.rows) / backgrounds.share == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixel_by_pixel(channels):
    rng = np.random.default_rng(1)
    own, other = (torch.from_numpy(rng.integers(0, 256, (6, channels, 5, 4)).astype(np.uint8)) for _ in range(2))
    mask, other_mask = (torch.from_numpy(rng.random((6, 5, 4)) < 0.4) for _ in range(2))
    other_mask[5] = False  # an empty picture
    out = pasted(own, mask, other, other_mask)
    assert out.dtype == torch.uint8
    for i, c, y, x in np.ndindex(*out.shape):
        around = [int(other[i, c, a, b]) for a, b in np.ndindex(5, 4) if not other_mask[i, a, b]]
        expected = other[i, c, y, x] if not other_mask[i, y, x] else int(sum(around) / len(around) + 0.5)
        assert out[i, c, y, x] == (own[i, c, y, x] if mask[i, y, x] else expected)


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_the_loss_is_that_of_pictures_pasted_before_the_preprocessing(p):
    data, method = masked(), Targeted(p=p)
    crop = RandomCrop(scale=(0.3, 1.0))
    trainer = task(preprocess=crop).prepare(data)
    trainer.load(trainer.fresh(0))
    trainer.model.eval()
    backgrounds, batch = method.backgrounds(data, trainer.rows), batch_of(trainer, range(12))
    batch = replace(batch, inputs=trainer.augmented(Identity(), batch.rows, batch.draws, batch.seed))
    raw, places, partners = data.samples[:12].clone(), *method.draw(backgrounds, batch)
    for i, j in zip(places, partners, strict=True):
        for y, x in np.ndindex(8, 8):
            if not data.masks[[i]][0, y, x]:
                raw[i, :, y, x] = data.samples[j][:, y, x]
                if data.masks[[j]][0, y, x]:
                    around = data.samples[j][:, ~data.masks[[j]][0]].double().mean(1)
                    raw[i, :, y, x] = (around + 0.5).floor().to(torch.uint8)
    seen = crop(raw, seed=seed_of(1, "preprocess"), index=batch.draws)
    assert torch.equal(method.inputs(trainer, backgrounds, batch), seen)
    expected = F.cross_entropy(trainer.model(by_hand(seen, data)), batch.labels)
    assert torch.allclose(method.loss(trainer, backgrounds, batch), expected, atol=1e-5)
    assert 0 < len(places) < 12  # some objects are not known, so these samples stay as they are


def test_without_any_pasting_it_is_a_plain_training():
    trainer = task(preprocess=RandomCrop(scale=(0.3, 1.0))).prepare(masked())
    assert same(Targeted(p=0).fit(trainer, 4)[0], trainer.fit(Identity(), 4))
    state, row = Targeted().fit(trainer, 4)
    assert not same(state, trainer.fit(Identity(), 4))
    assert 0 < row["can be pasted"] < 1


def test_a_model_no_longer_goes_by_the_background():
    """The background says nearly all in training and nothing in the test; the object is faint and says all."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    spurious = np.where(rng.random(400) < 0.97, labels, 1 - labels)
    spurious[200:] = rng.integers(0, 2, 200)
    pictures = rng.integers(0, 60, (400, 1, 8, 8)) + 120 * spurious[:, None, None, None]
    pixels = np.zeros((400, 8, 8), bool)
    pixels[:, 2:6, 2:6] = True
    stripes = np.where((np.arange(4) // 2 + labels[:, None]) % 2, 100, 60)  # left or right is brighter
    pictures[:, :, 2:6, 2:6] = stripes[:, None, None] + rng.integers(0, 60, (400, 1, 4, 4))
    split = ["train"] * 200 + ["val"] * 20 + ["test"] * 180
    data = from_arrays(
        pictures.astype(np.uint8), labels, groups=np.array(["a", "b"])[spurious], split=split, masks=pixels
    )
    trainer = task(options={"width": 8}, steps=60, batch_size=32, lr=0.1, metric="accuracy").prepare(data)
    test = data.indices("test")
    plain = trainer.measures(trainer.fit(Identity(), 0), test)["accuracy"]
    targeted = trainer.measures(Targeted(p=0.9).fit(trainer, 0)[0], test)["accuracy"]
    assert targeted > 0.95 > 0.7 > plain, (plain, targeted)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (grouped, {}, r"must have training samples with masks or boxes \(columns of index.csv"),
        (lambda: replace(grouped(), masks=Masks.of(np.zeros((96, 8, 8)))), {}, "with masks or boxes"),
        (lambda: one_group(masked()), {}, r"training samples of two groups or more \(groups=...\), got \['b'\]"),
        (lambda: by_label(masked()), {}, "must have a label that occurs with masks in two groups, or partners='all'"),
        (lambda: by_label(masked()), {"empty": "1"}, "must have masks of a label in one group, and pictures of 1 in"),
        (lambda: replace(masked(), masks=in_group_a(masked())), {"partners": "all"}, "must have masks in two groups"),
        (masked, {"empty": "2"}, "targeted/empty must be one of 0, 1, got '2'"),
        (lambda: several(masked()), {}, "must have one label a sample, not several, got '3 labels'"),
    ],
)
def test_data_in_which_nothing_can_be_pasted_is_refused(data, options, words):
    with pytest.raises(ArgumentError, match=words):
        Targeted(**options).check(task(), data())


def one_group(data):
    return data.take(data.indices(group="b"))


def by_label(data):
    return replace(data, groups=data.labels.numpy().astype(np.int64))


def in_group_a(data):
    return Masks.of(data.masks[:].numpy() & (data.groups == 0)[:, None, None])


def several(data):
    return blobs(48, 32, 16, y=np.eye(3, dtype=np.uint8)[np.arange(96) % 3], masks=data.masks[:].numpy())


@pytest.mark.parametrize(
    ("options", "words"), [({"p": 1.1}, "p must be"), ({"partners": "some"}, "partners must be one of label, all")]
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        Targeted(**options)
