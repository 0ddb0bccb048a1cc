import pkgutil
import signal
import subprocess
import sys
from importlib import import_module

import pytest
import typer

import augtree as at
from augtree import cli
from augtree.cli.app import COMMANDS, new_folder, stoppable
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


def test_a_handler_that_was_not_set_from_python_is_not_put_back(tmp_path, monkeypatch):
    handlers = []
    monkeypatch.setattr(signal, "signal", lambda _, handler: handlers.append(handler))
    with stoppable(tmp_path):
        pass
    assert len(handlers) == 1
    assert callable(handlers[0])


def test_the_help_page_and_the_version_need_neither_torch_nor_the_commands():
    program = (
        "import sys; from augtree.__main__ import main; sys.argv = ['augtree', {!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {{'torch', 'numpy', 'augtree.cli.search'}} & {{*sys.modules}}"
    )
    for option in ("--version", "--help"):
        done = subprocess.run([sys.executable, "-c", program.format(option)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_page_has_the_first_line_of_each_command(name):
    shown = " ".join(invoke(name, "--help").stdout.split())
    assert COMMANDS[name] in shown
    assert shown.startswith(f"Usage: augtree {name} ")


def test_every_command_is_on_the_help_page():
    for module in pkgutil.iter_modules(cli.__path__):
        import_module(f"augtree.cli.{module.name}")
    group = typer.main.get_group(cli.app)
    assert {*group.commands} == {*COMMANDS}


def test_unknown_commands_are_refused():
    done = invoke("serch")
    assert done.exit_code == 2
    assert "No such command" in done.output
