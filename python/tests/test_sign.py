"""Stores that need signatures, by functions of a process or by the commands of a file."""

from __future__ import annotations

import dataclasses
import datetime
import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import web

import chaski
from chaski import _sign

ROOT = Path(__file__).resolve().parents[2]
CHIPS = ROOT / "testdata" / "coast" / "coast_dir" / "DATA"
SECRET = "sig=open%2Bsesame"


@pytest.fixture
def store(
    binary: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """A server that gives bytes for a signature only, and forgets the functions of a test."""
    monkeypatch.delenv(_sign.VARIABLE, raising=False)
    keys = {"query": SECRET, "X-Key": SECRET, "Authorization": f"Bearer {SECRET}"}
    with web(CHIPS, lambda q, h: any({"query": q, **h}.get(k) == v for k, v in keys.items())) as w:
        yield w
    for prefix in list(_sign._signers):
        chaski.sign(prefix, None)


def chips(url: str) -> list[str]:
    return [f"{url}/{p.relative_to(CHIPS)}" for p in sorted(CHIPS.glob("*/s2/img.tif"))]


def pixels(source: object) -> np.ndarray:
    with chaski.load(source, batch_size=3, shuffle=False) as loader:
        return np.concatenate([b["image"][b["valid"]] for b in loader])


def commands(folder: Path, url: str, answer: object) -> str:
    """Writes the rules of a command, and returns their file."""
    script = folder / "signs.py"
    script.write_text(
        f"import json, sys\njson.load(sys.stdin)['uri']\nprint({json.dumps(answer)!r})"
    )
    file = folder / "sign.json"
    file.write_text(json.dumps({f"{url}/": [sys.executable, str(script)]}))
    return str(file)


def without_secret(folder: Path) -> None:
    for p in folder.rglob("*"):
        if p.is_file() and p.name != "signs.py":
            data = p.read_bytes()
            assert b"sesame" not in data, p


def test_functions(store, tmp_path: Path, capfd, caplog) -> None:
    """A function signs all that is read, by URLs, a query or headers, and is not asked twice."""
    url, _ = store
    want = pixels([str(p) for p in sorted(CHIPS.glob("*/s2/img.tif"))])
    with pytest.raises(chaski.Error, match="403"):
        pixels(chips(url))
    asked: list[str] = []
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    for answer in (
        lambda uri: f"{uri}?{SECRET}",
        lambda uri: {"query": SECRET, "expires": end},
        lambda uri: {"headers": {"x-key": SECRET}, "expires_in": 3600},
    ):
        asked.clear()

        def function(uri: str, answer=answer):
            asked.append(uri)
            return answer(uri)

        chaski.sign(f"{url}/", function)
        assert np.array_equal(pixels(chips(url)), want)
        if isinstance(answer(""), dict):
            assert len(asked) == 1, "one signature for all objects"
        assert len(asked) == len(set(asked))
    assert chaski.read(chips(url)[0]).shape == want[0].shape
    items = [
        {"type": "Feature", "id": str(k), "properties": {}, "assets": {"B": {"href": uri}}}
        for k, uri in enumerate(chips(url))
    ]
    catalog = chaski.stac(items, tmp_path / "c.parquet", ["B"])
    with chaski.load(catalog, batch_size=1, fields={"B": "B"}, shuffle=False) as loader:
        assert np.array_equal(next(iter(loader))["B"][0], want[0])
    without_secret(tmp_path)
    out, err = capfd.readouterr()
    assert "sesame" not in out + err + caplog.text


def test_pack(store, tmp_path: Path) -> None:
    """A function signs the files that chaski.pack copies, and the container has no signature."""
    url, _ = store
    about = {"id": "c", "dataset_version": "1", "description": "d", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "p"}], "tasks": ["other"]}
    rows = [{"id": str(k), "path": uri} for k, uri in enumerate(chips(url))]
    with pytest.raises(chaski.UnavailableError, match="403"):
        chaski.pack(rows, tmp_path / "a.tacozip", about)
    assert not (tmp_path / "a.tacozip").exists()
    chaski.sign(f"{url}/", lambda uri: {"query": SECRET})
    chaski.pack(rows, tmp_path / "a.tacozip", about, columns=["stac"])
    want = chaski.read(CHIPS / chips(url)[0].removeprefix(f"{url}/"))
    assert np.array_equal(chaski.read(f"{tmp_path}/a.tacozip::0"), want)
    without_secret(tmp_path)


def test_object_without_hash(store) -> None:
    """Objects that can be called sign, also those that have no hash, such as of dataclasses."""
    url, asked = store

    @dataclasses.dataclass
    class Signer:
        answer: dict[str, str]

        def __call__(self, uri: str) -> dict[str, str]:
            return self.answer

    chaski.sign(f"{url.replace('localhost', 'LOCALHOST')}/", Signer({"query": SECRET}))
    want = chaski.read(CHIPS / chips(url)[0].removeprefix(f"{url}/"))
    assert np.array_equal(chaski.read(chips(url)[0]), want)
    chaski.sign(f"{url}/", Signer({"query": "sig=other"}))
    assert len(_sign.key()) == 1
    with pytest.raises(chaski.Error, match="403"):
        chaski.read(chips(url)[0])


def test_function_fails(store, capfd, caplog) -> None:
    """The words of an exception may hold the signature: only its name is told."""
    url, _ = store

    def function(uri: str) -> str:
        raise ValueError("sesame")

    chaski.sign(f"{url}/", function)
    with pytest.raises(chaski.UnavailableError, match='no signature: .*"ValueError"') as e:
        pixels(chips(url))
    assert chips(url)[0] in str(e.value)
    out, err = capfd.readouterr()
    assert "sesame" not in str(e.value) + out + err + caplog.text


def test_commands(store, binary: str, tmp_path: Path, monkeypatch) -> None:
    """Commands and jobs sign by a file; nothing that they write has a signature."""
    url, asked = store
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")

    def run(*args: object, good: bool = True) -> str:
        ran = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
        assert (ran.returncode == 0) == good, ran.stderr
        assert "sesame" not in ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    assert "403" in run("index", "--format", "parquet", "-o", "x.parquet", *chips(url), good=False)
    monkeypatch.setenv(_sign.VARIABLE, commands(tmp_path, url, {"token": SECRET}))
    run("index", "--format", "parquet", "-o", "all.parquet", *chips(url))
    asked.clear()
    run("stats", "-o", "stats.json", "all.parquet")
    assert asked, "it reads pixels"
    run("plan", "--batch", 2, "all.parquet")
    run("verify", "all.parquet")
    chaski.jobs.run(["stats", "-o", "shards.json", "all.parquet"], 2)
    without_secret(tmp_path)
    monkeypatch.setenv(_sign.VARIABLE, str(tmp_path / "none.json"))
    assert "CHASKI_SIGN" in run("stats", "all.parquet", good=False)


def test_server(store, binary: str, tmp_path: Path, monkeypatch) -> None:
    """A server signs by its own file, and asks no function of a client."""
    url, _ = store
    asked: list[str] = []

    def function(uri: str) -> str:
        asked.append(uri)
        return f"{uri}?{SECRET}"

    chaski.sign(f"{url}/", function)
    for k, signs in enumerate((False, True)):
        if signs:
            file = commands(tmp_path, url, {"headers": {"X-Key": SECRET}})
            monkeypatch.setenv(_sign.VARIABLE, file)
        command = [binary, "serve", "--listen", f"unix:{tmp_path / f's{k}'}", "--root", "http://"]
        server = subprocess.Popen(
            [*command, "--stop-on-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        target = json.loads(server.stdout.readline())["listen"]
        uri = chips(url)[0]
        try:
            if signs:
                got = chaski.read(uri, server=target)
                assert np.array_equal(got, chaski.read(CHIPS / uri.removeprefix(f"{url}/")))
            else:
                with pytest.raises(chaski.Error, match="403"):
                    chaski.read(uri, server=target)
        finally:
            out, err = server.communicate(timeout=300)
        assert "sesame" not in out + err
    assert not asked


def test_page(store, binary: str, tmp_path: Path, monkeypatch) -> None:
    """The forms of the page are taken; that of Earthdata is also used."""
    url, _ = store
    page = (ROOT / "docs/remote-data.md").read_text()
    block, rules = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "json"))
    known = types.SimpleNamespace(sign=lambda uri: uri)
    exec(block, {"planetary_computer": known, "earthdata_token": SECRET})
    taken = dict(_sign._signers)
    assert taken["https://"] is known.sign
    earthdata = "https://data.lpdaac.earthdatacloud.nasa.gov/"
    want = chaski.read(CHIPS / chips(url)[0].removeprefix(f"{url}/"))
    chaski.sign(f"{url}/", taken[earthdata])
    assert np.array_equal(chaski.read(chips(url)[0]), want)
    for prefix in list(_sign._signers):
        chaski.sign(prefix, None)
    commands = json.loads(rules)
    assert list(commands)[0].startswith("https://sentinel2l2a01.")
    (tmp_path / "sign.json").write_text(rules.replace(earthdata, f"{url}/"))
    monkeypatch.setenv(_sign.VARIABLE, str(tmp_path / "sign.json"))
    monkeypatch.setenv("EARTHDATA_TOKEN", SECRET)
    assert np.array_equal(chaski.read(chips(url)[0]), want)


def test_arguments() -> None:
    for prefix, function in (
        ("s3://b/", str),
        ("https://a", str),
        (1, str),
        ("https://a/", "signs"),
        ("https:///", str),
        ("https://a b/", str),
        ("https://a/?b=/", str),
        ("https://[a/", str),
        ("https://a:b/", str),
        ("http://a.example/", str),
    ):
        with pytest.raises(chaski.SpecError):
            chaski.sign(prefix, function)  # type: ignore[arg-type]
