"""TFRecord files of tf.Example, which are written here by hand, judged by numpy."""

import io
import struct

import numpy as np
import pytest
from conftest import nonempty
from PIL import Image

import chaski

TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ 0x82F63B78 * (_n & 1)  # Castagnoli's polynomial, bits reversed
    TABLE.append(_n)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values, packed):
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, v) for v in values))
    if isinstance(values[0], float):
        parts, key, number = [struct.pack("<f", v) for v in values], b"\x0d", 2
    else:
        parts, key, number = [varint(int(v)) for v in values], b"\x08", 3
    return field(
        number, field(1, b"".join(parts)) if packed else b"".join(key + part for part in parts)
    )


def example(packed=True, **features):
    entries = [
        field(1, name.replace("__", "/").encode()) + field(2, feature(values, packed))
        for name, values in features.items()
        if len(values)
    ]
    return field(1, b"".join(field(1, entry) for entry in entries))


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


@pytest.fixture
def pixels():
    return np.random.default_rng(2).integers(0, 255, (6, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, pixels):
    """Three shards of two records, the last one without packed lists."""
    for shard in range(3):
        data = b"".join(
            record(
                example(
                    shard < 2,
                    image__encoded=[png(pixels[i])],
                    label=[i - 1],
                    name=[[b"sea", b"land"][i % 2]],
                    tags=[[b"a", b"b", b"c"][k] for k in range(i % 3)],
                    weight=[i / 4],
                    B04=pixels[i, :, :, 0].ravel().tolist(),
                    B08=(pixels[i, :, :, 1] / 2).ravel().tolist(),
                )
            )
            for i in (2 * shard, 2 * shard + 1)
        )
        (tmp_path / f"train-{shard}.tfrecord").write_bytes(data)
        (tmp_path / f"val.tfrecord-{shard:05d}-of-00003").write_bytes(data)
    return tmp_path


def rows(source, fields, **more):
    with chaski.load(source, batch_size=2, shuffle=False, fields=fields, **more) as loader:
        return [
            {name: np.asarray(value)[k] for name, value in batch.items() if name in fields}
            for batch in loader
            for k in range(len(batch["image"]))
        ]


@pytest.mark.parametrize("glob", ["train-*.tfrecord", "val.tfrecord-*"])
def test_images_and_labels(folder, pixels, glob):
    fields = {
        "image": "image/encoded",
        "y": "label",
        "name": chaski.Field(kind="class"),
        "tags": chaski.Field(kind="class"),
        "weight": "weight",
    }
    got = rows(folder / glob, fields)
    assert len(got) == 6
    for i, row in nonempty(enumerate(got)):
        np.testing.assert_array_equal(row["image"], pixels[i].transpose(2, 0, 1))
        assert (row["y"], row["weight"]) == (i - 1, i / 4)
        assert row["name"] == (i + 1) % 2
        assert row["tags"].tolist() == [int(k < i % 3) for k in range(2)]


def test_lists_of_samples(folder, pixels):
    got = rows(
        folder / "train-*.tfrecord", {"image": chaski.Field(columns=["B04"], dtype="native")}
    )
    for i, row in enumerate(got):
        np.testing.assert_array_equal(row["image"][0], pixels[i, :, :, 0])
    got = rows(folder / "train-1.tfrecord", {"image": chaski.Field(columns=["B08"])})
    np.testing.assert_array_equal(got[0]["image"][0], pixels[2, :, :, 1] / 2)


def test_rows_by_conditions(folder, pixels):
    got = rows(
        folder / "train-*.tfrecord",
        {"image": "image/encoded"},
        rows=chaski.Rows(where="label >= 2 AND name = 'land'"),
    )
    assert len(got) == 2
    np.testing.assert_array_equal(got[0]["image"], pixels[3].transpose(2, 0, 1))


def test_info(folder):
    table = chaski.info(folder / "train-0.tfrecord")["table"]
    types = {column["name"]: column["type"] for column in table["columns"]}
    assert table["rows"] == 2
    assert types == {
        "image/encoded": "images",
        "label": "int64",
        "name": "text",
        "tags": "text",
        "weight": "float32",
        "B04": "list<int64>",
        "B08": "list<float32>",
    }


def test_hostile(tmp_path):
    good = record(example(label=[1]))
    length = struct.pack("<Q", 1 << 60)
    for name, data, error in (
        ("data", good[:-6] + b"x" + good[-5:], "checksum of the data"),
        ("length", b"\x01" + good[1:], "checksum of the length"),
        ("claim", length + struct.pack("<I", masked(length)) + bytes(99), "a record of 11529"),
        ("end", good + good[:-3], "a record of|ends within a record"),
        ("gzip", b"\x1f\x8b" + bytes(30), "compressed by gzip"),
        ("other", record(b"\x0a\xff\xff\xff\x7f"), "record 0"),
        ("sequence", record(example(label=[1]) + field(2, b"")), "tf.SequenceExample"),
    ):
        path = tmp_path / f"{name}.tfrecord"
        path.write_bytes(data)
        with pytest.raises(chaski.Error, match=error):
            rows(path, {"image": "label"})
