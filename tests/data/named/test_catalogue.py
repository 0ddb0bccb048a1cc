import re

import pytest

from augtree.data.graphs.tu import tu_dataset
from augtree.data.load import READERS, reader_by_name
from augtree.data.named.catalogue import CATALOGUE, SETS, present

TU = ("COLLAB", "DD", "IMDB-BINARY", "MUTAG", "NCI1", "PROTEINS", "REDDIT-BINARY")


def test_every_set_has_a_reader_and_every_reader_a_set(tmp_path):
    assert [one.name for one in SETS] == list(CATALOGUE)
    assert {*CATALOGUE} == {*READERS, *TU}
    assert all(reader_by_name(name, tmp_path) == (tu_dataset, None) for name in TU)


def test_every_set_says_what_it_is_and_where_it_is_from():
    for one in SETS:
        assert one.about
        assert one.licence
        assert one.expected
        assert "http" in one.page or one.name == "retinopathy"
        for remote in one.remotes:
            assert remote.url.startswith(("https://", "http://"))
            assert remote.md5 is None or re.fullmatch("[0-9a-f]{32}", remote.md5)
            assert any(remote.path.startswith(folder) for folder in one.folders)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("cifar10", "cifar-10-binary.tar.gz"),
        ("cifar100", "cifar-100-binary/test.bin"),
        ("svhn", "svhn/test_32x32.mat"),
        ("mnist", "MNIST/raw/t10k-images-idx3-ubyte"),
        ("fashion-mnist", "fashion-mnist/t10k-images-idx3-ubyte.gz"),
        ("iwildcam", "iwildcam_v2.0/metadata.csv"),
        ("chestxray14", "CXR8/Data_Entry_2017_v2020.csv"),
        ("MUTAG", "tu/MUTAG.zip"),
        ("MUTAG", "MUTAG/raw/MUTAG_A.txt"),
        ("human-proteins", "proteins/graphs_ca10A.npz"),
    ],
)
def test_a_set_is_found_by_a_file_of_it(tmp_path, name, file):
    assert not present(name, tmp_path)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert [one for one in CATALOGUE if one != "digits" and present(one, tmp_path)] == [name]


def test_the_union_is_there_when_all_its_parts_are(tmp_path):
    for folder, file in (("messidor2", "messidor_data.csv"), ("aptos2019", "train.csv"), ("dmr", "list.csv")):
        assert not present("retinopathy", tmp_path)
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).touch()
    assert present("retinopathy", tmp_path)
