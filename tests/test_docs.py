"""The code in the documentation does what it says: every Python block is run, in order, on small data."""

import re
from collections import Counter
from pathlib import Path

import pytest
import torch
from markdown_it import MarkdownIt
from PIL import Image, ImageOps
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.models import Inputs, build
from support.by_hand import by_hand

ROOT = Path(__file__).parents[1]


class Compose:
    """torchvision's, as far as it matters."""

    def __init__(self, steps):
        self.steps = steps

    def __call__(self, sample):
        for step in self.steps:
            sample = step(sample)
        return sample


def my_function(sample, magnitude=1.0):
    """A user's function, on tensors and on Pillow images."""
    return sample.flip(2) if isinstance(sample, torch.Tensor) else ImageOps.mirror(sample)


def my_model():
    """A user's model."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 2))


def make_folder(place):
    """A user's pictures, a subfolder a class."""
    for i in range(100):
        (place / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.effect_noise((8, 8), 60).convert("RGB").save(place / "ab"[i % 2] / f"{i}.png")


def surroundings():
    """What the snippets take for granted."""
    pictures = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
    labels = torch.arange(6)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    tree = by_hand()
    return {
        "at": at,
        "torch": torch,
        "tree": tree,
        "tree_a": tree,
        "tree_b": at.Tree(),
        "pictures": pictures[:3],
        "labels": labels,
        "loader": [(pictures[:3], labels[:3]), (pictures[3:], labels[3:])],
        "groups": ["photo", "sketch", "photo"],
        "epoch": 2,
        "epochs": 2,
        "indices": torch.tensor([7, 3, 5]),
        "batch": Batch.from_data_list([Data(x=torch.ones(4, 1), edge_index=edge_index)] * 3),
        "my_function": my_function,
        "my_model": my_model,
        "data": at.data.load("my_pictures"),
        "f": my_function,
        "sample": pictures[0],
        "device": "cpu",
        "model": lambda batch: batch.mean((1, 2, 3)),
        "train_step": lambda batch, target: None,
        "Compose": Compose,
        "PILToTensor": lambda: lambda picture: picture,
        "ConvertImageDtype": lambda dtype: lambda picture: picture.to(dtype) / 255,
    }


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_every_snippet_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for modules that snippets write
    Path("runs/demo").mkdir(parents=True)
    by_hand().save("runs/demo/tree.json")
    by_hand().save("tree.json")
    make_folder(Path("my_pictures"))
    if path.name == "how-to.md":
        torch.save(
            build("cnn", Inputs("image", 3, 8, 2)).state_dict(), "resnet18.pth"
        )  # only read here, and converted
    monkeypatch.setattr(at.tasks.Classification, "total_steps", lambda self, samples: 2)
    monkeypatch.setattr(at.tasks.Classification, "model_for", lambda self, data: my_model)
    names = surroundings()
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL):
        exec(compile(block, path.name, "exec"), names)
    if path.name == "how-to.md":
        white = torch.full((500, 1, 1, 1), 255, dtype=torch.uint8)
        done = names["Dim"](0.5)(white, seed=0)
        assert 126 <= int(done.min()) < 130 < 250 < int(done.max())


def test_no_document_has_a_hole():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        assert not re.search(r"^[A-Z_]+$|TODO|FIXME|XXX", path.read_text(), flags=re.MULTILINE), path


def test_links_lead_somewhere():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert target.startswith("https://") or (path.parent / target).exists(), f"{path.name}: {target}"


def test_pages_are_the_same_on_a_code_host_and_on_the_site():
    site, host = pytest.importorskip("markdown"), MarkdownIt("commonmark").enable("table")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text()
        pages = host.render(text), site.markdown(text, extensions=["tables", "fenced_code", "sane_lists"])
        tags = [Counter(re.findall(r"<(li|ul|ol|tr|td|pre|h\d|strong|em|code|a|img)\b", page)) for page in pages]
        assert tags[0] == tags[1], path.name


def test_the_tour_shows_a_tree_as_it_is_printed():
    assert by_hand().to_text() in (ROOT / "docs" / "tour.md").read_text()


def test_the_messages_in_the_file_format_are_those_that_come(tmp_path):
    text = (ROOT / "docs" / "file-format.md").read_text()
    good = re.search(r"```json\n(.*?)```", text, flags=re.DOTALL).group(1)
    path = tmp_path / "tree.json"
    path.write_text(good)
    at.load(path)
    changes = [("0.3", "0.4"), ('"Color"', '"Colour"'), ('"Color"', '"Fog"')]
    for old, new in changes:
        three = good.replace('"p": 0.3}', '"p": 0.3},\n    "3": {"transform": {"name": "Invert"}, "p": 0.7}')
        path.write_text(three.replace(old, new))
        with pytest.raises(at.errors.PolicyFileError) as caught:
            at.load(path)
        assert str(caught.value).replace(str(path), "tree.json") in text
    path.write_text(three.replace('"p": 0.7}\n', '"p": 1.4}\n'))
    with pytest.raises(at.errors.PolicyFileError) as caught:
        at.load(path)
    assert str(caught.value).replace(str(path), "tree.json") in text
