"""Nothing that is read from a file is run: what the sources may not call."""

import ast
from pathlib import Path

import augtree

SOURCES = Path(augtree.__file__).parent
BETWEEN_OWN_PROCESSES = {"runs/executors/messages.py", "testing/worker.py"}
"""The modules that read pickles; none of these come from files."""
READS_OBJECTS = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
UNPACKS = {"extract", "extractall", "unpack_archive", "_extract_member"}


def calls(tree):
    """The calls in a source: the name of the function, and of what it is a part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            owner = getattr(getattr(function, "value", None), "id", "") if isinstance(function, ast.Attribute) else ""
            yield node, owner, getattr(function, "attr", None) or getattr(function, "id", "")


def refused(name, source):
    """What a source does that none may."""
    tree = ast.parse(source)
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    imported |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found = [f"imports {module}" for module in imported & (READS_OBJECTS - {"pickle"})]
    for node, owner, function in calls(tree):
        builtin = isinstance(node.func, ast.Name)
        options = {option.arg: ast.unparse(option.value) for option in node.keywords}
        if owner == "pickle" and function in ("load", "loads", "Unpickler") and name not in BETWEEN_OWN_PROCESSES:
            found.append("reads pickles")
        if (owner == "torch" and function == "load") or (builtin and function in RUNS_TEXT):
            found.append(f"calls {function}")
        if owner in ("np", "numpy") and function == "load" and options.get("allow_pickle", "False") != "False":
            found.append("reads pickles by numpy")
        if function in UNPACKS:
            found.append(f"unpacks archives into folders ({function})")
    from_pickle = any(isinstance(node, ast.ImportFrom) and node.module == "pickle" for node in ast.walk(tree))
    return [*found, *(["hides where it reads pickles"] if from_pickle else [])]


def test_nothing_read_is_run_and_no_archive_is_unpacked_into_a_folder():
    sources = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in SOURCES.rglob("*.py")}
    assert len(sources) > 150
    assert {name: wrong for name, text in sources.items() if (wrong := refused(name, text))} == {}


def test_what_may_not_be_is_found():
    for text in (
        "import pickle\npickle.loads(content)", "torch.load(path)", "eval(text)", "exec(text)", "import yaml",
        "np.load(path, allow_pickle=True)", "archive.extractall(folder)", "from pickle import loads",
        "compile(text, '', 'exec')", "shutil.unpack_archive(path)",
    ):  # fmt: skip
        assert refused("data/load.py", text), text
    assert not refused("testing/worker.py", "import pickle\npickle.loads(content)")
    assert not refused("data/load.py", "model.eval()\nnp.load(path, allow_pickle=False)\ntorch.compile(model)")
