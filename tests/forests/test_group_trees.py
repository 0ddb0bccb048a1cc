"""A tree for each group, side by side where there are workers."""

import resource

import numpy as np
import pytest

import augtree as at
from augtree.errors import RunError
from augtree.forests import search_forest
from augtree.forests.group_trees import GroupFinished, GroupSearch, GroupStarted, folder_name, group_alone
from augtree.search import Density
from support.contrastive import graphs
from support.two_groups import two_groups

HOW = {
    "depth": 1,
    "scorer": Density(train=0.3, sure=0),
    "probabilities": (0.5, 1.0),
    "check": 0,
    "alpha": 2,
    "eta": 0.3,
    "method": "paper",
}


def test_workers_change_nothing_and_need_no_file_for_each_graph(tmp_path):
    data, events = at.data.group(graphs(400), "size:2"), {1: [], 2: []}
    gin = at.tasks.Classification(model="gin", steps=4, optimizer="adamw", options={"hidden": 4, "layers": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        space, how = [at.transforms.MaskNodes(0.1), at.transforms.DropNodes(0.2)], HOW
        found = [
            search_forest(data, gin, space, out=tmp_path / str(n), workers=n, watch=events[n].append, **how)
            for n in (1, 2)
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(found[1].trees) == 2
    assert found[0].forest == found[1].forest
    files = [(tmp_path / n / name).read_bytes() for n in "12" for name in ("forest.json", "model.safetensors")]
    assert files[:2] == files[2:]
    started = [event for event in events[1] if isinstance(event, GroupStarted)]
    assert [(event.group, event.number, event.of) for event in started] == [("size0", 1, 2), ("size1", 2, 2)]
    assert started[0].data == str(group_alone(data, "size0"))
    ended = [event for event in events[2] if isinstance(event, GroupFinished)]
    assert [(event.number, event.of) for event in ended] == [(1, 2), (2, 2)]
    assert {event.group for event in ended} == {"size0", "size1"}
    for event in ended:
        result = found[1].trees[event.group]
        assert event.tree == (str(result.tree) if len(result.tree) else "empty")
        assert event.trainings == result.cost.training_equivalents
    assert not [event for event in events[1] if isinstance(event, GroupFinished)]


def test_a_group_alone_is_a_data_set_of_one_group():
    data = two_groups(sizes=(60, 40))
    alone = group_alone(data, "b")
    assert (alone.name, alone.group_names, set(alone.groups.tolist())) == (f"{data.name}[b]", ("b",), {0})
    assert alone.counts == {**alone.counts, "train": 40, "val": 200, "test": 400}
    assert np.array_equal(alone.labels, data.labels[data.indices(None, "b")])


def test_folders_have_short_names():
    assert folder_name(3, "x/y" * 100) == "03-" + ("x_y" * 100)[:60]
    assert folder_name(0, "a.b-c") == "00-a.b-c"


def test_workers_must_reach_the_folder_of_the_run(tmp_path):
    search = GroupSearch(at.tasks.Classification(), [], {}, tmp_path / "not there", 1)
    with pytest.raises(RunError, match="must be a folder that every worker can reach"):
        search(None, (two_groups(), "00-a"))
