"""Names with control characters and newlines are escaped wherever text is shown."""

import numpy as np
import pytest

import augtree as at
from augtree.data.groups import check_groups, group_problems
from augtree.report.summary import summary, summary_lines
from augtree.tables import markdown
from support.commands import invoke

EVIL = "a\nb\x1b[2J"
ESCAPED = r"a\nb\x1b[2J"


@pytest.fixture(scope="module")
def data():
    """Pictures whose classes and groups have such names."""
    pictures = np.random.default_rng(0).integers(0, 256, (60, 8, 8), np.uint8)
    labels, groups = [EVIL, "cat"] * 30, [EVIL, EVIL, "day", "day"] * 15
    return at.data.from_arrays(pictures, labels, groups=groups, name="pets")


def check(text, lines=None):
    assert "\x1b" not in text
    assert ESCAPED in text
    assert lines is None or len(text.splitlines()) == lines


def test_a_summary(data):
    about = summary(data)
    for line in summary_lines(about):
        assert line == "" or (line.isprintable() and "\n" not in line)
    check("\n".join(summary_lines(about)))
    assert EVIL in about["classes"]  # as a value it stays what it is


def test_messages_about_groups(data):
    problems = group_problems(data, 40)
    check("\n".join(map(str, problems)), len(problems))
    with pytest.raises(at.AugtreeError) as caught:
        check_groups(data, 40)
    check(str(caught.value), 1)
    with pytest.raises(at.AugtreeError) as caught:
        data.indices("val", "dey")
    check(str(caught.value), 1)


def test_tables_and_trees():
    check(markdown({"group": [EVIL, "day"], EVIL: ["1", "2"]}), 4)
    assert "a \\| b" in markdown({"group": ["a | b"]})
    forest = at.Forest({EVIL: (at.Tree(), 0.5), "day": (at.Tree(), 0.5)})
    check(forest.to_text(), 5)
    assert "\x1b" not in forest.to_dot() + forest.to_svg()


def test_a_forest_and_its_events(data):
    task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=2, batch_size=16, device="cpu")
    result = at.fit_forest(data, task, alpha=1)
    check(result.to_text(), 2 + len(data.group_names) + 1)
    worst = at.forests.ForestResult.worst(result)[0]
    assert (ESCAPED if worst == EVIL else worst) in result.verdict()
    assert "\n" not in result.verdict()


def test_the_command_line(tmp_path):
    from PIL import Image

    lines = ["path,label,group"]
    for i in range(20):
        Image.new("L", (6, 6), i).save(tmp_path / f"{i}.png")
        lines.append(f'{i}.png,"{EVIL if i % 2 else "cat"}","{EVIL if i // 2 % 2 else "day"}"')
    (tmp_path / "index.csv").write_text("\n".join(lines))
    done = invoke("data", "info", tmp_path, "--out", tmp_path / "samples.png")
    assert done.exit_code == 0
    check(done.output)
    assert "Warning: A search needs at least 8 validation samples, and there are 4" in done.output
    with Image.open(tmp_path / "samples.png") as sheet:
        assert sheet.size[0] > 96
