import augtree as at
from augtree.cli.app import new_folder
from support.commands import invoke


def test_version():
    assert invoke("--version").stdout == f"augtree {at.__version__}\n"


def test_help_names_the_commands():
    done = invoke("--help")
    assert done.exit_code == 0
    for command in ("demo", "apply", "search", "resume", "runs", "compare", "train"):
        assert command in done.stdout


def test_new_folders_are_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = new_folder("search")
    first.mkdir(parents=True)
    assert new_folder("search") != first
