import json
import re
import shutil
import sqlite3
from html.parser import HTMLParser

import pytest

import augtree as at
from augtree.errors import ArgumentError
from augtree.report import page, parts
from augtree.report.figures import Scale
from augtree.report.gather import gather
from augtree.report.pictures import Pictures
from augtree.report.sections import evidence, policies, trunk, verdict
from augtree.transforms import Flip, VerticalFlip
from support.reports import HOSTILE, RUNS, digits, task


class Reader(HTMLParser):
    """The elements, texts and ids of a page, as a browser takes them apart."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.attributes, self.texts, self.inside = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        self.inside = [tag]

    def handle_data(self, data):
        if self.inside[-1:] not in (["script"], ["style"]):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def written(made, name, tmp_path):
    path = at.write_report(made(name), tmp_path / "page.html", data=made.data(name))
    text = path.read_text()
    return text, Reader(text)


def parts_of(text):
    return re.findall(r'<section id="([\w-]+)"', text)


EXPECTED = {
    "search": ["evidence", "trunk", "policy", "curves", "mistakes", "cost", "settings"],
    "density": ["policy", "check", "cost", "settings"],
    "forest": ["evidence", "trunk", "policy", "groups", "weights", "curves", "mistakes", "cost", "settings"],
    "fit": ["policy", "groups", "weights", "curves", "mistakes", "cost", "settings"],
    "paper": ["policy", "groups", "weights", "curves", "mistakes", "cost", "settings"],
    "train": ["policy", "curves", "mistakes", "cost", "settings"],
    "compare": ["comparison", "cost", "settings"],
    "evaluate": ["comparison", "cost", "settings"],
    "graphs": ["evidence", "trunk", "policy", "curves", "mistakes", "cost", "settings"],
    "contrastive": ["trunk", "policy", "curves", "mistakes", "cost", "settings"],
    "sixteen": ["policy", "groups", "mistakes", "cost", "settings"],
    "semisupervised": ["trunk", "policy", "curves", "mistakes", "cost", "settings"],
}


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_has_a_page(name, made, tmp_path):
    text, found = written(made, name, tmp_path)
    assert [part for part in parts_of(text) if part != "importances"] == EXPECTED[name]
    assert "could not be made" not in text
    assert len(found.ids) == len({*found.ids})
    sources = json.loads(re.search(r'id="pictures">(.*?)</script>', text)[1])
    assert all(source.startswith(("data:image/png;base64,", "data:image/svg+xml,")) for source in sources)
    shown = {int(value) for name, value in found.attributes if name == "data-picture"}
    assert shown == set(range(len(sources)))
    assert len(sources) == len({*sources})
    assert not re.search(r'(?:src|href|action)="(?!#|data:)', text)


@pytest.mark.parametrize("name", ["search", "forest", "fit", "paper", "density"])
def test_the_verdict_is_that_of_the_search(name, made, tmp_path):
    said = json.loads((made(name) / "result.json").read_text())["verdict"]
    head = written(made, name, tmp_path)[1].text
    for word in re.findall(r"\d+\.\d+", said):
        assert word in head
    assert "not finished" not in head


def test_the_figures_of_a_comparison_are_its_own(made, tmp_path):
    result = json.loads((made("compare") / "comparison.json").read_text())
    found = written(made, "compare", tmp_path)[1].text
    assert result["verdict"].split(". ")[0].rstrip(".") in found
    for line in result["lines"]:
        assert f"{line['mean']:.4f} ± {line['spread']:.4f}" in found
        if line["difference"] is not None:
            assert f"{line['difference']:+.4f} ± {line['difference_se']:.4f}".replace("-", "−") in found
    assert result["published"] == ["mixup"]
    assert "published method" in found
    assert "policy, trained anew" in found


def test_the_evidence_is_that_of_the_findings(made, tmp_path):
    found = written(made, "graphs", tmp_path)[1].text
    for finding in json.loads((made("graphs") / "result.json").read_text())["findings"]:
        assert f"{finding['harm']:+.3f}".replace("-", "−") in found


def test_the_weights_and_metrics_of_groups_are_on_the_page(made, tmp_path):
    result = json.loads((made("fit") / "result.json").read_text())
    found = written(made, "fit", tmp_path)[1].text
    for group, member in result["forest"].items():
        assert f"{group} weight {member['weight']:.3f}" in found
        assert f"{100 * result['measures']['test'][group]['accuracy']:.1f} %" in found


@pytest.mark.parametrize("name", ["forest", "compare"])
def test_names_that_are_markup_stay_text(name, made, tmp_path):
    text, found = written(made, name, tmp_path)
    assert found.tags.count("script") == 3
    assert {*found.tags} >= {"html", "main", "section"}
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert HOSTILE[0] in found.text
    for script in re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL):
        assert "<" not in script or "window.hacked" not in script


def test_a_page_of_a_run_that_is_not_finished_says_so(made, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(made("forest"), folder)
    for name in ("result.json", "forest.json", "model.safetensors", "training.json"):
        (folder / name).unlink()
    with sqlite3.connect(folder / "run.sqlite") as store:
        store.execute("DELETE FROM units WHERE key LIKE 'cool/%' OR key LIKE 'measures%'")
        (row,) = store.execute("SELECT sha256 FROM facts WHERE key = 'status'").fetchone()
        assert row
        store.execute("DELETE FROM facts WHERE key = 'status'")
    text = at.write_report(folder, data=made.data("forest")).read_text()
    found = Reader(text)
    assert "This run is not finished" in found.text
    assert {"evidence", "policy", "trunk"} <= {*parts_of(text)}
    assert "policy for each group so far" in found.text
    assert "could not be made" not in text


def test_a_run_that_has_only_begun_has_a_page(made, tmp_path):
    (tmp_path / "run").mkdir()
    shutil.copy(made("compare") / "spec.json", tmp_path / "run")
    found = Reader(at.write_report(tmp_path / "run").read_text())
    assert "This run is not finished (0 parts of the work so far)" in found.text


def test_where_the_data_are_gone_the_page_says_why_there_are_no_pictures(made, tmp_path):
    text = at.write_report(made("fit"), tmp_path / "page.html").read_text()
    found = Reader(text)
    assert "There are no pictures here" in found.text
    assert "was made on arrays" in found.text
    assert "They are not shown" in found.text
    assert re.search(r'id="pictures">(.*?)</script>', text)[1] == "[]"
    assert "Rotate(0.4)" in found.text.replace(" (", "(")


def test_several_runs_are_on_one_page(made, tmp_path):
    folder = tmp_path / "both"
    for name in ("train", "compare"):
        shutil.copytree(made(name), folder / name)
    text = at.write_report(folder).read_text()
    assert parts_of(text) == [
        *["policy", "curves", "comparison", "mistakes"],
        *["cost", "cost-compare", "settings", "settings-compare"],
    ]
    assert "The training" in text
    assert "The comparison" in text


def test_a_training_with_a_page_can_be_replaced(made, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(made("train"), folder)
    at.write_report(folder)
    at.train(digits(), task(steps=2), out=folder, overwrite=True)
    assert not (folder / "report.html").exists()


def test_branches_of_one_place_do_not_lie_on_each_other():
    twig = trunk.Twig("look/0/0", "look", 0.5, 0.6, "Look 1", (), None, best=False)
    test, later = twig._replace(key="test/0", kind="test"), twig._replace(begin=2.0, end=2.1)
    lanes = trunk.lanes_of([[test], [twig, twig], [later]], Scale(0, 3, 0, 900))
    assert lanes == [0, 1, 0]


def test_what_is_out_of_play_is_shown_by_a_transform_that_does_it(made):
    record = gather(made("forest"), made.data("forest"))
    for group, factors in record.result["out_of_play"].items():
        found = {part.label: [type(step) for step in part.path] for part in parts.out_parts(record, [group])}
        shown = {"Flip": ("flips left-right", Flip), "VerticalFlip": ("flips up-down", VerticalFlip)}
        assert found == {shown[name][0]: [shown[name][1]] for name in factors if name in shown}
        assert found


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="run must be the folder of a run, or a folder of runs"):
        at.write_report(tmp_path)
    with pytest.raises(ArgumentError, match="run must be .* but it does not exist"):
        at.write_report(tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match="out must be a file in an existing folder"):
        at.write_report(tmp_path, tmp_path / "no" / "page.html")


def test_a_section_that_fails_leaves_the_others(made, tmp_path, monkeypatch):
    monkeypatch.setattr(page.trunk, "section", lambda record: 1 / 0)
    text, found = written(made, "search", tmp_path)
    assert "This part could not be made: ZeroDivisionError" in found.text
    assert parts_of(text)[:3] == ["evidence", "trunk", "policy"]


def test_a_full_page_leaves_pictures_out_and_says_so(made, monkeypatch):
    monkeypatch.setattr("augtree.report.pictures.MOST_BYTES", 500)
    record = gather(made("fit"), made.data("fit"))
    whole = policies.section(record, few := Pictures())
    assert few.size < 20_000
    assert "The page is full" in whole.body


def test_a_run_of_sixteen_groups_is_small(made, tmp_path):
    text, found = written(made, "sixteen", tmp_path)
    assert len(text.encode()) < 5_000_000
    assert text.count('class="policy-figure"') == 16
    assert all(f"group {i:02d}" in found.text for i in range(16))


@pytest.mark.parametrize(
    ("groups", "left", "said"),
    [
        ((), "ab", "out of play"),
        ("ab", "a", "out of play in 1 of 2"),
        ("ab", "ab", "out of play"),
        ("ab", "", "in play"),
    ],
)
def test_an_untested_flip_is_out_of_play_in_all_groups(groups, left, said):
    found = evidence.outcome({"groups": dict.fromkeys(groups), "left": left})
    assert f">{said}<" in str(found)


def test_what_leaves_play_in_many_groups_is_folded():
    said = [f"Out of play in {name}: crops." for name in "abcdefg"]
    folded = "".join(verdict.folded(["Accuracy: 1.", *said]))
    assert folded.count("Out of play in") == len(said)
    assert "and in 3 further groups" in folded
    assert folded.index("Out of play in d") < folded.index("<details>") < folded.index("Out of play in e")


def test_the_tables_of_results_are_html_in_a_notebook(made):
    table = at.resume(made("compare"))
    assert "&lt;img src=x" in table._repr_html_()
    assert "<img" not in table._repr_html_()
    assert "<table>" in at.resume(made("evaluate"))._repr_html_()
    tree = at.resume(made("search"))._repr_html_()
    assert "<svg" in tree
    assert "Cost:" in tree
    forest = at.resume(made("forest"), data=made.data("forest"))._repr_html_()
    assert "<table>" in forest
    assert "<script" not in forest
