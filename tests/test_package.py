"""The package as a whole: its public names, its layers, and what it needs."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import augtree
from public_names import public_objects

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "augtree"
LAYERS = ["version", "errors", "keys", "files", "tables", "transforms", "policies", "data", "models", "training"]
LAYERS += [
    "tasks",
    "runs",
    "loggers",
    "progress",
    "search",
    "forests",
    "baselines",
    "evaluation",
    "comparison",
    "exports",
    "report",
    "testing",
    "demo",
    "cli",
]
"""Each may import only what stands before it; the package itself and its command stand above all."""


def test_public_names():
    assert sorted(augtree.__all__) == [
        "AugtreeError",
        "Forest",
        "Tree",
        "Weighted",
        "Weighting",
        "compare",
        "data",
        "errors",
        "evaluate",
        "executors",
        "export",
        "export_model",
        "fit_forest",
        "load",
        "loggers",
        "resume",
        "save",
        "search",
        "search_forest",
        "search_tree",
        "spaces",
        "tasks",
        "testing",
        "train",
        "transforms",
        "wrap",
        "write_report",
    ]
    assert augtree.data.__all__ == ["Dataset", "from_arrays", "group", "load", "read_tu"]
    assert augtree.testing.__all__ == ["check_dataset", "check_transform"]
    assert augtree.transforms.spaces.__all__ == ["Space", "auto", "graphs", "images", "simclr"]
    assert sorted(augtree.transforms.__all__) == sorted(
        [*augtree.transforms.BUILT_IN, "BUILT_IN", "Policy", "Space", "Transform", "Wrapped", "wrap"]
    )
    for module in (augtree, augtree.transforms, augtree.testing):
        for name in module.__all__:
            assert getattr(module, name) is not None


NOT_RUN = {
    "augtree.data.proteins.read_human_proteins",  # needs the published files
    "augtree.data.proteins.read_proteins",  # the example of build_proteins makes such a folder
}
"""Functions whose examples are shown only."""
PUBLIC = public_objects()
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


def sections(text):
    """The sections of a NumPy-style docstring."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_public_names_that_are_checked_are_those_that_users_meet():
    assert {"augtree.search_tree", "augtree.data.load", "augtree.transforms.spaces.images"} <= {*FUNCTIONS}
    assert {"augtree.Tree", "augtree.data.Dataset", "augtree.transforms.Rotate", "augtree.AugtreeError"} <= {*PUBLIC}
    assert sections("One.\n\nParameters\n----------\nx\n    Two.\n") == {"Parameters": "\nx\n    Two.\n"}


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_a_docstring(name):
    value = PUBLIC[name]
    text = inspect.cleandoc(value.__doc__ or "")
    assert len(text) > 10
    assert not text.startswith(f"{value.__name__}(")  # what a dataclass writes itself


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_document_their_parameters_with_an_example(name):
    function = FUNCTIONS[name]
    found = sections(inspect.getdoc(function))
    parameters = [*inspect.signature(function).parameters]
    lines = re.findall(r"^(\S.*)\n    \S", found.get("Parameters", ""), flags=re.MULTILINE)
    assert [name.strip().lstrip("*") for line in lines for name in line.split(" : ")[0].split(",")] == parameters
    examples = doctest.DocTestParser().get_examples(found.get("Examples", ""))
    run = [example for example in examples if doctest.SKIP not in example.options]
    assert run or (examples and name in NOT_RUN)


def test_the_version_is_one():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == augtree.__version__
    dated = re.search(r"^## \[(.+?)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text()
    assert dated[1] == augtree.__version__
    assert f"\nversion: {dated[1]}\n" in citation
    assert f'\ndate-released: "{dated[2]}"\n' in citation


def imports(path):
    """The layers that a module imports when it runs, not those it names for the type checker alone."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    typed = [node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    unused = {inner for node in typed for statement in node.body for inner in ast.walk(statement)}
    for node in nodes:
        if node in unused:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "augtree":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [a.name.split(".")[1] for a in node.names if a.name.startswith("augtree.")]


def test_each_layer_imports_only_what_stands_above_it():
    seen = set()
    for path in SOURCE.rglob("*.py"):
        layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if layer in ("__init__", "__main__"):
            continue
        seen.add(layer)
        for other in imports(path):
            assert LAYERS.index(other) <= LAYERS.index(layer), f"{path.name} imports {other}"
    assert seen == set(LAYERS)


ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError(f"{{name}} is blocked")

sys.meta_path.insert(0, Only())
import torch
import augtree as at

space = at.spaces.images(composites=True)
tree = at.Tree()
for i, candidate in enumerate(list(space)[1:1 + 63], start=1):
    tree = tree.with_node(i, candidate, p=0.5)
tree.save({path!r})
batch = torch.randint(0, 256, (32, 3, 16, 16), dtype=torch.uint8)
assert at.load({path!r})(batch, seed=0).shape == batch.shape
tree.to_text(), tree.to_dot(), tree.to_svg()
try:
    at.wrap(abs, name="Fog", takes="pil")(batch)
except at.AugtreeError as error:
    assert 'pip install "augtree[train]"' in str(error), error
else:
    raise SystemExit("Pillow was there")
loaded = {{name.split(".")[0] for name in sys.modules}} & {blocked}
assert not loaded, loaded
"""


def test_applying_a_tree_needs_torch_and_numpy_alone(tmp_path):
    blocked = {"PIL", "sklearn", "scipy", "torch_geometric", "typer", "rich", "matplotlib", "pandas"}
    code = ALONE.format(blocked=blocked, path=str(tmp_path / "t.json"))
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_command_without_its_extra_names_it():
    code = "import sys; sys.modules['typer'] = None; from augtree.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "augtree[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_in_the_package_reads_pickles_or_runs_text():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"\btorch\.load\b", text), path
        assert not re.search(r"(?<![.\w])(eval|exec)\(", text), path
        if "pickle.load" in text:
            assert path.name in ("worker.py", "messages.py"), path  # between our own processes only
