"""Receives batches over one stream and prints how fast, for several sets of channel options.

Usage: stream.py TARGET. Run by BenchmarkPython of package grpc/server.
"""

import importlib
import json
import os
import pathlib
import sys
import time
import types

import grpc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "python" / "src" / "chaski" / "_proto"
BATCHES = int(os.environ.get("CHASKI_BATCHES", "12"))
RUNS = int(os.environ.get("CHASKI_RUNS", "3"))
G = 64

# The generated modules, without the package around them.
for name, path in (("chaski", PROTO.parent), ("chaski._proto", PROTO)):
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module
pb = importlib.import_module("chaski._proto.chaski_pb2")
stubs = importlib.import_module("chaski._proto.chaski_pb2_grpc")

NO_LIMIT = [("grpc.max_receive_message_length", -1)]
OPTIONS = {
    "default": NO_LIMIT,
    "throughput": NO_LIMIT + [("grpc.optimization_target", "throughput")],
    "frame 16M": NO_LIMIT + [("grpc.http2.max_frame_size", (1 << 24) - 1)],
    "lookahead 4M": NO_LIMIT + [("grpc.http2.lookahead_bytes", 4 << 20)],
    "lookahead 8M": NO_LIMIT + [("grpc.http2.lookahead_bytes", 8 << 20)],
    "lookahead 32M": NO_LIMIT + [("grpc.http2.lookahead_bytes", 32 << 20)],
    "lookahead 16M, frame 16M": NO_LIMIT
    + [("grpc.http2.lookahead_bytes", 16 << 20), ("grpc.http2.max_frame_size", (1 << 24) - 1)],
    "lookahead 8M, no bdp": NO_LIMIT + [("grpc.http2.lookahead_bytes", 8 << 20), ("grpc.http2.bdp_probe", 0)],
    "lookahead 8M, throughput": NO_LIMIT
    + [("grpc.http2.lookahead_bytes", 8 << 20), ("grpc.optimization_target", "throughput")],
    "lookahead 8M, read 1M": NO_LIMIT
    + [
        ("grpc.http2.lookahead_bytes", 8 << 20),
        ("grpc.experimental.tcp_min_read_chunk_size", 1 << 20),
        ("grpc.experimental.tcp_read_chunk_size", 1 << 20),
        ("grpc.experimental.tcp_max_read_chunk_size", 8 << 20),
    ],
}


def part_fields(message):
    """Where data starts in a serialized StreamReply, with the part's numbers: no copy by protobuf."""
    pos = 0

    def varint():
        nonlocal pos
        shift = value = 0
        while True:
            c = message[pos]
            pos += 1
            value |= (c & 0x7F) << shift
            if c < 0x80:
                return value
            shift += 7

    if varint() != 0x0A:
        raise ValueError(pb.StreamReply.FromString(message))
    varint()
    numbers = {}
    while True:
        tag = varint()
        if tag == 0x22:
            n = varint()
            return numbers.get(1, 0), numbers.get(2, 0), numbers.get(3, 0), pos, n
        numbers[tag >> 3] = varint()


def receive(target, options, by_hand):
    with grpc.insecure_channel(target, options=options) as channel:
        stub = stubs.ChaskiStub(channel)
        spec = json.dumps({"source": "x", "batch_size": G}).encode()
        handle = stub.Describe(pb.DescribeRequest(spec=spec)).handle
        requests = [
            pb.StreamRequest(ticket=pb.Ticket(id=i, handle=handle, first=i * G, count=G, row_stride=1))
            for i in range(BATCHES)
        ]
        requests.append(pb.StreamRequest(credit=pb.Credit(batches=BATCHES)))
        method = channel.stream_stream(
            "/chaski.v1.Chaski/Stream",
            request_serializer=pb.StreamRequest.SerializeToString,
            response_deserializer=None if by_hand else pb.StreamReply.FromString,
        )
        out = None
        total = got = 0
        begin = time.perf_counter()
        cpu = time.process_time()
        for m in method(iter(requests)):
            if by_hand:
                _, offset, length, at, n = part_fields(m)
                data = memoryview(m)[at : at + n]
            else:
                p = m.part
                data, offset, length = p.data, p.offset, p.total
                n = len(data)
            if out is None or len(out) != length:
                out = bytearray(length)
                view = memoryview(out)
            view[offset : offset + n] = data
            got += n
            if offset + n == length:
                total += 1
        cpu = time.process_time() - cpu
        seconds = time.perf_counter() - begin
        assert total == BATCHES, total
        return got / seconds / 1e9, cpu / (got / 1e9)


def main():
    target = sys.argv[1]
    wanted = os.environ.get("CHASKI_CHANNELS")
    for name in wanted.split(";") if wanted else OPTIONS:
        for by_hand in (False, True):
            runs = [receive(target, OPTIONS[name], by_hand) for _ in range(RUNS)]
            speed, cpu = max(r[0] for r in runs), min(r[1] for r in runs)
            parse = "by hand" if by_hand else "protobuf"
            print(f"{parse} {name:26s} best {speed:5.2f} GB/s, client {cpu:5.3f} CPU s/GB")


main()
