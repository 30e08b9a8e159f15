"""Reads DIR/GRAPH-WIDTH-N-*.zl, rasters of N by N, with the original library, compares with .raw, writes the same samples with the
same graph, and prints a line for each: its name, and the size of the original's frame (0 where that has no such graph)."""
import glob, os, sys
import numpy as np
import geozl, geozl.lossless
import openzl.ext as zl

N, G = zl.nodes, zl.graphs
TERMINAL = {"zstd": G.Zstd, "entropy": G.Entropy, "store": G.Store}
x = None


def build(c, parts):
    head, rest = parts[0], parts[1:]
    if head == "delta":
        return N.DeltaInt()(c, build(c, rest))
    if head == "zigzag":
        return N.Zigzag()(c, build(c, rest))
    if head == "transpose":
        return N.ConvertNumToStructLE()(c, N.TransposeSplit()(c, TERMINAL[rest[0]]()(c)))
    if head == "bitpack":
        return G.Bitpack()(c)
    if head == "pfor":
        return geozl.lossless.Pfor()(c, G.Store()(c))
    return N.ConvertNumToSerialLE()(c, TERMINAL[head]()(c))


for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.zl"))):
    name = os.path.basename(path)[:-3]
    graph, width, n = name.split("-")[:3]
    raw = open(path[:-3] + ".raw", "rb").read()
    frame = open(path, "rb").read()
    if graph == "planar.zigzag.pivco":  # which geozl 0.19 does not register with a context of openzl
        got = np.frombuffer(geozl.decompress(frame).tobytes(), "u" + width)
    else:
        d = zl.DCtx()
        geozl.register_decoders(d)
        out = d.decompress(frame)
        assert len(out) == 1 and out[0].type == zl.Type.Numeric, name
        got = out[0].content.as_nparray()
    assert got.dtype.itemsize == int(width) and got.tobytes() == raw, name
    size = 0
    a = np.frombuffer(raw, "u" + width).reshape(int(n), int(n))
    try:
        if graph == "transpose.pivco":
            size = len(geozl.compress(a, graph=geozl.graph(a, "id>transpose>pivco")))
        elif graph.startswith("planar.zigzag"):
            size = len(geozl.compress(a, graph=geozl.graph(a, graph.replace(".", ">"))))
        elif graph not in ("auto", "best") and not graph.startswith("planar"):
            c = zl.Compressor()
            c.select_starting_graph(build(c, graph.split(".")))
            x = zl.CCtx()
            x.ref_compressor(c)
            x.set_parameter(zl.CParam.FormatVersion, 27 if "pivco" in graph else 24)
            size = len(x.compress([zl.Input(zl.Type.Numeric, a.reshape(-1))]))
    except (KeyError, RuntimeError, ValueError):
        pass
    print(name, size)
