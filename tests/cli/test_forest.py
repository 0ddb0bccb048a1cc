import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import augtree as at
from augtree.errors import ArgumentError, AugtreeError
from support.commands import invoke, last

QUICK = ["--model", "cnn", "--steps", 8, "--batch-size", 16]
SEARCH = ["--budget", 30, "--alpha", 2]
FOREST = Path(__file__).parent.parent / "golden" / "forest.json"
PAPER = ["--method", "paper", "--space", "images", "--depth", 1, "--alpha", 2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures of two cameras, and a third with hardly any."""
    rng = np.random.default_rng(0)
    place = tmp_path_factory.mktemp("mine")
    lines = ["path,label,group,site"]
    for i in range(164):
        grey = rng.integers(0, 100, (8, 8)) + 120 * (i % 2)
        Image.fromarray(grey.astype(np.uint8)).save(place / f"{i}.png")
        camera = "rare" if i >= 160 else ("east", "west")[i // 2 % 2]
        lines.append(f"{i}.png,{('dark', 'light')[i % 2]},{camera},{('x', 'y')[i // 2 % 2]}")
    (place / "index.csv").write_text("\n".join(lines) + "\n")
    return place


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    """A forest from the command line."""
    out = tmp_path_factory.mktemp("runs") / "forest"
    done = invoke("forest", folder, "--merge", "nearest", *QUICK, *SEARCH, "--plain", "--out", out, "--json")
    return out, done


def test_a_folder_with_groups_becomes_a_forest_and_a_model(run):
    out, done = run
    found = last(done)
    assert len(found["forest"]) == 2
    assert sum(member["weight"] for member in found["forest"].values()) == pytest.approx(1)
    assert "groups that are too small were merged" in done.stderr
    told = (
        "Budget: 30 trainings",
        "Test after 0.50 trainings: flips left-right: predictions keep ",
        "Test after 0.50 trainings: the loss on training samples is ",
        "| group",
        "out of play",
        "augtree compare",
        "N_w",
    )
    for text in (*told, "without augmentation and weights"):
        assert text in done.stderr, text
    assert isinstance(at.load(out / "forest.json"), at.Forest)
    assert {"model.safetensors", "weights.csv", "groups.csv", "forest.svg"} <= {path.name for path in out.iterdir()}
    assert set(found["out_of_play"]) == set(found["forest"])
    assert any(
        text in found["verdict"] for text in ("Out of play in ", "everything is in play", "Everything is in play")
    )
    assert all(sentence in done.stderr for sentence in found["verdict"].split(". "))


def test_small_groups_are_told_before_anything_runs(folder, tmp_path):
    with pytest.raises(AugtreeError, match=r"(?s)group rare has.*--merge nearest"):
        invoke("forest", folder, *QUICK, *SEARCH, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_comparison_of_a_forest_s_run(run, tmp_path):
    out, _ = run
    done = invoke("compare", out, "--seeds", 1, "--vary", "alpha=1,4", "--out", tmp_path / "c", "--json")
    found = last(done)
    names = [line["policy"] for line in found["lines"]]
    assert names == [
        "none", "randaugment", "trivialaugment", "forest's policies", "usual practice, as long", "best free, as long",
        "best free, averaged", "forest", "forest, alpha=1", "forest, alpha=4",
    ]  # fmt: skip
    rows = {row["policy"]: row for row in found["rows"]}
    groups = [key for key in rows["none"] if key.startswith("group ")]
    assert len(groups) == 2
    assert rows["none"]["worst_group"] == min(rows["none"][key] for key in groups)
    assert "At the same cost, forest is " in found["verdict"]
    assert "In the worst group" in found["verdict"]


def test_weights_alone_for_trees_that_are_there(run, folder, tmp_path):
    out, _ = run
    again = [
        "--merge",
        "nearest",
        *QUICK,
        "--out",
        tmp_path / "fit",
        "--solver",
        "series",
        "--json",
    ]
    found = last(invoke("forest", folder, "--trees", out, *again))
    trees = {group: member["tree"] for group, member in found["forest"].items()}
    assert trees == {group: str(member.tree) for group, member in at.load(out / "forest.json").groups.items()}
    assert found["plain"] == {}


@pytest.mark.parametrize("method", ["shared", "paper"])
def test_errors_about_workers_name_the_option(folder, tmp_path, monkeypatch, method):
    """Method paper takes workers, although the searches of its groups do not."""
    monkeypatch.setattr("augtree.runs.executors.ray.need_ray", lambda: SimpleNamespace(cloudpickle=pickle))
    how = ["--groups", "column:site", "--method", method, *QUICK, "--out", tmp_path / "f"]
    with pytest.raises(ArgumentError, match="^--gpus-per-task must be 0 where this process trains on the CPU"):
        invoke("forest", folder, *how, "--on", "ray", "--gpus-per-task", 1)


def test_another_column_as_groups_by_the_paper_s_method(folder, tmp_path):
    how = [*QUICK, *PAPER, "--out", tmp_path / "f", "--json"]
    done = invoke("forest", folder, "--groups", "column:site", *how)
    assert set(last(done)["forest"]) == {"x", "y"}
    spec = json.loads((tmp_path / "f" / "spec.json").read_text())
    assert spec["data"]["source"]["groups"] == "column:site"
    assert (spec["method"], spec["scorer"]["name"], spec["weighting"]["start"]) == ("paper", "density", "uniform")
    resumed = last(invoke("resume", tmp_path / "f", "--json"))
    assert resumed["forest"] == last(done)["forest"]
    listed = last(invoke("runs", tmp_path, "--json"))["runs"]
    assert sorted(row["kind"] for row in listed) == ["fit", "forest", "search", "search"]
    done = invoke("compare", tmp_path / "f", "none", "--seeds", 1, "--out", tmp_path / "c", "--json")
    names = [line["policy"] for line in last(done)["lines"]]
    assert names == ["none", "forest, uniform weights", "forest"]
    rows = {row["policy"]: row for row in last(done)["rows"]}
    weights = [value for key, value in rows["forest, uniform weights"].items() if key.startswith("weight ")]
    assert weights == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "best"], "--target must be one of average, worst"),
        (["--eta", "-1"], "--eta must be a number in"),
        (["--scorer", "density", "--set", "speed=3"], "--set must be NAME=VALUE with one of "),
        (["--trees", "nowhere.json"], "there is no such file"),
        (["--trees", FOREST, "--method", "paper"], "--method must be left out with --trees"),
        (["--trees", FOREST, "--depth", 2], "--depth must be left out with --trees"),
        (["--trees", FOREST, "--scorer", "cooldown"], "--scorer must be left out with --trees"),
        (["--trees", FOREST, "--probabilities", "0.5"], "--probabilities must be left out with --trees"),
        (["--trees", FOREST, "--budget", 1], "--budget must be left out with --trees"),
        (["--trees", FOREST, "--check", 0], "--check must be left out with --trees"),
        (["--trees", FOREST, "--workers", 1], "--workers must be left out with --trees"),
        (["--trees", FOREST, "--set", "last=3"], "--set must be left out with --trees"),
        (["--trees", FOREST, "--space", "images"], "--space must be left out with --trees"),
        (["--groups", "camera"], "groups must be column:NAME"),
        (["--method", "papers"], r"--method must be one of .*did you mean paper"),
        (["--method", "paper", "--scorer", "cooldown"], "scorer must be cooldown with method shared"),
        (["--groups", "column:sit"], "did you mean site"),
    ],
)
def test_wrong_options_are_told_at_once(folder, tmp_path, options, message):
    with pytest.raises(AugtreeError, match=message):
        invoke("forest", folder, *QUICK, *options, "--out", tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_help_has_the_defaults_of_both_methods(monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    text = " ".join(invoke("forest", "--help-all").stdout.split())
    for expected in (
        "(default: proportions; paper: uniform)",
        "(default: cosine; paper: raw)",
        "(default: cooldown; paper: density)",
        "that a node may have (method paper)",
        "cool-downs, searches of groups (paper)",
    ):
        assert expected in text, expected
    assert text.index("--method") < text.index("--depth")


def test_vary_is_for_forests(folder, tmp_path):
    with pytest.raises(AugtreeError, match="--vary must be for the run of a forest"):
        invoke("compare", folder, *QUICK, "--vary", "alpha=1", "--out", tmp_path / "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed=3", "--vary must be NAME=VALUE with one of alpha"),
        ("alpha", "--vary must be NAME=VALUE"),
        ("alpha=1,many", "--vary alpha must be a whole number, got 'many'"),
        ("target=best", "--vary target must be one of average, worst"),
    ],
)
def test_values_to_vary_are_checked(run, tmp_path, text, message):
    with pytest.raises(AugtreeError, match=message):
        invoke("compare", run[0], "--vary", text, "--out", tmp_path / "c")
    assert not (tmp_path / "c").exists()
