"""Tokens and certificates: who is let in, and that a token shows nowhere."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import re
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pages import blocks

import chaski
from chaski._access import check_plain

SCENE = Path(__file__).parents[2] / "testdata" / "demo" / "coast.tif"
SECRET = "chaski_" + "s" * 43


@contextmanager
def serving(binary: str, *flags: str) -> Iterator[tuple[str, str]]:
    """Runs a server on a loopback address; yields its address and the token that it makes."""
    command = [binary, "serve", "--listen", "127.0.0.1:0", "--root", str(SCENE.parent), *flags]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as p:
        try:
            target = json.loads(p.stdout.readline())["listen"]
            made = ""
            if "--tokens" not in flags:
                made = re.search(r"CHASKI_TOKEN=(\S+)", p.stderr.readline() + p.stderr.readline())[
                    1
                ]
            yield target, made
        finally:
            p.terminate()


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("CHASKI_TOKEN", raising=False)
    monkeypatch.delenv("CHASKI_TOKEN_FILE", raising=False)


OPTIONS = {"batch_size": 2, "window": chaski.Grid((256, 256)), "shuffle": False}


def first(target, **engine) -> np.ndarray:
    with chaski.connect(target, SCENE, **OPTIONS, engine=chaski.Engine(**engine)) as loader:
        return np.array(next(iter(loader))["image"])


def test_a_token_lets_in(binary, monkeypatch, tmp_path):
    """By argument, file and environment; to the server itself, and through the local engine."""
    with chaski.load(SCENE, **OPTIONS) as loader:
        want = np.array(next(iter(loader))["image"])
    with serving(binary) as (a, made), serving(binary) as (b, other):
        file = tmp_path / "token"
        file.write_text(made + "\n")
        for transport in ("shm", "grpc", "auto"):
            for token in (made, chaski.Token(made), chaski.Token.file(file)):
                assert np.array_equal(first(a, token=token, transport=transport), want)
        # The local engine is the client: a second server that knows another token does not answer.
        with pytest.raises(chaski.AccessError):
            first(b, token=made)
        assert np.array_equal(first([a, "localhost:" + a.split(":")[1]], token=made), want)
        assert np.array_equal(
            first([b, "dns:" + b.replace("127.0.0.1", "localhost")], token=other), want
        )
        connection = chaski.Connection(a, token=made)
        assert chaski.info(SCENE, server=connection)["raster"]
        for name, value in (("CHASKI_TOKEN", made), ("CHASKI_TOKEN_FILE", str(file))):
            with monkeypatch.context() as m:
                m.setenv(name, value)
                assert np.array_equal(first(a), want)
                assert np.array_equal(first([a]), want)
                assert chaski.info(SCENE, server=a)["raster"]


def test_nobody_else_is_let_in(binary, caplog):
    """No token, and a wrong one, are AccessErrors that show no token, as nothing else does."""
    with serving(binary) as (target, made), caplog.at_level(logging.DEBUG):
        several = [target, "localhost:" + target.split(":")[1]]
        for where in (target, several):
            for token in (None, SECRET):
                with pytest.raises(chaski.AccessError, match="token") as e:
                    first(where, token=token)
                assert e.value.kind == "access"
                text = "".join(traceback.format_exception(e.value))
                assert SECRET not in text and made not in text
        with pytest.raises(chaski.AccessError):
            chaski.info(SCENE, server=target)
    assert SECRET not in caplog.text


def test_a_token_shows_nowhere(binary, tmp_path):
    token = chaski.Token(SECRET)
    engine = chaski.Engine(token=SECRET)
    assert engine.token == token
    for thing in (
        token,
        engine,
        {"engine": engine},
        dataclasses.asdict(engine),
        dataclasses.astuple(engine),
        chaski.Connection("127.0.0.1:1", token=SECRET),
    ):
        assert SECRET not in repr(thing) + str(thing)
    assert copy.deepcopy(engine) == engine
    for thing in (token, engine):
        with pytest.raises(TypeError, match=r"not pickled") as e:
            pickle.dumps(thing)
        assert SECRET not in str(e.value)
    file = tmp_path / "token"
    file.write_text(SECRET)
    named = pickle.dumps(chaski.Token.file(file))
    assert SECRET.encode() not in named and pickle.loads(named).text() == SECRET
    for wrong in ("", " ", "a b", "ä", 5):
        with pytest.raises(chaski.SpecError) as refused:
            chaski.Token(wrong)
        assert "ä" not in str(refused.value)
    with pytest.raises(chaski.SpecError, match="load has no use for it") as e:
        chaski.load(SCENE, batch_size=1, engine=engine)
    assert SECRET not in str(e.value)
    with serving(binary) as (target, made):
        with chaski.connect(target, SCENE, **OPTIONS, engine=chaski.Engine(token=made)) as loader:
            next(iter(loader))
            state = json.dumps(loader.state_dict())
            assert made not in state + json.dumps(loader.spec) + repr(loader)
            processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
            assert made not in processes.stdout


def test_plain_text_stays_on_this_machine(monkeypatch):
    """A token goes to another host over TLS only, wherever it comes from."""
    here = (
        "127.0.0.1:1",
        "[::1]:1",
        "localhost:1",
        "unix:/x",
        "unix-abstract:x",
        "dns:localhost:1",
    )
    for target in here:
        check_plain(target)
    away = (
        "10.0.0.1:1",
        "example.org:1",
        "0.0.0.0:1",
        "localhost.evil.org:1",
        "127.0.0.1.evil.org:1",
    )
    for target in away:
        with pytest.raises(chaski.SpecError, match="plain text"):
            check_plain(target)
        with pytest.raises(chaski.SpecError, match="plain text"):
            chaski.Connection(target, token=SECRET)
        chaski.Connection(target, token=SECRET, plain_token=True).close()
        chaski.Connection(target, token=SECRET, credentials=chaski.tls()).close()
        with pytest.raises(chaski.SpecError, match="plain text"):
            first(["127.0.0.1:1", target], token=SECRET)
        with monkeypatch.context() as m:
            m.setenv("CHASKI_TOKEN", SECRET)
            with pytest.raises(chaski.SpecError, match="plain text"):
                first(target)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")
def test_mutual_tls(binary, tmp_path):
    """A server with mTLS and tokens asks for both, and is trusted by its authority alone."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=tmp_path)

    def make(name: str) -> None:
        openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
        )

    make("one")
    make("two")
    line = subprocess.run([binary, "token", "alice"], capture_output=True, text=True, check=True)
    made = line.stderr.splitlines()[-1]
    (tmp_path / "tokens").write_text(line.stdout)
    one, two, key = tmp_path / "one.pem", tmp_path / "two.pem", tmp_path / "one.key"
    flags = [
        "--tls-cert",
        one,
        "--tls-key",
        key,
        "--client-ca",
        one,
        "--tokens",
        tmp_path / "tokens",
    ]
    trust = chaski.tls(one, one, key)
    with serving(binary, *map(str, flags)) as (target, _):
        several = [target, "localhost:" + target.split(":")[1]]
        for where in (target, several):
            assert first(where, credentials=trust, token=made).shape[0] == 2
            with pytest.raises(chaski.AccessError):
                first(where, credentials=trust)
            for wrong in (chaski.tls(one), chaski.tls(two, one, key)):
                with pytest.raises(chaski.UnavailableError):
                    first(where, credentials=wrong, token=made, patience=0)
            with pytest.raises(chaski.UnavailableError):
                first(where, token=made, patience=0)
        # The block of docs/operations.md, with the files and the server of this test.
        (block,) = blocks("docs/operations.md")
        (tmp_path / "token").write_text(made)
        for shown, real in {
            "/run/secrets/chaski": tmp_path / "token",
            '"ca.pem"': f'"{one}"',
            "me.pem": one,
            "me.key": key,
            "gpu7:7447": target,
            "/data/chips/a.tif": SCENE,
            "/data/chips": SCENE,
        }.items():
            assert shown in block
            block = block.replace(shown, str(real))
        names: dict[str, Any] = {"chaski": chaski}
        exec(block, names)
        with names["loader"] as loader:
            assert np.array_equal(next(iter(loader))["image"][0], names["image"])
        assert np.array_equal(names["image"], chaski.read(SCENE))
    with pytest.raises(chaski.SpecError):
        chaski.tls(one, one)
    with pytest.raises(chaski.SpecError):
        chaski.tls(tmp_path / "none.pem")
    (tmp_path / "a.der").write_bytes(b"\x30\x82")
    with pytest.raises(chaski.SpecError, match="ca is .*a.der.*: it must be a file in PEM"):
        chaski.tls(tmp_path / "a.der")
    with pytest.raises(chaski.SpecError, match="key is .*a.der.*: it must be a file in PEM"):
        chaski.tls(None, one, tmp_path / "a.der")
