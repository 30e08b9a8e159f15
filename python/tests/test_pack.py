"""`chaski.pack`: rows and tables become containers."""

import json
import zipfile

import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

pa = pytest.importorskip("pyarrow")

ABOUT = {
    "id": "chips",
    "dataset_version": "1",
    "description": "Chips",
    "licenses": ["MIT"],
    "providers": [{"name": "Ana"}],
    "tasks": ["other"],
}


@pytest.fixture(autouse=True)
def _engine(binary):
    pass


def test_rows(tmp_path):
    """Files, bytes and folders of them, with columns of both levels."""
    (tmp_path / "a.bin").write_bytes(b"file")
    rows = [
        {
            "id": f"s{i}",
            "cloud": i,
            "path": [
                {"id": "x", "path": tmp_path / "a.bin", "haze": 0.5 * i},
                {"id": "y", "path": b"bytes%d" % i, "haze": None, "empty": None},
            ],
        }
        for i in range(3)
    ]
    about = {
        **ABOUT,
        "columns": {
            "cloud": {"type": "int8", "description": "Percent"},
            "l1:empty": {"type": "float32"},
        },
    }
    ds = chaski.pack(rows, tmp_path / "c.tacozip", about)
    assert ds.ids == ["s0", "s1", "s2"]
    assert ds.data.column("cloud").to_pylist() == [0, 1, 2]
    assert ds.read("s1").read("y").bytes() == b"bytes1"
    assert ds.read("s2").read("x").bytes() == b"file"
    with zipfile.ZipFile(tmp_path / "c.tacozip") as z:
        doc = json.loads(z.read("COLLECTION.json"))
    fields = doc["taco:field_schema"]
    assert ["cloud", "int8", "Percent"] in fields["level0"]
    assert ["haze", "double", ""] in fields["level1"]
    assert ["empty", "float", ""] in fields["level1"]
    assert "haze" not in {name for name, *_ in fields["level0"]}


def test_paths_behind_links(tmp_path):
    """Above a link is where it leads to, as for the kernel."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    (tmp_path / "real" / "a.bin").write_bytes(b"there")
    (tmp_path / "a.bin").write_bytes(b"beside the link")
    rows = [{"id": "a", "path": f"{tmp_path}/link/../a.bin"}]
    assert chaski.pack(rows, tmp_path / "c.tacozip", ABOUT).read("a").bytes() == b"there"


@pytest.mark.parametrize("form", ["zip", "folder"])
def test_table(tmp_path, form, monkeypatch):
    """A table of Arrow, with paths relative to the working directory, in all forms."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"A")
    times = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    table = pa.table({"id": ["a", "b"], "path": ["a.bin", "a.bin"], "when": times})
    ds = chaski.pack(table, tmp_path / "out", ABOUT, form=form)
    assert ds.ids == ["a", "b"]
    assert ds.read("b").bytes() == b"A"
    assert ds.data.column("when").to_pylist() == times.to_pylist()


def test_filtered_frame(tmp_path):
    """Numbers of the rows of a data frame, which it keeps when it is filtered, are no column."""
    pd = pytest.importorskip("pandas")
    (tmp_path / "a.bin").write_bytes(b"A")
    frame = pd.DataFrame({"id": list("abc"), "path": [tmp_path / "a.bin"] * 3, "v": range(3)})
    frame["path"] = frame["path"].astype(str)
    ds = chaski.pack(frame[frame.v != 1], tmp_path / "c.tacozip", ABOUT)
    assert ds.ids == ["a", "c"]
    names = [name for name in ds.data.column_names if not name.startswith("internal:")]
    assert names == ["id", "type", "v"]


def test_one_extension(tmp_path):
    """The name of one extension is no list of letters, and a wrong one is an argument."""
    chaski.pack([{"id": "a", "path": b"x"}], tmp_path / "b.tacozip", ABOUT, columns="stac")
    with pytest.raises(chaski.SpecError, match='"stuck" must be one of stac'):
        chaski.pack([{"id": "a", "path": b"x"}], tmp_path / "c.tacozip", ABOUT, columns="stuck")


def test_copies(tmp_path):
    """Containers are copied and joined."""
    for name in "ab":
        chaski.pack([{"id": name, "path": b"x"}], tmp_path / f"{name}.tacozip", ABOUT)
    both = [tmp_path / "a.tacozip", tmp_path / "b.tacozip"]
    assert chaski.pack(both, tmp_path / "both").ids == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "about", "error", "message"),
    [
        ([{"id": "a"}], ABOUT, chaski.SpecError, r"samples\[0\] is .* dict with id and path"),
        ([{"id": "a", "path": None}], ABOUT, chaski.UnsupportedError, "neither a path nor samples"),
        ([{"id": "a", "path": b"x"}] * 2, ABOUT, chaski.UnsupportedError, 'id is "a", as of row 0'),
        ([{"id": "a:b", "path": b"x"}], ABOUT, chaski.UnsupportedError, "a:b"),
        ([{"id": "a", "path": b"x"}], None, chaski.SpecError, "^collection is missing.*itself$"),
        ([{"id": "a", "path": b"x"}], {"id": {1}}, chaski.SpecError, "collection is not JSON"),
        ([{"id": "a", "path": b"x", "v": object()}], ABOUT, chaski.SpecError, "samples are not"),
        ([{"id": "a", "path": 5}], ABOUT, chaski.SpecError, "path 5: it must be a file"),
        (7, ABOUT, chaski.SpecError, r"samples\[0\] is 7"),
        ({"id": ["a"]}, ABOUT, chaski.SpecError, "samples"),
        ([{"id": "a", "path": "none.tif"}], ABOUT, chaski.NotFoundError, "none.tif"),
        ([{"id": "a/b", "path": b"x"}], ABOUT, chaski.SpecError, "id 'a/b': it must be text"),
        ([{"id": None, "path": b"x"}], ABOUT, chaski.SpecError, "id None: it must be text"),
        ([{"id": "..", "path": b"x"}], ABOUT, chaski.UnsupportedError, '^samples: sample ".."'),
        ([{"id": "a", "path": b"x"}], {**ABOUT, "x y": 1, "tasks": 3}, chaski.Error, "^coll"),
        ([], ABOUT, chaski.SpecError, "samples is empty"),
        ({"id": ["a"], "path": [b"x"]}, ABOUT, chaski.SpecError, "have path b'x'"),
    ],
)
def test_wrong(tmp_path, rows, about, error, message):
    with pytest.raises(error, match=message):
        chaski.pack(rows, tmp_path / "c.tacozip", about)
    assert not list(tmp_path.iterdir())
