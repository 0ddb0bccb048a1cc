"""The package as a whole: its public names, its layers, and what it needs."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import augtree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "augtree"
LAYERS = ["version", "errors", "keys", "files", "tables", "transforms", "policies", "data", "models", "training"]
LAYERS += [
    "tasks",
    "runs",
    "search",
    "forests",
    "baselines",
    "evaluation",
    "comparison",
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
        "fit_forest",
        "load",
        "resume",
        "save",
        "search_forest",
        "search_tree",
        "spaces",
        "tasks",
        "testing",
        "train",
        "transforms",
        "wrap",
    ]
    assert augtree.testing.__all__ == ["check_dataset", "check_transform"]
    assert sorted(augtree.transforms.__all__) == sorted(
        [*augtree.transforms.BUILT_IN, "BUILT_IN", "Policy", "Space", "Transform", "Wrapped", "wrap"]
    )
    for module in (augtree, augtree.transforms, augtree.testing):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_the_version_is_one():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == augtree.__version__
    assert f"## [{augtree.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
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
    assert 'pip install "augtree[cli]"' in str(error), error
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
        assert "torch.load" not in text, path
        assert not re.search(r"(?<![.\w])(eval|exec)\(", text), path
        if "pickle.load" in text:
            assert path.name in ("worker.py", "branches.py", "group_trees.py"), path  # between our own processes only
