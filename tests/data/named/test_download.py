import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from augtree.data import load
from augtree.data.named import catalogue
from augtree.data.named.catalogue import CATALOGUE, Remote
from augtree.data.named.download import fetch, md5_of, unlike_published
from augtree.errors import ArgumentError, DataError

CONTENT = {"/train.gz": b"train" * 1000, "/test.gz": b"test", "/extra.gz": b"extra", "/whole.tar.gz": b"whole"}


@pytest.fixture
def server():
    """Gives out the content; /short ends too early."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = CONTENT.get(self.path, b"123" if self.path == "/short" else None)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(99 if self.path == "/short" else len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    found.asked = asked
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


def md5(content):
    return hashlib.md5(content).hexdigest()


def named(server, monkeypatch, *remotes):
    """A set of its own in the catalogue: (path on the server, md5, optional)."""
    base = f"http://127.0.0.1:{server.server_address[1]}"
    made = replace(
        CATALOGUE["mnist"],
        name="toy",
        folders=("toy",),
        marks=("test.gz", "test", "unpacked"),
        remotes=tuple(Remote(f"toy{path}", base + path, sum_, optional) for path, sum_, optional in remotes),
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "toy", made)


def listing(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_files_are_fetched_once_and_optional_ones_if_asked(server, monkeypatch, tmp_path):
    all_files = [(path, md5(CONTENT[path]), path == "/extra.gz") for path in ("/train.gz", "/test.gz", "/extra.gz")]
    named(server, monkeypatch, *all_files)
    told = []
    fetch("toy", tmp_path, tell=told.append)
    assert listing(tmp_path) == ["toy/test.gz", "toy/train.gz"]
    assert (tmp_path / "toy" / "train.gz").read_bytes() == CONTENT["/train.gz"]
    assert [text.rsplit("/", 1)[1] for text in told] == ["train.gz", "test.gz"]
    fetch("toy", tmp_path)
    assert len(server.asked) == 2
    fetch("toy", tmp_path, optional=True)
    assert listing(tmp_path) == ["toy/extra.gz", "toy/test.gz", "toy/train.gz"]


def test_what_is_there_is_never_fetched_or_written_over(server, monkeypatch, tmp_path):
    named(server, monkeypatch, ("/train.gz", None, False), ("/test.gz", None, False), ("/whole.tar.gz", None, False))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "test").write_bytes(b"mine, unpacked")
    (tmp_path / "toy" / "train.gz").write_bytes(b"mine")
    fetch("toy", tmp_path)
    assert server.asked == []
    assert (tmp_path / "toy" / "train.gz").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("path", "sum_", "message"),
    [
        ("/test.gz", "0" * 32, f"its md5 must be {'0' * 32}, got {md5(b'test')}; nothing was kept"),
        ("/nothing", None, "cannot be fetched to .*toy/nothing .*Not Found"),
        ("/short", None, "cannot be fetched to .*short"),
    ],
)
def test_nothing_is_kept_of_what_is_not_right(server, monkeypatch, tmp_path, path, sum_, message):
    named(server, monkeypatch, (path, sum_, False))
    with pytest.raises(DataError, match=message):
        fetch("toy", tmp_path)
    assert listing(tmp_path) == []


def test_nobody_answers(monkeypatch, tmp_path):
    made = replace(CATALOGUE["mnist"], name="toy", remotes=(Remote("toy/a", "http://127.0.0.1:9/a"),))
    monkeypatch.setitem(catalogue.CATALOGUE, "toy", made)
    with pytest.raises(DataError, match=r"http://127.0.0.1:9/a: cannot be fetched to .*refused"):
        fetch("toy", tmp_path)


def test_only_links_of_the_web(monkeypatch, tmp_path):
    made = replace(CATALOGUE["mnist"], name="toy", remotes=(Remote("toy/a", "file:///etc/hostname"),))
    monkeypatch.setitem(catalogue.CATALOGUE, "toy", made)
    with pytest.raises(DataError, match="a link must begin with https:// or http://, got file:"):
        fetch("toy", tmp_path)
    assert listing(tmp_path) == []


def test_sets_without_links_say_where_they_are(tmp_path):
    with pytest.raises(DataError, match=r"iwildcam must be fetched by hand, from https://wilds.* below "):
        load("iwildcam", tmp_path, download=True)
    with pytest.raises(DataError, match="aptos2019 must be fetched by hand"):
        load("retinopathy", tmp_path, download=True)
    with pytest.raises(ArgumentError, match="download must be left out for here: it is for named sets"):
        load("here", tmp_path, download=True)
    assert load("digits", tmp_path, download=True).name == "digits"


def test_checksums(tmp_path):
    path = tmp_path / "train_32x32.mat"
    path.write_bytes(b"x")
    assert md5_of(path) == md5(b"x")
    expected = (
        f"train_32x32.mat is not the published file: its md5 is {md5(b'x')}, not e26dedcc434d2e4c54c9b2d4a06d8373"
    )
    assert unlike_published("svhn", [path]) == (expected,)
    (tmp_path / "other.mat").write_bytes(b"x")
    assert unlike_published("svhn", [tmp_path / "other.mat"]) == ()
