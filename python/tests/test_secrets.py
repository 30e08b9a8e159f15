"""No text of the package has a secret of a URI that it was given."""

from __future__ import annotations

import http.server
import json
import pickle
import threading
from collections.abc import Callable, Iterator

import pytest

import chaski
import chaski.taco
from chaski._secrets import without_secrets

SECRET = "hunter2canary"
QUERIES = [
    "sig=",
    "X-Amz-Signature=",
    "X-Amz-Credential=",
    "X-Amz-Security-Token=",
    "X-Goog-Signature=",
    "token=",
    "key=",
    "",
]


class _Empty(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def uris(host: str) -> list[str]:
    """Returns a URI for each way in which URIs have secrets."""
    return [
        f"http://user:{SECRET}@{host}/a.tif",
        f"http://{SECRET}@{host}/a.tif",
        *(f"http://{host}/a.tif?{query}{SECRET}" for query in QUERIES),
    ]


@pytest.mark.parametrize(
    "call",
    [
        chaski.read,
        chaski.info,
        chaski.stats,
        lambda uri: chaski.taco.load(uri).read(0),
        lambda uri: chaski.load(uri, fields="image"),
        lambda uri: chaski.read(uri, y="wrong"),
        lambda uri: chaski.load(uri, batch_size=0),
        lambda uri: chaski.load({"a": uri, "b": f"{uri}.csv"}, weights={"c": 1}),
    ],
)
def test_errors_have_no_secrets(host: str, call: Callable[[str], object]) -> None:
    for uri in uris(host):
        with pytest.raises(Exception) as e:  # noqa: PT011 - whatever it is
            call(uri)
        error: BaseException | None = e.value
        while error is not None:
            shown = f"{error} {error!r} {vars(error)!r} {getattr(error, '__notes__', '')!r}"
            assert SECRET not in shown, shown
            error = error.__cause__ or error.__context__
        again = pickle.loads(pickle.dumps(e.value))
        assert SECRET not in f"{again} {again!r}"


def test_reprs_have_no_secrets(host: str) -> None:
    for uri in uris(host):
        assert SECRET not in repr(chaski.taco.load(uri))
        assert SECRET not in repr(chaski.Scenes(uri, {"image": {}}))


def test_rules() -> None:
    """The rules are those of fault.WithoutSecrets."""
    for text, want in {
        "https://u:p@ss@host/a.tif": "https://…@host/a.tif",
        "https://u:p/s:s@host/a.tif": "https://…@host/a.tif",
        "https://host:8080/a@b": "https://host:8080/a@b",
        "https://host/a.tif?sig=p&x=p: header": "https://host/a.tif?…: header",
        json.dumps({"a": 'https://host/a?x"', "b": 2}): r'{"a": "https://host/a?…\"", "b": 2}',
        "AccountName=a;AccountKey=p==;EndpointSuffix=x": (
            "AccountName=a;AccountKey=…;EndpointSuffix=x"
        ),
        "C:/data/a@b.tif?": "C:/data/a@b.tif?",
    }.items():
        assert without_secrets(text) == want
