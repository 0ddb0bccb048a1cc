import threading
import urllib.request

import pytest

import augtree as at
from augtree.errors import ArgumentError
from support.commands import invoke, last


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    task = at.tasks.Classification(model="cnn", steps=2, batch_size=16, device="cpu")
    at.compare(
        at.data.load("digits", train=60, val=60), task, {"none": None, "ra": "randaugment"}, seeds=1, out=folder
    )
    return folder


def test_the_page_is_written_beside_the_run_or_where_it_is_wanted(run, tmp_path):
    done = invoke("report", run)
    assert f"The page: {run}/report.html" in done.stdout
    assert last(invoke("report", run, "--out", tmp_path / "page.html", "--json")) == {
        "page": str(tmp_path / "page.html")
    }
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_the_page_is_opened_on_request(run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    invoke("report", run, "--open")
    assert opened == [(run / "report.html").resolve().as_uri()]


def test_options_that_do_not_go_together_are_refused(run, tmp_path):
    with pytest.raises(ArgumentError, match="--port must be left out without --live"):
        invoke("report", run, "--port", 8000)
    with pytest.raises(ArgumentError, match="--out must be left out with --live"):
        invoke("report", run, "--live", "--out", tmp_path / "page.html")


def test_a_live_page_is_served_until_it_is_interrupted(run, monkeypatch):
    def serve(page):
        with urllib.request.urlopen(urllib.request.Request(page.address, method="GET")) as answer:
            asked.append(answer.read())

    def serve_once(page):
        asking = threading.Thread(target=serve, args=(page,))
        asking.start()
        page.handle_request()
        asking.join()
        raise KeyboardInterrupt

    asked, opened = [], []
    monkeypatch.setattr("augtree.cli.report.LivePage.serve_forever", serve_once)
    monkeypatch.setattr("webbrowser.open", opened.append)
    done = invoke("report", run, "--live", "--open")
    assert b"Policies compared on digits" in asked[0]
    assert opened[0].startswith("http://127.0.0.1:")
    assert opened[0] in done.stdout
    assert "The page is not served any more." in done.stdout
