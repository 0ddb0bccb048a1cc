import dataclasses
import os
import pkgutil
import re
import signal
import subprocess
import sys
from importlib import import_module

import pytest
import typer

import augtree as at
from augtree import cli
from augtree.__main__ import main
from augtree.cli.app import COMMANDS, new_folder, stoppable
from augtree.search.scorers import SCORERS
from support.commands import QUICK, invoke


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


def test_the_help_of_a_search_is_short_and_the_complete_one_has_every_option():
    wide = {"COLUMNS": "100"}
    brief, whole = (invoke("search", option, env=wide).stdout for option in ("--help", "--help-all"))
    assert brief.count("\n") < 90
    named = [set(re.findall(r"--[a-z-]+", text)) for text in (brief, whole)]
    assert {"--budget", "--model", "--set", "--out", "--help-all"} <= named[0]
    options = {name for p in typer.main.get_group(cli.app).commands["search"].params for name in p.opts}
    assert {name for name in options if name.startswith("--")} <= named[1]
    for owner in SCORERS.values():
        for field in dataclasses.fields(owner):
            assert f"\n   {field.name}=" in whole


def test_every_command_is_on_the_help_page():
    for module in pkgutil.iter_modules(cli.__path__):
        import_module(f"augtree.cli.{module.name}")
    group = typer.main.get_group(cli.app)
    assert {*group.commands} == {*COMMANDS}


def test_unknown_commands_are_refused():
    done = invoke("serch")
    assert done.exit_code == 2
    assert "No such command" in done.output


# ---- a closed output


@pytest.fixture
def with_closed_output(monkeypatch):
    """Runs the command as a shell does, with an output that nobody reads; the exit status."""

    def run(*arguments):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as closed, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", closed)
            patched.setattr(sys, "argv", ["augtree", *map(str, arguments)])
            with pytest.raises(SystemExit) as end:
                main()
        return end.value.code or 0

    return run


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_short_command_ends_quietly_where_its_output_is_closed(with_closed_output, more, capsys, tmp_path):
    assert with_closed_output("runs", tmp_path, *more) == 141
    assert capsys.readouterr().err in ("", f"No runs in {tmp_path}.\n")


def test_a_run_goes_on_where_its_output_is_closed(with_closed_output, capsys, tmp_path):
    assert with_closed_output("train", "digits", "--train", 60, "--val", 60, *QUICK, "--out", tmp_path / "t") == 0
    said = capsys.readouterr().err
    assert said == "augtree: the output is closed; the run goes on without it (augtree runs lists it)\n"
    assert (tmp_path / "t" / "model.safetensors").is_file()
