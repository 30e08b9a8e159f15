"""A stand-in for the command `chaski` that acts as a local engine."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import select
import socket
import subprocess
import sys


def main() -> None:
    args = sys.argv[1:]
    mode = os.environ.get("FAKE_CHASKI", "")
    with open(os.environ["FAKE_CHASKI_LOG"], "a") as f:
        print(os.getpid(), *args, file=f)
    assert args[0] == "serve" and "--root=/" in args
    flags = dict(a.removeprefix("--").split("=", 1) for a in args[1:])
    assert ("held-at" in flags) != (flags.get("stop-on-eof") == "True")
    door = listen_at(flags["held-at"]) if "held-at" in flags else None
    line = ""
    print("some log line", file=sys.stderr)
    if mode == "die":
        sys.exit("chaski: no memory: limit")
    if mode == "wrapper":  # of a child that outlives it, and says nothing either
        subprocess.Popen(["sleep", "100"], stderr=subprocess.DEVNULL)
    elif mode == "nonsense":
        line = "hello"
    elif mode == "number":
        line = '{"listen": 7}'
    elif mode == "long":
        line = "x" * 100_000
    elif mode == "elsewhere":
        line = '{"listen": "192.0.2.1:7", "token": "t"}'
    elif mode != "silent":
        # What takes a second on a busy machine comes after the log line, for which tests wait less.
        from concurrent import futures

        import grpc
        from helpers import FakeEngine, image_batch

        from chaski._proto import chaski_pb2_grpc

        listen = flags["listen"]
        server = grpc.server(futures.ThreadPoolExecutor(8))
        engine = FakeEngine(samples=40)
        if mode == "stuck":  # once, at the third step
            engine.answer = lambda t, e: (
                None if t.first == 8 and e.streams == 1 else image_batch(t, e.samples)
            )
        chaski_pb2_grpc.add_ChaskiServicer_to_server(engine, server)
        port = server.add_insecure_port(listen)
        server.start()
        line = json.dumps({"listen": listen.replace(":0", f":{port}"), "pid": os.getpid()})
    if line:
        with contextlib.suppress(OSError):  # nobody reads it all
            print(line, flush=True)
    if door is None:
        sys.stdin.read()
    else:
        be_held(door, line)
    os._exit(0)


def listen_at(address: str) -> socket.socket:
    """Listens at a door; ends this process if another one does."""
    kind, _, name = address.partition(":")
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind("\0" + name if kind == "unix-abstract" else name)
    except OSError:
        sys.exit(0)
    door.listen()
    return door


def be_held(door: socket.socket, line: str) -> None:
    """Tells each process that comes to the door the line, and returns after the last has gone."""
    held: set[socket.socket] = set()
    come = True
    while come or held:
        ready, _, _ = select.select([door, *held], [], [], None if held else 20)
        come = door in ready
        for gone in held.intersection(ready):
            held.remove(gone)
            gone.close()
        if come:
            conn, _ = door.accept()
            with contextlib.suppress(OSError):  # it may have heard enough
                conn.sendall(b"00" * 16 + b"\n")
                digest = os.environ["CHASKI_HELD_FOR"].encode()
                shown = hmac.digest(digest, bytes(16), "sha256").hex().encode()
                same = conn.recv(64, socket.MSG_WAITALL) == shown
                conn.sendall(line.encode() + b"\n" if same else b"other\n")
            held.add(conn)
    if os.path.exists(path := door.getsockname()):
        os.unlink(path)


main()
