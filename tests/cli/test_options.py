import dataclasses
import inspect

import pytest
import typer
from typer.testing import CliRunner

from augtree.cli.fields import arguments_of, docs_of, options_of
from augtree.cli.options import TASK_OPTIONS, make_task, task_arguments
from augtree.errors import AugtreeError
from augtree.evaluation.protocols import PROTOCOLS
from augtree.forests import Weighting
from augtree.search import options as search_options
from augtree.search.scorers import SCORERS
from augtree.tasks import TASKS


@dataclasses.dataclass
class Base:
    size: int = 2
    """How large."""
    names: tuple[str, ...] = ("a", "b")
    """What it
    is called."""


@dataclasses.dataclass
class Special(Base):
    size: int = 3
    """How large it may be."""
    loud: bool = False
    """Whether it is loud."""
    rate: float | None = None
    """The rate; None is 0.1."""


def test_fields_become_options_and_their_docstrings_the_help():
    assert docs_of(Special) == {
        "size": "How large it may be.",
        "names": "What it is called.",
        "loud": "Whether it is loud.",
        "rate": "The rate; None is 0.1.",
    }
    app = typer.Typer()

    def command(**given):
        print(Special(**arguments_of(Special, given)))

    parameters = options_of(Special, "Things")
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    app.command()(command)
    invoke = CliRunner().invoke
    assert invoke(app, []).stdout.strip() == str(Special())
    done = invoke(app, ["--size", "4", "--names", "x,y", "--loud", "--rate", "0.5"])
    assert done.stdout.strip() == str(Special(4, ("x", "y"), loud=True, rate=0.5))
    shown = " ".join(invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout.split())
    assert "How large it may be (default: 3)." in shown
    assert "What it is called (default: a,b)." in shown
    assert "Whether it is loud." in shown


def test_texts_and_default_texts_replace_those_of_the_fields():
    parameters = options_of(
        Special, "Things", skip=["loud", "rate"], texts={"size": "The size."}, default_texts={"names": "none"}
    )
    helps = {p.name: p.annotation.__metadata__[0].help for p in parameters}
    assert helps == {"size": "The size (default: 3).", "names": "What it is called (default: none)."}


@pytest.mark.parametrize(
    "owner", [*TASKS.values(), search_options.SearchOptions, Weighting, *SCORERS.values()], ids=lambda c: c.__name__
)
def test_every_option_has_its_help(owner):
    missing = {field.name for field in dataclasses.fields(owner)} - docs_of(owner).keys()
    assert not missing


def test_every_field_of_a_task_is_an_option():
    names = {parameter.name for parameter in TASK_OPTIONS}
    for owner in TASKS.values():
        assert {field.name for field in dataclasses.fields(owner)} - {"options"} <= names  # weights stand for options


def test_a_protocol_s_name_is_a_contrastive_task_with_its_settings():
    found = make_task(**task_arguments(task_kind="graphcl", steps=3, judge="ridge"))
    assert found == PROTOCOLS["graphcl"].task(steps=3, judge="ridge")
    assert (found.lr, found.views, found.schedule) == (0.01, "one", "constant")
    with pytest.raises(AugtreeError, match="--ratio must be left out for --task contrastive, got 7"):
        make_task(**task_arguments(task_kind="graphcl", ratio=7))
    with pytest.raises(AugtreeError, match="--task must be one of classification, .*, graphcl, tree-paper"):
        make_task(**task_arguments(task_kind="linear"))
