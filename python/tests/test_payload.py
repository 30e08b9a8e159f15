"""Well-formed payloads arrive completely; any other bytes are refused."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
from helpers import T, parts, payload

from chaski import LimitError, PayloadError, Ragged
from chaski._assemble import Assembler, Batch, Pool, row_of
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import parse_reply


def assemble(data: bytes, size: int = 1 << 20, pool: Pool | None = None) -> Batch:
    pool = pool or Pool()
    a = Assembler(pool, 1 << 30)
    for r in parts(data, size):
        part = parse_reply(r.SerializeToString())
        assert isinstance(part, pb.Part)
        batch = a.add(part)
    assert batch is not None
    return batch


RNG = np.random.default_rng(3)
U16 = RNG.integers(0, 1 << 16, (2, 3, 40, 50), np.uint16)
TEXT = "naïve", "", "π ≠ 3"


def text(name: str = "id") -> T:
    raw = [t.encode() for t in TEXT[:2]]
    return T(
        name, b"".join(raw), kind=2, shape=(2,), axes=("n",), offsets=np.cumsum([0, *map(len, raw)])
    )


def in_time(*shape: int, rows: int = 2, axes: tuple[str, ...] = ()) -> bytes:
    raw = [t.encode() for t in (*TEXT, *TEXT)]
    axes = axes or ("n", "t", "x")[: len(shape)]
    offsets = np.cumsum([0, *map(len, raw)])
    text = T("id", b"".join(raw), kind=2, shape=shape, axes=axes, offsets=offsets)
    return payload([text], rows=rows)


def test_text_in_time():
    """Strings of sequences have an axis of steps, in torch and in numpy, also with one row."""
    b = assemble(in_time(2, 3))
    assert b["id"].tolist() == [list(TEXT), list(TEXT)] and b.axes["id"] == ("n", "t")
    to_tensors = pytest.importorskip("chaski.torch").to_tensors
    assert to_tensors(b)["id"] == [list(TEXT), list(TEXT)]
    b = assemble(in_time(1, 6, rows=1))
    assert row_of(b, b)["id"].tolist() == row_of(b, to_tensors(b))["id"] == [*TEXT, *TEXT]
    for wrong in (in_time(3, 2), in_time(2, 2), in_time(2, 3, 1), in_time(2, 3, axes=("n",))):
        with pytest.raises(PayloadError, match="offsets"):
            assemble(wrong)


@pytest.mark.parametrize("shape", [(0, 1 << 60), (0, (1 << 63) - 1), (1 << 30, 1 << 31, 0)])
@pytest.mark.parametrize("kind", ["float64", "complex128", "text"])
def test_no_array_is_that_large(kind, shape):
    """Zero rows with a length that numpy refuses are a bad payload, like other such sizes."""
    shape, rows = (shape, 0) if kind != "text" else (shape[-2:], shape[-2])
    axes = ("n", "t", "x")[: len(shape)]
    t = T("a", b"", dtype=kind, shape=shape, axes=axes)
    if kind == "text":
        t = T("a", b"", kind=2, shape=shape, axes=axes, offsets=np.zeros(1, np.int64))
    with pytest.raises(PayloadError):
        assemble(payload([t], rows=min(rows, 1)))


def mixed() -> bytes:
    return payload(
        [
            T("image", U16, axes=("n", "b", "y", "x")),
            T("label", np.array([4, -1]), axes=("n",)),
            text(),
            T("boxes", np.arange(5, dtype=np.float32), kind=1, offsets=np.array([0, 2, 5])),
        ],
        epoch=3,
        first=8,
        positions=np.array([9, -1]),
        samples=np.array([2, -1]),
        bad=[(0, 9, "a.tif: tile 3: cut short: corrupt")],
    )


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 1 << 20])
def test_parts_of_any_size(size):
    data = mixed()
    if size == 1:
        data = payload([T("image", U16[:, :, :3, :3])])
        assert assemble(data, 1)["image"].tolist() == U16[:, :, :3, :3].tolist()
        return
    b = assemble(data, size)
    want = assemble(data)
    assert b.keys() == want.keys()
    assert np.array_equal(b["image"], want["image"])
    assert np.array_equal(b["image"], U16) and b.dtypes["image"] == "uint16"
    assert b["label"].tolist() == [4, -1]
    assert b["id"].tolist() == list(TEXT[:2])
    assert isinstance(b["boxes"], Ragged) and b["boxes"].offsets.tolist() == [0, 2, 5]
    assert b["boxes"].values.tolist() == [0, 1, 2, 3, 4]
    assert (b["valid"].tolist(), b["position"].tolist()) == ([True, False], [9, -1])
    assert b["sample"].tolist() == [2, -1]
    assert (b.epoch, b.rows) == (3, 2)
    assert b.bad[0].message == "a.tif: tile 3: cut short: corrupt"
    assert b.bad[0].sample is None is b.bad[0].instead, "an older server does not say"
    assert (b.bad[0].kind, b.bad[0].file, b.bad[0].offset) == ("", "", -1)
    assert b.axes["image"] == ("n", "b", "y", "x")


def test_arrays_are_aligned_and_writable():
    b = assemble(mixed(), 1000)
    for name in ("image", "label"):
        assert b[name].flags.writeable and b[name].flags.aligned and b[name].flags.c_contiguous
    assert b["image"].ctypes.data % 64 == 0


@pytest.mark.parametrize("code,name", [(9, "float16"), (17, "bfloat16"), (14, "complex_int16")])
def test_dtypes(code, name):
    raw = np.arange(8, dtype=np.uint16)
    b = assemble(
        payload([T("a", raw.tobytes(), dtype=name, shape=(2, 8 // (4 if code == 14 else 2)))])
    )
    assert b.dtypes["a"] == name
    assert b["a"].tobytes() == raw.tobytes()
    if code == 14:
        assert b["a"]["im"].tolist() == [[1, 3], [5, 7]]


def test_memory_is_reused_only_when_nothing_refers_to_it():
    data = payload([T("image", U16)])
    pool = Pool(reuse=True)
    a = assemble(data, pool=pool)["image"]
    view = a[1:, :, 3]
    before, address = view.copy(), a.ctypes.data
    del a
    gc.collect()
    other = assemble(payload([T("image", U16 * 0)]), pool=pool)["image"]
    assert other.ctypes.data != address
    assert np.array_equal(view, before)
    del view
    gc.collect()
    again = assemble(data, pool=pool)["image"]
    assert again.ctypes.data == address
    fresh = Pool(reuse=False)
    first = assemble(data, pool=fresh)["image"]
    assert np.array_equal(first, U16)


def test_pool_keeps_a_bounded_number():
    pool = Pool(keep=2)
    blocks = [pool.take(1000) for _ in range(5)]
    assert all(b.ctypes.data % 64 == 0 for b in blocks)
    del blocks
    gc.collect()
    assert pool._free is not None and len(pool._free) == 2


def send(*pieces: tuple[int, int, bytes], limit: int = 1 << 20) -> None:
    a = Assembler(Pool(), limit)
    for offset, total, data in pieces:
        a.add(pb.Part(ticket=1, offset=offset, total=total, data=data))


GOOD = payload([T("image", U16[:, :, :2, :2])])


@pytest.mark.parametrize(
    "pieces",
    [
        [(1, len(GOOD), GOOD[1:])],
        [(0, len(GOOD), GOOD[:90]), (80, len(GOOD), GOOD[80:])],
        [(0, len(GOOD), GOOD[:90]), (91, len(GOOD), GOOD[91:])],
        [(0, len(GOOD), GOOD[:90]), (90, len(GOOD) + 1, GOOD[90:])],
        [(0, len(GOOD) - 1, GOOD)],
        [(0, len(GOOD), b"")],
        [(0, 0, b"")],
        [(0, 3, b"abc")],
        [(0, 4, b"\0\0\0\0")],
        [(0, 8, b"\xff\xff\xff\xff1234")],
        [(0, 100, b"\x60\0\0\0" + bytes(96))],
    ],
)
def test_parts_that_do_not_fit(pieces):
    with pytest.raises(PayloadError):
        send(*pieces)


def test_limit_comes_before_memory():
    with pytest.raises(LimitError, match="max_batch_bytes"):
        send((0, 1 << 62, b"abcd"))


def test_shared_references_do_not_multiply():
    """256 tensors over one span, and many bad rows with one message, are refused."""
    one = T("a", bytes(6400), dtype="uint8", shape=(6400,))
    good = payload([one, T("b", bytes(6400), dtype="uint8", shape=(6400,))])
    at = [i for i in range(0, 2000) if good[i : i + 8] == (6400).to_bytes(8, "little")]
    spans = [i - 8 for i in at if int.from_bytes(good[i - 8 : i], "little") % 64 == 0]
    spans = [i for i in spans if int.from_bytes(good[i : i + 8], "little") > 100]
    assert len(spans) == 2
    first = min(int.from_bytes(good[i : i + 8], "little") for i in spans)
    b = bytearray(good)
    for i in spans:
        b[i : i + 8] = first.to_bytes(8, "little")
    del b[first + 6400 :]  # the length in the header is wrong now as well
    length = good.index(len(good).to_bytes(8, "little"))
    b[length : length + 8] = len(b).to_bytes(8, "little")
    with pytest.raises(PayloadError, match="overlap"):
        assemble(bytes(b))


def test_bad_steps_of_one_row():
    """A row of a sequence has as many bad steps as it has steps."""
    bad = [(0, 9, f"{i}.tif: tile 3: cut short: corrupt") for i in range(5)]
    one = T("a", np.zeros((1, 5, 2), np.uint8), axes=("n", "t", "x"))
    b = assemble(payload([one], rows=1, positions=np.array([9]), samples=np.array([2]), bad=bad))
    assert [(x.row, x.position, x.message) for x in b.bad] == bad


def test_more_bad_rows_than_bytes():
    """A vector with many references to one bad row is refused."""
    good = payload([T("a", U16)], bad=[(0, 9, "x")] * 900)
    at = good.index((900).to_bytes(4, "little"))
    first = at + 4 + int.from_bytes(good[at + 4 : at + 8], "little")
    b = bytearray(good)
    end = int.from_bytes(good[:4], "little") + 4
    count = (end - at - 4) // 4  # the references run over the rest of the header
    assert count > 16 * 900 // 4
    b[at : at + 4] = count.to_bytes(4, "little")
    for i in range(count):
        place = at + 4 + 4 * i
        b[place : place + 4] = ((first - place) % (1 << 32)).to_bytes(4, "little")
    with pytest.raises(PayloadError, match="elements, at most"):
        assemble(bytes(b))


def broken(**changes) -> bytes:
    t = T("image", U16[:, :, :2, :2], axes=("n", "b", "y", "x"))
    for k, v in changes.items():
        setattr(t, k, v)
    return payload([t])


@pytest.mark.parametrize(
    "data,match",
    [
        (broken(shape=(2, 3, 2, 3)), "its shape is 72"),
        (broken(shape=(2, 3, -2, -2)), "has shape"),
        (broken(shape=(1 << 40, 1 << 40, 0), axes=()), "has shape"),
        (broken(axes=("n",)), "axes"),
        (broken(kind=3), "kind 3"),
        (broken(kind=2), "offsets"),
        (broken(kind=1, offsets=np.array([0, 5])), "do not span"),
        (broken(kind=1, offsets=np.array([0, 30, 24])), "fall"),
        (broken(kind=1, offsets=np.array([1, 2, 24])), "do not span"),
        (broken(convert="uint8"), "'image' of uint16 is not final"),
        (broken(convert="float16", data=U16.astype(np.float32)), "of float32 is not final"),
        (broken(convert="float32", scale=[1, 2], band_axis=1), "arithmetic that does not fit"),
        (broken(convert="float32", scale=[1, 2, 3], band_axis=-1), "arithmetic that does not fit"),
        (broken(convert="float32", band_axis=4), "arithmetic that does not fit"),
        (broken(convert="float32", limits=(1, 0)), "arithmetic that does not fit"),
        (broken(convert="float32", mask=(0, 24)), "mask is 24 bytes at 0"),
        (broken(convert="float32", mask=(1 << 40, 24)), "mask is 24 bytes at"),
        (broken(convert="float32", mask=(512, 25)), "mask is 25 bytes"),
        (payload([T("a", U16), T("a", U16)]), "same name"),
        (payload([T("a", U16)], bad=[(2, 0, "")]), "bad row 2"),
        (payload([T("a", U16)], samples=np.arange(1)), "2 positions and 1 samples"),
        (
            payload(
                [T("a", U16)],
                rows=3,
                positions=np.arange(2),
                samples=np.arange(2),
                valid=np.ones(3),
            ),
            "3 rows",
        ),
    ],
)
def test_headers_that_contradict_themselves(data, match):
    with pytest.raises(PayloadError, match=match):
        assemble(data)


def test_any_corruption_is_an_error_or_a_batch():
    """Bytes are flipped, set to extremes or removed; numpy and the reader stay in bounds."""
    data = bytearray(mixed())
    head = int.from_bytes(data[:4], "little") + 4
    rng = random.Random(4)
    refused = 0
    for _ in range(3000):
        b = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(head)
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice(
                (
                    0,
                    1,
                    0x7F,
                    0xFF,
                    (1 << 8 * width) - 1,
                    1 << 8 * width - 1,
                    rng.getrandbits(8 * width),
                )
            )
            b[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
        del b[len(data) :]
        try:
            batch = assemble(bytes(b), rng.choice((500, 1 << 20)))
            assert sum(a.nbytes for a in batch.values() if isinstance(a, np.ndarray)) < 1 << 24
        except PayloadError:
            refused += 1
    assert refused > 500
    for _ in range(300):
        cut = rng.randrange(4, head)
        with pytest.raises(PayloadError):
            assemble(bytes(data[:cut]))


def test_replies_that_are_none():
    good = pb.StreamReply(part=pb.Part(ticket=1, total=9, data=b"abc")).SerializeToString()
    rng = random.Random(6)
    for cut in range(len(good)):
        with pytest.raises(PayloadError):
            parse_reply(good[:cut])
    for _ in range(2000):
        b = bytearray(good)
        b[rng.randrange(len(b))] = rng.randrange(256)
        try:
            parse_reply(bytes(b))
        except PayloadError:
            pass
