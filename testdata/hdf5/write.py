"""Write small HDF5 and NetCDF-4 files of all layouts, and expected.json, with h5py, netCDF4 and hdf5plugin.

    python testdata/hdf5/write.py             # the corpus
    python testdata/hdf5/write.py random DIR SEED COUNT  # COUNT random files, and their expected.json
    python testdata/hdf5/write.py expect DIR  # expected.json of the files below a folder

`CHASKI_HDF5=DIR go test ./store/hdf5` then compares the files of a folder.

expected.json has what h5py reads: for each dataset of numbers its shape, type, and the SHA-256 of its elements in C
order, little-endian (booleans as uint8); null for one that chaski refuses.
"""

import hashlib
import json
import os
import sys

import h5py
import hdf5plugin
import netCDF4
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def values(shape, dtype, seed=0):
    """Numbers that compress a little, different in each cell."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        return (np.arange(n).reshape(shape) + rng.normal(size=shape).round(2)).astype(dtype)
    return (np.arange(n).reshape(shape) // 3 + rng.integers(0, 5, shape)).astype(dtype)


def types(f):
    """Every type of numbers, in both orders of bytes."""
    for name in "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split():
        for order in "<>":
            f.create_dataset(
                f"types/{order == '<' and 'le' or 'be'}_{name}", data=values((5, 7), order + name)
            )
    f.create_dataset("types/bool", data=values((5, 7), bool))
    enum = h5py.enum_dtype({"sea": 0, "land": 1, "ice": 2}, basetype="u1")
    f.create_dataset("types/enum", data=values((3, 4), "u1") % 3, dtype=enum)
    f.create_dataset("types/scalar", data=np.float32(1.5))
    f.create_dataset(
        "types/text", data=np.array(["a", "bc"], dtype=object), dtype=h5py.string_dtype()
    )
    f.create_dataset("types/pairs", data=np.zeros(3, dtype=[("a", "i4"), ("b", "f4")]))


def layouts(f, many):
    """Every layout and, in new files, every index of chunks."""
    g = f.create_group("layouts")
    g.create_dataset("contiguous", data=values((3, 50, 70), "u2"))
    g.create_dataset("never_written", (40, 50), "f4", fillvalue=-9.5)
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((6, 5))
    h5py.h5d.create(g.id, b"compact", h5py.h5t.STD_I16LE, space, dcpl).write(
        h5py.h5s.ALL, h5py.h5s.ALL, values((6, 5), "i2")
    )
    g.create_dataset("single", data=values((20, 30), "u2"), chunks=(20, 30))
    g.create_dataset(
        "single_deflate", data=values((20, 30), "u2"), chunks=(20, 30), compression="gzip"
    )
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_chunk((8, 16))
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    h5py.h5d.create(
        g.id, b"implicit", h5py.h5t.STD_U16LE, h5py.h5s.create_simple((20, 30)), early
    ).write(h5py.h5s.ALL, h5py.h5s.ALL, values((20, 30), "u2"))
    g.create_dataset("fixed", data=values((20, 30), "u2"), chunks=(8, 16))
    g.create_dataset("fixed_max", data=values((20, 30), "u2"), chunks=(8, 8), maxshape=(50, 80))
    g.create_dataset(
        "fixed_deflate", data=values((20, 30), "u2"), chunks=(8, 16), compression="gzip"
    )
    if many:
        g.create_dataset("fixed_pages", data=values((1500, 2), "u1"), chunks=(1, 2))
    sparse = g.create_dataset("fixed_pages_sparse", (5000, 2), "u1", chunks=(1, 2), fillvalue=7)
    sparse[3000:3010] = 1
    g.create_dataset("extensible", data=values((20, 30), "u2"), chunks=(8, 16), maxshape=(None, 30))
    g.create_dataset(
        "extensible_second", data=values((20, 90), "u2"), chunks=(8, 2), maxshape=(20, None)
    )
    g.create_dataset(
        "extensible_deflate",
        data=values((60, 30), "u2"),
        chunks=(1, 16),
        maxshape=(None, 30),
        compression="gzip",
    )
    if many:
        g.create_dataset(
            "extensible_many", data=values((2500, 1), "u1"), chunks=(1, 1), maxshape=(None, 1)
        )
    pages = g.create_dataset(
        "extensible_pages", (1 << 18, 1), "u1", chunks=(1, 1), maxshape=(None, 1), fillvalue=3
    )
    pages[140000:140020] = 9
    pages[5] = 8
    g.create_dataset("tree", data=values((20, 30), "u2"), chunks=(4, 4), maxshape=(None, None))
    g.create_dataset(
        "tree_deflate",
        data=values((20, 30, 4), "u2"),
        chunks=(4, 4, 2),
        maxshape=(None, None, None),
        compression="gzip",
    )
    if many:  # three levels
        g.create_dataset(
            "tree_many",
            data=values((1, 1, 1, 1, 36, 36), "u1"),
            chunks=(1,) * 6,
            maxshape=(None,) * 6,
        )
    g.create_dataset("sparse", (100, 100), "i4", chunks=(10, 10), fillvalue=-1)[35:47, 60:62] = 5
    shrunk = g.create_dataset(
        "shrunk", data=values((20, 30), "u2"), chunks=(4, 4), maxshape=(None, None)
    )
    shrunk.resize((9, 13))
    grown = g.create_dataset(
        "grown", data=values((9, 13), "u2"), chunks=(4, 4), maxshape=(None, None)
    )
    grown.resize((20, 30))


def filters(f):
    """Every filter that is read, and some that are not."""
    g = f.create_group("filters")
    data, chunks = values((24, 40), "i4"), (16, 32)
    g.create_dataset("deflate", data=data, chunks=chunks, compression="gzip")
    g.create_dataset("shuffle_deflate", data=data, chunks=chunks, compression="gzip", shuffle=True)
    g.create_dataset("shuffle", data=data, chunks=chunks, shuffle=True)
    g.create_dataset("fletcher32", data=data, chunks=chunks, fletcher32=True)
    g.create_dataset(
        "all", data=data, chunks=chunks, compression="gzip", shuffle=True, fletcher32=True
    )
    g.create_dataset(
        "big_shuffle", data=data.astype(">f8"), chunks=chunks, compression="gzip", shuffle=True
    )
    g.create_dataset("lzf", data=data, chunks=chunks, compression="lzf", shuffle=True)
    noise = np.random.default_rng(1).integers(0, 256, (24, 40), dtype="u1")
    g.create_dataset("lzf_noise", data=noise, chunks=chunks, compression="lzf")
    g.create_dataset("zstd", data=data, chunks=chunks, **hdf5plugin.Zstd())
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        g.create_dataset(
            "blosc_" + cname, data=data, chunks=chunks, **hdf5plugin.Blosc(cname=cname, shuffle=1)
        )
    g.create_dataset("blosc_bits", data=data, chunks=chunks, **hdf5plugin.Blosc(shuffle=2))
    g.create_dataset("scaleoffset", data=data, chunks=chunks, scaleoffset=0)
    g.create_dataset("bitshuffle", data=data, chunks=chunks, **hdf5plugin.Bitshuffle())
    g.create_dataset("lz4", data=data, chunks=chunks, **hdf5plugin.LZ4())


def create(group, name, data, typ, filters, chunks):
    """A dataset of a type that numpy lacks, of the bytes of its elements."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        dcpl.set_chunk(chunks)
    for name_of in filters:
        if name_of == "nbit":
            dcpl.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_MANDATORY, ())
        elif name_of == "szip":
            dcpl.set_szip(h5py.h5z.SZIP_NN_OPTION_MASK, 8)
        elif name_of == "gzip":
            dcpl.set_deflate(6)
        else:
            dcpl.set_fletcher32()
    d = h5py.h5d.create(group.id, name.encode(), typ, h5py.h5s.create_simple(data.shape[:-1]), dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, data.ravel(), mtype=typ)


def part(rng):
    """A type whose numbers are some bits of an element, and what elements of it look like."""
    big, size = bool(rng.random() < 0.5), int(rng.choice([1, 2, 4, 8]))
    if rng.random() < 0.6:
        kind = "iu"[int(rng.integers(0, 2))]
        bits = int(rng.integers(4 * size, 8 * size))
        first = int(rng.integers(size == 1, 8 * size - bits + 1))  # 0 in one byte is plain for h5py
        typ = h5py.h5t.py_create(np.dtype(f"{'<>'[big]}{kind}{size}")).copy()
        typ.set_precision(bits)
        typ.set_offset(first)
    else:
        exponents = int(rng.integers(2, min(4 * size, 11)))
        mantissas = int(rng.integers(1, min(8 * size - exponents, 53)))
        bits = exponents + mantissas + 1
        first = int(rng.integers(0, 8 * size - bits + 1))
        typ = (h5py.h5t.IEEE_F64BE if big else h5py.h5t.IEEE_F64LE).copy()
        typ.set_fields(first + bits - 1, first + mantissas, exponents, first, mantissas)
        typ.set_offset(first)
        typ.set_precision(bits)
        typ.set_ebias((1 << exponents - 1) - 1)
        typ.set_size(size)
    mask = ((1 << bits) - 1 << first).to_bytes(size, "big" if big else "little")
    return typ, np.frombuffer(mask, "u1")


def packed(f):
    """What has few bits: szip, nbit, and parts of elements."""
    g = f.create_group("packed")
    for i, name in enumerate("u1 >i2 <u2 <i4 >u4 >i8 <f4 >f8".split()):
        for kind, block in ("nn", 8), ("ec", 16), ("nn", 30):
            g.create_dataset(
                f"szip_{kind}{block}_{i}",
                data=values((24, 41), name, i),
                chunks=(11, 37),
                compression="szip",
                compression_opts=(kind, block),
                shuffle=i % 3 == 2,
                fletcher32=i % 2 == 1,
            )
    steps = np.repeat(np.arange(5) * 40, 800).reshape(50, 80)
    for name, data in ("flat", steps), ("empty", steps * 0):
        g.create_dataset(name, data=data, dtype="u2", chunks=(50, 80), compression="szip")
    g.create_dataset(
        "whole",
        data=np.array([[0, 2**32 - 1, 7]]),
        dtype=">u4",
        chunks=(1, 3),
        scaleoffset=0,
    )
    rng = np.random.default_rng(5)
    for i in range(24):
        typ, mask = part(rng)
        elements = rng.integers(0, 256, (9, 14, len(mask)), "u1") & mask
        names = ["", "nbit", "nbit gzip", "gzip", "szip fletcher32", "nbit fletcher32"][i % 6]
        create(g, f"part_{i}", elements, typ, names.split(), (4, 9) if names else None)


def groups(f):
    """Old and dense groups, many attributes, links."""
    for i in range(40):
        f.create_dataset(f"many/d{i:03d}", data=np.full((2, 2), i, "u1"))
    f.create_dataset("deep/a/b/c/d", data=values((3, 3), "f4"))
    f["soft"] = h5py.SoftLink("/deep/a/b")
    f["deep/relative"] = h5py.SoftLink("a/b/c/d")
    f["nowhere"] = h5py.SoftLink("/no/such")
    f["circle"] = h5py.SoftLink("/circle")
    f["outside"] = h5py.ExternalLink("other.h5", "/x")
    f["hard"] = f["deep/a/b"]
    f["deep/a/loop"] = f["deep"]
    d = f.create_dataset("attributes", data=values((4, 5), "i2"))
    for i in range(30):
        d.attrs[f"a{i}"] = i
    d.attrs["_FillValue"] = np.array([3], "i2")
    d.attrs["scale_factor"] = np.float64(0.5)
    d.attrs["add_offset"] = np.float32(0.25)
    d.attrs["units"] = "m"
    d.attrs["names"] = ["x", "yy"]
    d.attrs["flag"] = True
    d.attrs["big"] = np.arange(3, dtype=">f4")
    d.attrs["pairs"] = np.zeros(2, dtype=[("a", "i4")])
    d.attrs["empty"] = h5py.Empty("f4")


def user_block(path):
    """A file behind a user block."""
    with h5py.File(path, "w", userblock_size=1024) as f:
        f.create_dataset("x", data=values((10, 10), "u1"))
        f.create_dataset("y", data=values((10, 10), "u1"), chunks=(3, 4), compression="gzip")


def samples(path):
    """The shape of So2Sat: arrays of n samples in one file, and their labels."""
    with h5py.File(path, "w") as f:
        f.create_dataset("sen1", data=values((12, 8, 8, 4), "f8"), chunks=(1, 8, 8, 4))
        f.create_dataset(
            "sen2", data=values((12, 8, 8, 5), "f8", 1), chunks=(4, 8, 8, 5), compression="gzip"
        )
        f.create_dataset("label", data=np.eye(17)[np.arange(12) % 17])
        f.create_dataset("class", data=np.arange(12, dtype="i4") % 5)
        f.create_dataset(
            "name",
            data=np.array([f"s{i}" for i in range(12)], dtype=object),
            dtype=h5py.string_dtype(),
        )
        f.create_dataset("code", data=np.array([f"c{i}".encode() for i in range(12)]))


def grouped(path):
    """The shape of QuakeSet and CaBuAr: a group a sample."""
    with h5py.File(path, "w") as f:
        for i in range(5):
            g = f.create_group(f"fire_{i}")
            g.create_dataset("post", data=values((8, 9, 3), "u2", i), compression="gzip")
            g.create_dataset("mask", data=values((8, 9, 1), "u2", i + 50) % 2, compression="gzip")
            g.attrs["magnitude"] = np.float32(i / 2)


def netcdf(path):
    """A scene as netCDF-4 writes it, with CF attributes."""
    with netCDF4.Dataset(path, "w") as f:
        for name, n in (("time", None), ("y", 30), ("x", 40), ("strip", 3)):
            f.createDimension(name, n)
        x, y, t = (f.createVariable(n, "f8", (n,)) for n in ("x", "y", "time"))
        x[:], y[:], t[:] = 600005 + 10 * np.arange(40), 4000295 - 10 * np.arange(30), [0, 1]
        crs = f.createVariable("crs", "i4")
        crs.setncatts({"grid_mapping_name": "transverse_mercator", "spatial_ref": "EPSG:32633"})
        v = f.createVariable(
            "red",
            "i2",
            ("time", "y", "x"),
            zlib=True,
            shuffle=True,
            chunksizes=(1, 16, 16),
            fill_value=-999,
        )
        v.setncatts({"scale_factor": 0.01, "add_offset": -5.0, "grid_mapping": "crs"})
        v.set_auto_maskandscale(False)
        v[:] = values((2, 30, 40), "i2")
        g = f.createGroup("sub")
        w = g.createVariable("blue", "f4", ("y", "x"))
        w[:] = values((30, 40), "f4")
        g.createVariable("pairs", "u1", ("strip", "y", "x"))[:] = values((3, 30, 40), "u1")


def expected(path):
    """What h5py reads of each dataset that is reached by names, links too."""
    out = {}

    def add(group, prefix, above):
        for name in sorted(group):
            p = prefix + name
            try:
                item = group[name]
            except (KeyError, OSError, RuntimeError):
                continue
            if isinstance(item, h5py.Group):
                if item.id.__hash__() not in above:
                    add(item, p + "/", above | {item.id.__hash__()})
                continue
            if not isinstance(item, h5py.Dataset) or item.attrs.get("NAME", b"").startswith(
                b"This is a netCDF"
            ):
                continue
            filters = {
                item.id.get_create_plist().get_filter(i)[0]
                for i in range(item.id.get_create_plist().get_nfilters())
            }
            kind = item.dtype.kind
            if kind not in "uifb" or filters - {1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32015}:
                out[p] = None
                continue
            data = np.asarray(item[()])
            raw = (
                data.astype(np.uint8) if kind == "b" else data.astype(data.dtype.newbyteorder("<"))
            )
            out[p] = {
                "shape": list(item.shape),
                "dtype": "bool" if kind == "b" else raw.dtype.name,
                "sha256": hashlib.sha256(np.ascontiguousarray(raw).tobytes()).hexdigest(),
            }

    with h5py.File(path) as f:
        add(f, "", {f.id.__hash__()})
    return out


# Of each part, the versions of the library that write it in another form.
PARTS = {
    types: ["earliest", "v112"],
    layouts: ["earliest", "v110", "latest"],
    filters: ["earliest", "latest"],
    packed: ["latest"],
    groups: ["earliest", "v108", "latest"],
}


def random_file(path, seed):
    """One file of random datasets: layouts, filters, types, shapes, some of them written in part."""
    rng = np.random.default_rng(seed)
    version = str(rng.choice(["earliest", "v108", "v110", "v112", "v114", "latest"]))
    packers = [
        {},
        {"compression": "gzip"},
        {"compression": "lzf"},
        {
            "compression": "szip",
            "compression_opts": (str(rng.choice(["nn", "ec"])), 2 * int(rng.integers(1, 17))),
        },
        dict(hdf5plugin.Zstd()),
        dict(
            hdf5plugin.Blosc(
                cname=str(rng.choice(["blosclz", "lz4", "lz4hc", "zlib", "zstd"])),
                clevel=int(rng.integers(1, 10)),
                shuffle=int(rng.integers(0, 3)),
            )
        ),
    ]
    with h5py.File(
        path, "w", libver="earliest" if version == "earliest" else (version, version)
    ) as f:
        for i in range(int(rng.integers(1, 40))):
            rank = int(rng.integers(1, 6))
            shape = tuple(int(n) for n in rng.integers(1, (400, 60, 20, 9, 6)[rank - 1], rank))
            dtype = str(
                rng.choice("u1 i1 <u2 >u2 <i4 >i4 <u8 >i8 <f2 >f2 <f4 >f4 <f8 >f8 ?".split())
            )
            options = {}
            if rng.random() < 0.8:
                options["chunks"] = tuple(int(rng.integers(1, n + 1)) for n in shape)
                options.update(packers[int(rng.integers(0, len(packers)))])
                if options.get("compression") == "szip":
                    kind, block = options["compression_opts"]
                    block = min(block, int(np.prod(options["chunks"])) // 2 * 2)
                    options["compression_opts"] = (kind, block)
                    if block == 0:
                        options["compression"] = options["compression_opts"] = None
                options["shuffle"] = bool(rng.random() < 0.4)
                options["fletcher32"] = bool(rng.random() < 0.3)
                if rng.random() < 0.5:
                    options["maxshape"] = tuple(
                        None if rng.random() < 0.5 else n + int(rng.integers(0, 9)) for n in shape
                    )
            if rng.random() < 0.3:
                options["fillvalue"] = np.array(1).astype(dtype)
            group = f.require_group(
                "/".join(str(rng.choice(["a", "b", "c"])) for _ in range(int(rng.integers(0, 4))))
                or "/"
            )
            if rng.random() < 0.1 and version not in ("earliest", "v108", "v110"):
                typ, mask = part(rng)
                elements = rng.integers(0, 256, (*shape, len(mask)), "u1") & mask
                names = str(rng.choice(["", "nbit", "nbit gzip", "gzip", "nbit fletcher32"]))
                chunks = options.get("chunks")
                create(group, f"d{i}", elements, typ, names.split() if chunks else (), chunks)
                continue
            d = group.create_dataset(f"d{i}", shape, dtype, **options)
            box = tuple(
                slice(int(a), int(b)) for a, b in (sorted(rng.integers(0, n + 1, 2)) for n in shape)
            )
            if rng.random() < 0.6:
                box = ...
            size = d[box].shape
            d[box] = (
                values(size, dtype.lstrip("<>") if dtype != "?" else bool, i)
                if np.prod(size)
                else 0
            )
            if options.get("maxshape") and rng.random() < 0.5:
                d.resize(
                    tuple(
                        min(m, n + 3) if m else n + int(rng.integers(-n + 1, 4))
                        for n, m in zip(shape, options["maxshape"])
                    )
                )
            for k in range(int(rng.integers(0, 12))):
                d.attrs[f"k{k}"] = [1.5, "text", [1, 2, 3], np.float32(2)][k % 4]


def save(folder, names):
    """Write expected.json of files in a folder."""
    with open(f"{folder}/expected.json", "w") as out:
        json.dump(
            {n: expected(f"{folder}/{n}") for n in sorted(names)}, out, indent=0, sort_keys=True
        )
        out.write("\n")


def main():
    if sys.argv[1:2] == ["random"]:
        folder, seed, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        for i in range(count):
            random_file(f"{folder}/r{seed + i}.h5", seed + i)
        return save(folder, [f"r{seed + i}.h5" for i in range(count)])
    if sys.argv[1:2] == ["expect"]:
        found = [
            os.path.relpath(os.path.join(top, n), sys.argv[2])
            for top, _, names in os.walk(sys.argv[2])
            for n in names
            if n.endswith((".h5", ".hdf5", ".he5", ".nc", ".nc4"))
            and h5py.is_hdf5(os.path.join(top, n))
        ]
        return save(sys.argv[2], found)
    for part, versions in PARTS.items():
        for version in versions:
            both = "earliest" if version == "earliest" else (version, version)
            with h5py.File(f"{HERE}/{part.__name__}_{version}.h5", "w", libver=both) as f:
                part(f, many=version == "latest") if part is layouts else part(f)
    user_block(f"{HERE}/user_block.h5")
    samples(f"{HERE}/samples.h5")
    grouped(f"{HERE}/grouped.h5")
    netcdf(f"{HERE}/scene.nc")
    save(HERE, [n for n in os.listdir(HERE) if n.endswith((".h5", ".nc"))])


if __name__ == "__main__":
    sys.exit(main())
