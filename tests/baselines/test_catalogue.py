"""The names that a comparison takes."""

from pathlib import Path

import pytest

import augtree as at
from augtree.baselines import METHODS
from augtree.baselines.catalogue import CONTROLS, PRESETS, catalogue, control_of, is_known, is_method, names
from augtree.baselines.methods import method_of
from augtree.comparison import Longer, Searched, Soup
from augtree.errors import PolicyFileError
from augtree.policies.presets import NAMED
from augtree.transforms import AutoAugment
from support.blobs import blobs
from support.contrastive import task as contrastive

SHORT = {"supervised": "S", "contrastive": "C", "semisupervised": "SS"}
DOCS = Path(__file__).parents[2] / "docs" / "methods.md"


def test_every_name_is_listed_once():
    listed = [entry.name for entry in catalogue()]
    assert sorted(listed) == sorted({*NAMED, *CONTROLS, *METHODS}) == sorted(names())
    assert {*PRESETS} == {*NAMED}
    for entry in catalogue():
        assert entry.kind in ("free", "control", "search", "method")
        assert all((entry.about, entry.source, entry.costs, entry.settings, entry.domains))


def test_the_page_of_the_methods_has_what_is_listed():
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    for entry, row in zip(catalogue(), rows, strict=True):
        cells = [cell.strip() for cell in row.strip("| ").split(" | ")]
        assert cells[0] == f"`{entry.name}`"
        assert cells[1:3] == [entry.about, entry.source]
        assert cells[3] == (entry.needs.replace('"', "`") or "–")
        assert cells[4] == entry.costs
        assert cells[5] == " ".join(SHORT[setting] for setting in entry.settings)
        assert cells[6] == ", ".join(f"{domain}s" for domain in entry.domains)


def test_names_are_known_whatever_their_case():
    assert is_known("MixUp")
    assert is_known("RandAugment")
    assert not is_known("mixdown")
    assert is_method("mixup")
    assert is_method("search")
    assert not is_method("none")


def test_a_name_stands_for_its_method():
    data = blobs()
    assert method_of("Mixup", "p", data) == METHODS["mixup"]()
    assert method_of("longer", "p", data) == Longer(2)
    assert method_of("soup", "p", data) == Soup(2)
    assert method_of("search", "p", data) == Searched(at.spaces.auto(data))
    simclr = at.spaces.simclr(composites=True, fill=data.fill)
    assert control_of("search", data, contrastive()) == Searched(simclr)
    with pytest.raises(PolicyFileError, match=r"the names are none, .*, search, .*mixup.*did you mean cutmix\?"):
        method_of("cutmx", "p", data)


def test_autoaugment_is_that_of_the_data():
    for name, policy in (("cifar10[train=4000]", "cifar10"), ("svhn", "svhn"), ("digits", "imagenet")):
        assert method_of("autoaugment", "p", blobs(name=name)) == AutoAugment(policy)


def test_a_search_by_name_is_a_whole_search():
    data = blobs(val=32)
    task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16, device="cpu")
    found = at.compare(data, task, {"none": None, "search": "search"}, seeds=1)
    assert list(found.finished) == ["search"]
    assert found.rows[1]["cost"] > 1.5
