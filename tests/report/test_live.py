import http.client
import json
import shutil
import threading

import pytest

from augtree.errors import ArgumentError
from augtree.report import LivePage
from support.reports import HOSTILE


@pytest.fixture
def served(made, tmp_path):
    """A live page of a comparison that has only begun."""
    (tmp_path / "run").mkdir()
    shutil.copy(made("compare") / "spec.json", tmp_path / "run")
    with LivePage(tmp_path / "run") as page:
        thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield page
        page.shutdown()
        thread.join()


def ask(page, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_needs_the_token_and_its_own_address(served):
    assert served.server_address[0] == "127.0.0.1"
    assert len(served.token) >= 32
    answer, body = ask(served, f"/{served.token}/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["Cache-Control"] == "no-store"
    assert b"This run is not finished" in body
    for path in (
        "/",
        f"/{served.token}",
        f"/{served.token[:-1]}/",
        f"/{served.token}x/",
        f"/{served.token}/other",
        "//",
    ):
        assert ask(served, path)[0].status == 404, path
    for host in ("evil.example", f"evil.example:{served.server_port}", "127.0.0.1"):
        answer, body = ask(served, f"/{served.token}/", Host=host)
        assert answer.status == 403
        assert served.token.encode() not in body
    assert ask(served, f"/{served.token}/", Host=f"localhost:{served.server_port}")[0].status == 200


def test_only_reading_is_answered(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.server_port, timeout=10)
    connection.request("POST", f"/{served.token}/", body=b"x")
    assert connection.getresponse().status == 501
    connection.close()


def test_what_has_changed_is_told(served, made):
    path = f"/{served.token}/news"
    first = json.loads(ask(served, path)[1])
    assert first["open"]
    assert first["order"] == ["head", "settings"]
    assert json.loads(ask(served, f"{path}?version={first['version']}")[1]) == {"open": True}
    for name in ("run.sqlite", "comparison.json"):
        shutil.copy(made("compare") / name, served.follower.run)
    news = json.loads(ask(served, f"{path}?version={first['version']}")[1])
    assert not news["open"]
    assert news["order"] == ["head", "comparison", "cost", "settings"]
    assert news["parts"]["head"]["version"] != first["parts"]["head"]["version"]
    assert HOSTILE[0] not in news["parts"]["comparison"]["html"]


def test_a_run_that_cannot_be_read_for_a_moment_keeps_its_page(served):
    path = f"/{served.token}/"
    assert ask(served, path)[0].status == 200
    (served.follower.run / "run.sqlite").write_bytes(b"half written")
    answer, body = ask(served, path)
    assert answer.status == 200
    assert b"This run is not finished" in body


def test_nothing_of_the_run_is_written(served):
    before = sorted(path.name for path in served.follower.run.iterdir())
    ask(served, f"/{served.token}/")
    assert sorted(path.name for path in served.follower.run.iterdir()) == before == ["spec.json"]


def test_a_port_in_use_is_an_error(served):
    with pytest.raises(ArgumentError, match="--port must be a free port of this machine"):
        LivePage(served.follower.run, served.server_port)
