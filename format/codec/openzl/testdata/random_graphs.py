"""Writes OpenZL frames of random graphs, and what went into them.

    random_graphs.py DIR SEED COUNT [NAME ...]

DIR/name.zl is a frame of one input, DIR/name.raw its bytes, DIR/name.len the lengths of its strings (little-endian uint32), if
it has some. A graph is a random tree of the nodes and graphs that the library lists by name, or NAME itself. Where the library
refuses a graph for an input, no frame is written. Needs the packages openzl 0.3 and numpy."""
import os, re, signal, sys
import numpy as np
import openzl.ext as zl

out, seed, count, only = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
rng = np.random.default_rng(seed)
os.makedirs(out, exist_ok=True)
T = zl.Type
WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}


def listed():
    """Returns the names that the extension module contains and a compressor knows, of nodes and of graphs."""
    text = open(zl.__file__, "rb").read()
    names = sorted({x.decode() for x in re.findall(rb"!(zl\.[a-z0-9A-Z_.]+)", text)})
    c = zl.Compressor()
    return [x for x in names if c.get_node(x) is not None], [x for x in names if c.get_graph(x) is not None]


NODES, GRAPHS = listed()
# They need parameters or successors that a name does not give.
SKIP = {"zl.brute_force", "zl.cluster", "zl.ml_selector", "zl.n_to_n", "zl.sddl", "zl.sddl2", "zl.private.sddl2_chunk", "zl.try_parse_int",
        "zl.private.merge_sorted_selector"}
GRAPHS = [g for g in GRAPHS if g not in SKIP]
LEVELS = ["zl.lz", "zl.field_lz", "zl.zstd", "zl.compress_generic", "zl.select_generic_lz_backend", "zl.huffman_pivco", "zl.huffman"]


def numbers(w, n):
    """Numbers of w bytes: a walk, few values, small ones, sorted ones, any bits, runs."""
    dt = np.dtype(f"u{w}")
    kind = rng.integers(7)
    if kind == 0:
        return np.cumsum(rng.integers(-9, 10, n)).astype(np.int64).astype(dt)
    if kind == 1:
        return rng.choice(np.frombuffer(rng.bytes(w * 9), dt), n)
    if kind == 2:
        return rng.geometric(rng.choice([0.02, 0.2, 0.6]), n).astype(dt)
    if kind == 3:
        return np.sort(np.frombuffer(rng.bytes(w * n), dt))
    if kind == 4:
        return np.repeat(rng.integers(0, 200, n // 7 + 1), 7)[:n].astype(dt)
    if kind == 5:
        return np.ascontiguousarray(rng.normal(100, 7, n).astype({1: "f2", 2: "f2", 4: "f4", 8: "f8"}[w]).view(dt))[:n] if w > 1 else rng.integers(0, 256, n).astype(dt)
    return np.frombuffer(rng.bytes(w * n), dt)


def text(n):
    """Bytes: words, repeats over short and long distances, numbers."""
    kind = rng.integers(5)
    if kind == 0:
        words = [rng.bytes(int(rng.integers(1, 12))) for _ in range(40)]
        return b"".join(words[i] for i in rng.zipf(1.4, n // 4 + 1) % 40)[:n]
    if kind == 1:
        part = rng.bytes(int(rng.integers(1, n + 1)))
        return (part * (n // len(part) + 1))[:n]
    if kind == 2:
        return " ".join(str(x) for x in rng.integers(0, 10 ** int(rng.integers(1, 9)), n // 3 + 1)).encode()[:n]
    w = int(rng.choice([1, 2, 4, 8]))
    return numbers(w, n // w + 1).tobytes()[:n]


def size():
    return int(rng.choice([rng.integers(1, 20), rng.integers(1, 600), rng.integers(1, 20000), rng.integers(1, 300000)], p=[.1, .4, .4, .1]))


def an_input():
    """Returns a type, the array of an input, and the lengths of its strings."""
    kind = rng.integers(4)
    n = size()
    if kind == 0:
        return T.Serial, np.frombuffer(text(n), "u1"), None
    if kind == 1:
        w = int(rng.choice([1, 2, 3, 4, 5, 8, 16]))
        raw = text(w * n) if w not in (1, 2, 4, 8) or rng.random() < 0.5 else numbers(w, n).tobytes()
        return T.Struct, np.frombuffer(raw, "u1")[: len(raw) // w * w].reshape(-1, w), None
    if kind == 2:
        return T.Numeric, numbers(int(rng.choice([1, 2, 4, 8])), n), None
    lens = rng.geometric(rng.choice([0.1, 0.5]), n // 8 + 1).astype("u4") - 1
    if rng.random() < 0.3:
        words = [str(x).encode() for x in rng.integers(0, 10 ** int(rng.integers(1, 9)), len(lens))]
        lens, raw = np.array([len(x) for x in words], "u4"), b"".join(words)
    else:
        raw = text(int(lens.sum()) or 1)[: int(lens.sum())]
        raw += bytes(int(lens.sum()) - len(raw))
    return T.String, np.frombuffer(raw, "u1"), lens


def alone(c, name):
    """Returns a listed graph, or a listed node whose outputs are compressed in general or stored."""
    if c.get_graph(name) is not None and rng.random() < 0.7 or c.get_node(name) is None:
        return c.get_graph(name)
    successors = []
    for _ in range(6):
        try:
            return c.build_static_graph(c.get_node(name), successors)
        except Exception:
            successors.append(c.get_graph("zl.compress_generic" if rng.random() < 0.6 else "zl.store"))
    raise ValueError(name)


def build(c, depth):
    """Returns a random graph: mostly a listed one, or a node with as many successors as it takes."""
    if depth == 0 or rng.random() < 0.45:
        return c.get_graph(str(rng.choice(LEVELS if rng.random() < 0.3 else GRAPHS)))
    node = c.get_node(str(rng.choice(NODES)))
    successors = []
    for _ in range(6):
        try:
            return c.build_static_graph(node, successors)
        except Exception:
            successors.append(build(c, depth - 1))
    return c.get_graph("zl.compress_generic")


def write(made, tries):
    """Writes one frame, and reports whether there is one."""
    global rng
    rng = np.random.default_rng([seed, tries])
    kind, array, lens = an_input()  # the arrays have to outlive x, which only points to them
    x = zl.Input(kind, array) if lens is None else zl.Input(kind, array, lens)
    c = zl.Compressor()
    version = int(rng.choice([27, 27, 27, 26, 25, 24, 24, 23, 21, 19, 16, 14, 12, 11, 10, 9, 8]))
    name = str(rng.choice(only)) if only else ""
    try:
        c.set_parameter(zl.CParam.FormatVersion, version)
        c.set_parameter(zl.CParam.CompressionLevel, int(rng.integers(-3, 12)))
        if rng.random() < 0.3:
            c.set_parameter(zl.CParam.DecompressionLevel, int(rng.integers(0, 9)))
        if rng.random() < 0.7:
            c.set_parameter(zl.CParam.MinStreamSize, int(rng.choice([1, 5])))
        c.select_starting_graph(alone(c, name) if name else build(c, int(rng.integers(0, 5))))
        if rng.random() < 0.8 and not name:
            c.set_parameter(zl.CParam.PermissiveCompression, 1)
        k = zl.CCtx()
        k.ref_compressor(c)
        frame = k.compress([x])
    except Exception as e:
        if os.environ.get("VERBOSE"):
            print(name, version, str(e)[:300], file=sys.stderr)
        return False
    base = os.path.join(out, f"{made:06d}-v{version}" + ("-" + name if name else ""))
    open(base + ".raw", "wb").write(array.tobytes())
    if lens is not None:
        open(base + ".len", "wb").write(lens.astype("<u4").tobytes())
    open(base + ".zl", "wb").write(frame)
    return True


made, tries, crashes = 0, 0, 0
while made < count and tries < 60 * count:
    tries += 1
    # A process of its own, as some graphs crash the library's encoder.
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        os._exit(0 if write(made, tries) else 3)
    status = os.waitpid(pid, 0)[1]
    made += status == 0
    crashes += os.WIFSIGNALED(status)
print(made, "frames of", tries, "graphs,", crashes, "of which crash the encoder")
