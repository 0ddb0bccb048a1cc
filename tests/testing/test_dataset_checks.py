"""Our data sets keep the contract, and every check catches a data set that is broken in its way."""

import socket
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.data import Dataset, from_arrays
from augtree.errors import ArgumentError, CheckError
from augtree.testing import check_dataset
from augtree.testing.dataset_checks import CHECKS


def pictures(count=30):
    return torch.randint(0, 256, (count, 3, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def good(kind=Dataset, **changes):
    """Thirty pictures of two classes, two groups and three splits."""
    given = dict(
        name="good",
        samples=pictures(),
        labels=torch.arange(30) % 2,
        classes=("cat", "dog"),
        split=np.repeat(np.array([0, 1, 2], np.int8), [18, 6, 6]),
        groups=np.arange(30, dtype=np.int64) // 2 % 2,
        group_names=("day", "night"),
        columns={"camera": tuple("ab" * 15)},
    )
    return kind(**{**given, **changes})


def spoiled(**changes):
    """A data set that got past its own checks."""
    data = good()
    for name, value in changes.items():
        object.__setattr__(data, name, value)
    return data


def failures(data, **options):
    with pytest.raises(CheckError) as caught:
        check_dataset(data, **options)
    return caught.value.failures


def graphs(count=30):
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    return [Data(x=torch.full((3, 2), float(i)), edge_index=ring, y=torch.tensor([i % 2])) for i in range(count)]


def test_good_ones_keep_it():
    assert check_dataset(good()) == list(CHECKS)
    assert check_dataset(at.data.load("digits", labels=100)) == list(CHECKS)
    assert check_dataset(from_arrays(graphs())) == list(CHECKS)
    several = torch.stack([torch.arange(30) % 2, torch.arange(30) % 3 == 0], 1).to(torch.uint8)
    assert check_dataset(good(labels=several)) == list(CHECKS)


def test_a_data_set_of_one_sample_keeps_it():
    one = from_arrays(torch.zeros(1, 3, 8, 8, dtype=torch.uint8), [0], split=["train"])
    assert check_dataset(one) == list(CHECKS)


def test_length():
    found = failures(spoiled(labels=torch.zeros(29, dtype=torch.int64)))
    assert found == {
        "length": "len() is 30, but there are 30 samples, 29 labels, 30 split, 30 groups, 30 columns/camera"
    }


class Flickering(tuple):
    """Graphs that change from one look to the next."""

    looks = 0

    def __getitem__(self, i):
        Flickering.looks += 1
        graph = super().__getitem__(i)
        return graph if isinstance(i, slice) else Data(x=graph.x + Flickering.looks, edge_index=graph.edge_index)


def test_stable_indexing():
    data = from_arrays(graphs())
    object.__setattr__(data, "samples", Flickering(data.samples))
    assert "differs from one look to the next" in failures(data)["stable indexing"]


class OtherTake(Dataset):
    """Gives other samples than those that are asked for."""

    def take(self, indices):
        return super().take((np.asarray(indices) + 1) % len(self))


def test_stable_indexing_of_take():
    assert failures(good(OtherTake))["stable indexing"] == "sample 0 differs from what take([0]) gives"


class Overlapping(Dataset):
    """Counts the first validation sample as a training sample too."""

    def indices(self, split=None, group=None):
        rows = super().indices(split, group)
        return np.append(rows, 18) if split == "train" and group is None else rows


class WrongCounts(Dataset):
    """Says that there is one more test sample."""

    @property
    def counts(self):
        return {**super().counts, "test": 7}


def test_disjoint_splits():
    assert failures(good(Overlapping))["disjoint splits"] == "sample 18 is in train and in val"
    assert failures(good(WrongCounts)) == {"disjoint splits": "counts says 7 for test, indices has 6"}
    lost = good().split.copy()
    lost[3] = 9
    assert failures(spoiled(split=lost))["disjoint splits"] == "the splits have 29 of 30 samples"


def test_groups_cover_exactly():
    empty = good(group_names=("day", "night", "noon"))
    assert failures(empty) == {"groups cover exactly": "group noon has no sample"}
    outside = good().groups.copy()
    outside[4] = 5
    assert (
        failures(spoiled(groups=outside))["groups cover exactly"] == "the groups have 29 samples, the data set has 30"
    )


def test_no_empty_group_in_a_split():
    apart = np.zeros(30, np.int64)
    apart[18:24] = 1
    data = good(groups=apart)
    assert failures(data) == {"no empty group in a split": "group night has no sample in train"}
    rest = check_dataset(data, skip=["no empty group in a split"])
    assert rest == [name for name in CHECKS if name != "no empty group in a split"]
    no_test = good(split=np.repeat(np.array([0, 1], np.int8), [24, 6]))
    assert check_dataset(no_test) == list(CHECKS)  # a split that is not there asks for nothing


def test_label_range():
    assert failures(spoiled(labels=torch.arange(30) % 3))["label range"] == "labels must be from 0 to 1, got 0 to 2"
    assert (
        failures(spoiled(labels=-(torch.arange(30) % 2)))["label range"] == "labels must be from 0 to 1, got -1 to 0"
    )
    assert failures(spoiled(classes=("cat", "cat")))["label range"] == "two classes have one name"


def test_no_identical_sample_in_two_splits():
    twins = pictures()
    twins[20], twins[28] = twins[3], twins[3]
    found = failures(good(samples=twins))
    assert found == {
        "no identical sample in two splits": "samples 3 and 20 are identical, in train and val, and 1 more"
    }
    twins = pictures()
    twins[4] = twins[3]
    assert check_dataset(good(samples=twins)) == list(CHECKS)  # within a split it is no leak
    same = graphs()
    same[29] = Data(x=same[0].x, edge_index=same[0].edge_index, y=torch.tensor([1]))
    data = from_arrays(same, split=["train"] * 18 + ["val"] * 6 + ["test"] * 6)
    assert "samples 0 and 29 are identical" in failures(data)["no identical sample in two splits"]


class ByName(Dataset):
    """Its fingerprint depends on its name."""

    @property
    def fingerprint(self):
        return super().fingerprint + self.name


class Numbed(Dataset):
    """Its fingerprint does not look at all that there is."""

    @property
    def fingerprint(self):
        return f"{len(self)} {self.labels.tolist()} {self.split.tolist()} {self.groups.tolist()} {self.classes}"


def test_fingerprints():
    assert "stable fingerprint" in failures(good(ByName))
    assert failures(good(Numbed))["sensitive fingerprint"] == "the fingerprint is the same with another sample"


@dataclass(frozen=True, eq=False, repr=False)
class WithFunction(Dataset):
    """Has something in it that cannot travel."""

    reader: object = None


def test_picklable():
    found = failures(good(WithFunction, reader=lambda: 3))
    assert list(found) == ["picklable"]
    assert "cannot be pickled" in found["picklable"]


class Worn(Dataset):
    """Every look at a part of it leaves a mark."""

    def take(self, indices):
        self.labels[0] = 1 - self.labels[0]
        return super().take(indices)


def test_unmutated():
    assert failures(good(Worn))["unmutated"] == "it is another one after it was used"


class Online(Dataset):
    """Asks a server whenever a part is taken."""

    def take(self, indices):
        with suppress(OSError):
            urllib.request.urlopen("http://127.0.0.1:9/", timeout=1)
        return super().take(indices)


def test_offline_after_building():
    assert failures(good(Online)) == {"offline after building": "it opened a network connection"}
    with pytest.raises(ConnectionRefusedError):  # the network is back
        socket.create_connection(("127.0.0.1", 9), timeout=1)


def test_every_check_has_its_broken_data_set():
    text = Path(__file__).read_text()
    assert all(f'"{name}"' in text for name in CHECKS)


def test_what_is_no_data_set_and_what_is_no_check():
    with pytest.raises(ArgumentError, match="data must be a data set"):
        check_dataset([1, 2])
    with pytest.raises(ArgumentError, match=r"skip must be one of length, .*\(did you mean label range\?\)"):
        check_dataset(good(), skip=["labels range"])


def test_what_a_data_set_raises_is_a_finding():
    data = replace(good(), columns={})
    object.__setattr__(data, "group_names", None)
    assert "raised TypeError" in failures(data)["groups cover exactly"]
