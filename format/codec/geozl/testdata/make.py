#!/usr/bin/env python3
"""Writes OpenZL frames with geozl codecs and what the original decodes them to.

    make.py DIR SEED COUNT

DIR/name.zl is a frame; DIR/name.raw its content as geozl.decompress gives it, or missing where that
refuses the frame. Needs the packages geozl 0.19, openzl 0.3 and numpy. Kinds of frames:

graph-*  geozl.compress of random rasters: every recipe, every type, missing samples, quantizers
node-*   single nodes of geozl.lossless below openzl, where a graph does not reach
forge-*  any streams and any header below the id of a codec, mostly sound ones
old-*    what older releases wrote and later ones refuse; the content is computed here
"""
import os, struct, sys
import numpy as np
import geozl, geozl.lossless as lossless
import openzl.ext as zl

out, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
os.makedirs(out, exist_ok=True)
INTS = "u1 u2 u4 u8 i1 i2 i4 i8".split()
ALL = INTS + "f2 f4 f8".split()


def put(name, frame, always=False, raw=None):
    try:
        raw = raw if raw is not None else geozl.decompress(frame).tobytes()
    except Exception as e:
        if always:
            raise
        raw = None
    open(os.path.join(out, name + ".zl"), "wb").write(frame)
    if raw is not None:
        open(os.path.join(out, name + ".raw"), "wb").write(raw)


def raster(dt, shape):
    """Something like an image: a slope, noise, now and then an outlier or a flat part."""
    n = int(np.prod(shape))
    kind = rng.integers(5)
    a = np.cumsum(rng.normal(0, 3, n)).reshape(shape) + rng.integers(0, 200)
    if kind == 1:
        a = rng.integers(0, 3, shape).astype(float)
    elif kind == 2:
        a = np.where(rng.random(shape) < 0.02, a * 1e3, a)
    elif kind == 3:
        return np.frombuffer(rng.bytes(n * np.dtype(dt).itemsize), dt).reshape(shape).copy()
    if dt[0] in "ui":
        i = np.iinfo(dt)
        with np.errstate(all="ignore"):
            return np.clip(a, i.min / 2, i.max / 2).astype(np.int64).astype(dt)
    return (a / rng.choice([1, 7, 1000])).astype(dt)


def graphs(n):
    for k in range(n):
        dt = str(rng.choice(ALL))
        b, h, w = (int(rng.integers(1, m)) for m in (4, 40, 70))
        a = raster(dt, (b, h, w) if rng.random() < 0.4 else (h, w))
        names = geozl._2d._grid_names(None, a.dtype.itemsize)
        recipe = str(rng.choice(names))
        kw = {}
        if rng.random() < 0.3:
            if dt[0] == "f":
                a[rng.random(a.shape) < rng.choice([0.1, 1.0])] = np.nan
            elif rng.random() < 0.9:
                v = int(rng.choice(a.reshape(-1)))
                a[rng.random(a.shape) < 0.2] = v
                kw["nodata"] = v
        if rng.random() < 0.35:
            kw["error"] = str(rng.choice(["LINEAR:MAX_ERROR=2", "LINEAR:MAX_ERROR=0.5,STORE=VALUES", "LINEAR:MAX_ERROR=3,STORE=INDEX", "LOG:MAX_ERROR=1%",
                                          "LOG:MAX_ERROR=5%,STORE=VALUES", "SQRT:MAX_ERROR=0.5N,A=4,B=1.5", "SQRT:MAX_ERROR=2N,A=100,B=2,STORE=INDEX",
                                          "SQRT:MAX_ERROR=1N,A=9,B=1,STORE=VALUES"]))
        if a.ndim == 3 and rng.random() < 0.5:
            kw["planes"] = a.shape[0]
        try:
            frame = geozl.compress(a, graph=geozl.graph(a, recipe, **kw))
        except (RuntimeError, ValueError, OverflowError):
            continue
        put(f"graph-{k}-{dt}-" + recipe.replace(">", "."), frame)


def compress(build, array):
    c = zl.Compressor()
    c.select_starting_graph(build(c))
    x = zl.CCtx()
    x.ref_compressor(c)
    x.set_parameter(zl.CParam.FormatVersion, int(rng.choice([16, 21, 23, 24])))
    return x.compress([zl.Input(zl.Type.Numeric, array.reshape(-1))])


store = lambda c: zl.nodes.ConvertNumToSerialLE()(c, zl.graphs.Zstd()(c))


def nodes(n):
    for k in range(n):
        dt = str(rng.choice(INTS))
        b, h, w = (int(rng.integers(1, m)) for m in (5, 20, 40))
        a = raster(dt, (b, h, w))
        a[:, h // 3:] = a[0, 0, 0]  # or nothing is won, and the frame is stored
        L = lossless
        name, build = [
            ("deltaw", lambda c: L.DeltaW(w)(c, store(c))), ("deltan", lambda c: L.DeltaN(w, b)(c, store(c))),
            ("planar", lambda c: L.Planar(w, b)(c, store(c))), ("med", lambda c: L.Med(w, b)(c, store(c))),
            ("average", lambda c: L.Average(w, b)(c, store(c))), ("wp", lambda c: L.WpStatic(w, b)(c, store(c))),
            ("pz", lambda c: L.PlanarZigzag(w, b)(c, store(c))), ("mz", lambda c: L.MedZigzag(w, b)(c, store(c))),
            ("pfor", lambda c: L.Pfor()(c, zl.graphs.Store()(c))),
            ("pzpfor", lambda c: L.PlanarZigzagPfor(w, b)(c, zl.graphs.Store()(c))),
            ("deinterleave", lambda c: L.Deinterleave()(c, store(c))),
        ][rng.integers(11)]
        put(f"node-{k}-{name}-{dt}", compress(build, a), always=True)


def varint(v):
    b = b""
    while v > 127:
        b, v = b + bytes([v & 127 | 128]), v >> 7
    return b + bytes([v])


def pack(values, width):
    v = sum(x << (i * width) for i, x in enumerate(values))
    return v.to_bytes((len(values) * width + 7) // 8, "little")


def forged(name, ctid, header, streams, samples, serial=False, raw=None):
    """A frame of version 24 without checksums, by hand, since the library stores what it cannot make smaller.

    Its last codec is ctid, with that header, and takes the streams; before it stand, unless they
    are serial, conversions of each from bytes. samples says what comes out."""
    k = len(streams)
    nodes = [] if serial else [(False, 10, bytes([s.dtype.itemsize.bit_length() - 1])) for s in reversed(streams)]
    nodes.append((True, ctid, bytes(header)))
    distances = [k - 1] * (len(nodes) - 1) + [0]
    f = struct.pack("<I", 0xD7B1A5C0 + 24) + bytes([0, 1 | 2 << 4]) + varint(samples.nbytes + 1)
    f += varint(len(nodes) + 1) + varint(k)
    f += pack([int(c) for c, _, _ in nodes], 1)
    f += pack([i for c, i, _ in nodes if not c], 7)
    f += b"".join(varint(i) for c, i, _ in nodes if c)
    f += pack([int(len(h) > 0) for _, _, h in nodes], 1)
    f += b"".join(varint(len(h) - 1) for _, _, h in nodes if h)
    f += pack([0] * len(nodes), 1) * 2
    f += pack(distances, (len(nodes) + k - 1).bit_length())
    f += b"".join(varint(s.nbytes) for s in reversed(streams))
    f += b"".join(h for _, _, h in nodes)
    f += b"".join(np.ascontiguousarray(s).tobytes() for s in reversed(streams))
    put(name, f + b"\0", raw=raw)


def bits(dt, n):
    return np.frombuffer(rng.bytes(n * np.dtype(dt).itemsize), dt)


def some(dt, n):
    """Any bits, small numbers, or the ends of the type."""
    i = np.iinfo(dt)
    kind = rng.integers(4)
    if kind == 0:
        return bits(dt, n)
    if kind == 1:
        return rng.integers(max(i.min, -50), min(i.max, 50), n).astype(dt)
    if kind == 2:
        return rng.choice(np.array([i.min, i.max, 0, 1, i.max // 2], dt), n)
    return rng.integers(max(i.min, -30000), min(i.max, 30000), n).astype(dt)


def quantizers(n):
    for k in range(n):
        code = int(rng.integers(0, 11))
        dt = ALL[code]
        w = np.dtype(dt).itemsize
        st = "i" + str(w) if dt[0] == "f" else dt
        m = int(rng.integers(1, 300))
        ctid = 0x72D781 + int(rng.integers(3))
        step = float(rng.choice([1, 2, 3, 10, 0.5, 1.3, 0.001, 1e-9, 1e9, 2.0 ** 40, 1e-300, 5e-324, 1e300, 0.0, -1.0, np.inf, np.nan, rng.random(), 1 + 20 * rng.random()],
                                p=[.2, .1, .1, .1, .05, .05, .05, .03, .03, .03, .02, .02, .02, .01, .01, .01, .01, .075, .085]))
        h = bytes([code, int(rng.integers(0, 4)) if rng.random() < 0.8 else int(rng.integers(0, 9))]) + struct.pack("<d", step)
        if ctid == 0x72D783:
            h += struct.pack("<d", float(rng.choice([0, 1, 5.7, 1000.25, 1e18, -1.0, np.nan], p=[.3, .2, .2, .1, .1, .05, .05])))
        forged(f"forge-{k}-{ctid & 255:x}-{dt}", ctid, h, [some(st, m)], np.zeros(m, f"u{w}"))


def pairs(n):
    for k in range(n):
        w = int(rng.choice([1, 2, 4, 8]))
        dt, m = f"u{w}", int(rng.integers(1, 200))
        kind = int(rng.integers(6))
        if kind == 0:  # binoffset
            nb = int(rng.integers(1, 20))
            ob = rng.integers(0, 8 * w + 1, nb)
            h = bytes([nb]) + b"".join(rng.bytes(w) + bytes([int(x)]) for x in ob)
            b = rng.integers(0, nb + (rng.random() < 0.05), m).astype("u1")
            o = bits(dt, m) & np.array([(1 << int(ob[min(x, nb - 1)])) - 1 for x in b], dt)
            forged(f"forge-{k}-binoffset-{dt}", 0x72D708, h, [b, o], np.zeros(m, dt))
        elif kind == 1:  # intmult
            base = int(rng.integers(1, 1 << min(8 * w, 62)))
            a = (bits(dt, m) % np.array(base, dt)).astype(dt)
            if rng.random() < 0.05:
                a[0] = base & ((1 << 8 * w) - 1)
            forged(f"forge-{k}-intmult-{dt}", 0x72D709, base.to_bytes(w, "little"), [some(dt, m), a], np.zeros(m, dt))
        elif kind == 2 and w >= 4:  # floatquant
            q = int(rng.integers(0, 25 if w == 4 else 54))
            forged(f"forge-{k}-floatquant-{dt}", 0x72D70A, bytes([q]), [bits(dt, m) >> np.array(rng.integers(0, 3) * q, dt), bits(dt, m) >> np.array(max(8 * w - max(q, 1), 0), dt)],
                   np.zeros(m, dt))
        elif kind == 3 and w >= 4:  # floatmult
            mid = np.array(1 << (8 * w - 1), dt)
            near = lambda s: (mid + rng.integers(-s, s, m).astype(f"i{w}").view(dt)).astype(dt)
            base = float(rng.choice([0.1, 0.01, -3.5, 1e30, 0.0, np.inf, np.nan, rng.random()]))
            forged(f"forge-{k}-floatmult-{dt}", 0x72D70B, struct.pack("<d", base),
                   [near(1 << 20) if rng.random() < 0.8 else bits(dt, m), near(5) if rng.random() < 0.8 else bits(dt, m)], np.zeros(m, dt))
        elif kind == 4:  # deinterleave
            d = int(rng.choice([0, 1, 2, -1], p=[.5, .4, .05, .05]))
            forged(f"forge-{k}-deinterleave-{dt}", 0x72D704, b"", [bits(dt, m + d) if m + d > 0 else bits(dt, 0), bits(dt, m)], np.zeros(max(2 * m + d, 0), dt))
        elif kind == 5:  # nodata
            h = rng.bytes(w * int(rng.choice([1, 4, 2], p=[.45, .5, .05])))
            if len(h) == 2 and h[0] == 1:  # a header of old_nodata
                h = b"\0" + h[1:]
            v = np.where(rng.random(m) < 0.3, np.frombuffer(h[:w], dt)[0], bits(dt, m)).astype(dt)
            mask = rng.integers(0, int(rng.choice([4, 5, 255], p=[.8, .1, .1])), m).astype("u1")
            forged(f"forge-{k}-nodata-{dt}", 0x72D70C, h, [v, mask], np.zeros(m, dt))


def predictors(n):
    for k in range(n):
        w = int(rng.choice([1, 2, 4, 8]))
        dt = f"u{w}"
        b, h, x = (int(rng.integers(1, m)) for m in (4, 12, 40))
        m = b * h * x + int(rng.choice([0, 1], p=[.93, .07]))
        ctid = int(rng.choice([1, 2, 3, 5, 6, 7, 0xF, 0x11])) + 0x72D700
        head = struct.pack("<I", x)
        if ctid == 0x72D707:
            head += bytes([int(rng.choice([0, 1, 3, 8, 15, 17, 40, 63, 64]))]) + rng.bytes(8)
        if rng.random() < 0.4:
            head += struct.pack("<I", int(rng.choice([b, 1, 0, 3], p=[.8, .1, .05, .05])))
        forged(f"forge-{k}-{ctid & 255:02x}-{dt}", ctid, head, [some(dt, m)], np.zeros(m, dt))


def packed(n):
    for k in range(n):
        w = int(rng.choice([1, 2, 4, 8]))
        m = int(rng.integers(1, 700))
        a = some(f"u{w}", m) >> np.array(rng.integers(0, 8 * w), f"u{w}")
        p = np.frombuffer(geozl.lossless.pfor.encode(a), "u1").copy()
        for _ in range(int(rng.choice([0, 1, 2], p=[.2, .6, .2]))):
            p[min(int(rng.geometric(0.05)), p.size) - 1] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.1:
            p = p[:-1]
        h = struct.pack("<QB", m, w)
        forged(f"forge-{k}-pfor-u{w}", 0x72D70D, h, [p], np.zeros(m, f"u{w}"), serial=True)


def old_nodata(n):
    """The codec as releases up to 0.12 wrote it, which later ones refuse: what comes out is computed here."""
    for k in range(n):
        w = int(rng.choice([1, 2, 4, 8]))
        dt, m = f"u{w}", int(rng.integers(1, 60))
        v, mask, pattern, none = bits(dt, m), rng.integers(0, 3, m).astype("u1"), bits(dt, 1), bits("u1", 0)
        code = int(rng.integers(1, 4))
        h, streams, want = {
            1: (pattern.tobytes(), [v, mask], np.where(mask == 0, pattern[0], v)),
            2: (b"", [v, none], v),
            3: (pattern.tobytes() + struct.pack("<Q", m), [bits(dt, 0), none], np.repeat(pattern, m)),
        }[code]
        forged(f"old-{k}-nodata{code}-{dt}", 0x72D70C, bytes([code]) + h, streams, want, raw=want.astype(dt).tobytes())


for f in (graphs, nodes, quantizers, pairs, predictors, packed, old_nodata):
    f(count)
