"""A stand-in for the command `chaski` that acts as a local engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main() -> None:
    args = sys.argv[1:]
    mode = os.environ.get("FAKE_CHASKI", "")
    with open(os.environ["FAKE_CHASKI_LOG"], "a") as f:
        print(os.getpid(), *args, file=f)
    assert args[0] == "serve" and {"--stop-on-eof=True", "--root=/"} < set(args)
    print("some log line", file=sys.stderr)
    if mode == "die":
        sys.exit("chaski: no memory: limit")
    if mode == "wrapper":  # of a child that outlives it, and says nothing either
        subprocess.Popen(["sleep", "100"], stderr=subprocess.DEVNULL)
    elif mode == "nonsense":
        print("hello", flush=True)
    elif mode == "number":
        print('{"listen": 7}', flush=True)
    elif mode == "long":
        print("x" * 100_000, flush=True)
    elif mode == "elsewhere":
        print('{"listen": "192.0.2.1:7", "token": "t"}', flush=True)
    elif mode != "silent":
        # What takes a second on a busy machine comes after the log line, for which tests wait less.
        from concurrent import futures

        import grpc
        from helpers import FakeEngine, image_batch

        from chaski._proto import chaski_pb2_grpc

        (listen,) = (a.partition("=")[2] for a in args if a.startswith("--listen="))
        server = grpc.server(futures.ThreadPoolExecutor(8))
        engine = FakeEngine(samples=40)
        if mode == "stuck":  # once, at the third step
            engine.answer = lambda t, e: (
                None if t.first == 8 and e.streams == 1 else image_batch(t, e.samples)
            )
        chaski_pb2_grpc.add_ChaskiServicer_to_server(engine, server)
        port = server.add_insecure_port(listen)
        server.start()
        print(json.dumps({"listen": listen.replace(":0", f":{port}")}), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
