"""Answers of numpy and Python einops, for the tests of package einops.

    python oracle.py answer < cases.json > answers.json     answers a list of cases
    python oracle.py make                                   writes patterns.json and conversions.json beside this file

A case is an object. With "pattern" it is a layout: the input is arange over "axes" (a list of
[name, length]), and the answer has the "shape" and the flat "index" of what einops.rearrange makes of
it. Otherwise it is a conversion of the samples "data" (hex, little-endian) from dtype "from" to dtype
"to", and the answer is the elements "out" (hex) and "mask" (0 or 1 each).

Needs numpy and einops; torch, if it is there, is asked about bfloat16 too.
"""

import json
import pathlib
import random
import re
import sys

import einops
import numpy as np

np.seterr(all="ignore")

REAL = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16"]
TO = ["float32", "float16", "bfloat16", "uint8"]
TO_INT64 = ["uint8", "uint16", "uint32", "int8", "int16", "int32"]


def layout(case):
    names = [n for n, _ in case["axes"]]
    shape = [k for _, k in case["axes"]]
    x = np.arange(int(np.prod(shape))).reshape(shape)
    pattern = case["pattern"]
    if "->" not in pattern:
        # One-sided: the left side is implied. Axes that are left out have length 1.
        if "..." not in pattern:
            used = set(re.findall(r"[a-z]", pattern))
            x = x.reshape([k for n, k in case["axes"] if n in used])
            names = [n for n in names if n in used]
            left = " ".join(names)
        else:
            used = set(re.findall(r"[a-z]", pattern))
            rest = [n for n in names if n not in used]
            pattern = pattern.replace("...", " ".join(rest))
            left = " ".join(names)
        pattern = left + " -> " + pattern
    y = einops.rearrange(x, pattern, **case.get("sizes", {}))
    return {"shape": list(y.shape), "index": y.reshape(-1).tolist()}


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(x):
    bits = x.view(np.uint32)
    out = ((bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    nan = np.isnan(x)
    out[nan] = 0x7FC0
    if "torch" in sys.modules:
        import torch

        other = torch.from_numpy(x.copy()).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
        assert np.array_equal(out[~nan], other[~nan])
    return out


def to_uint8(x):
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), x.dtype.type(0), np.rint(x))
    return np.clip(x, 0, 255).astype(np.uint8)


def conversion(case):
    raw = np.frombuffer(bytes.fromhex(case["data"]), np.uint8)
    source = case["from"]
    stored = raw.view(np.uint16 if source == "bfloat16" else source)
    x = from_bfloat16(stored) if source == "bfloat16" else stored
    y = x
    arithmetic = any(case.get(k) is not None for k in ("scale", "offset", "clip"))
    if arithmetic:
        y = x.astype(np.float32)
    if case.get("scale") is not None or case.get("offset") is not None:
        a = np.float32(1 if case.get("scale") is None else case["scale"])
        c = np.float32(0 if case.get("offset") is None else case["offset"])
        y = (y * a) + c
    if case.get("clip") is not None:
        y = np.clip(y, np.float32(case["clip"][0]), np.float32(case["clip"][1]))

    def finish(v):
        if case["to"] == "bfloat16":
            return to_bfloat16(v.astype(np.float32))
        if case["to"] == "uint8":
            return to_uint8(v)
        return v.astype(case["to"])

    out = stored.copy() if source == case["to"] and not arithmetic else finish(y)
    mask = np.ones(len(x), np.uint8)
    nodata = case.get("nodata")
    if nodata is not None:
        if nodata == "nan":
            mask[np.isnan(x)] = 0
        elif x.dtype.kind == "f":
            mask[x == x.dtype.type(nodata)] = 0
        elif float(nodata).is_integer() and np.iinfo(x.dtype).min <= int(nodata) <= np.iinfo(x.dtype).max:
            mask[x == x.dtype.type(int(nodata))] = 0
        if case.get("fill") is not None:
            out[mask == 0] = finish(np.array([case["fill"]], np.float64))[0]
    return {"out": out.tobytes().hex(), "mask": mask.tolist()}


def answer(case):
    return layout(case) if "pattern" in case else conversion(case)


def factor(r, n):
    """Factors of n, two or three of them."""
    parts = []
    for _ in range(r.randint(1, 2)):
        d = r.choice([d for d in range(1, n + 1) if n % d == 0])
        parts.append(d)
        n //= d
    return parts + [n]


def random_layout(r):
    names = [n for n in "ntbyx" if r.random() < 0.75] or ["b", "y", "x"]
    axes = [[n, r.choice([1, 2, 3, 4, 6])] for n in names]
    if r.random() < 0.3:
        kept = [n for n, k in axes if k > 1 or r.random() < 0.6] or [names[0]]
        left = None
        words = list(kept)
    else:
        left, words, sizes, fresh = [], [], {}, iter("hwpqcdefgijklm")
        for n, k in axes:
            if r.random() < 0.35:
                parts = factor(r, k)
                group = [next(fresh) for _ in parts]
                unknown = r.randrange(len(parts)) if r.random() < 0.7 else -1
                sizes.update({g: p for i, (g, p) in enumerate(zip(group, parts)) if i != unknown})
                left.append("(" + " ".join(group) + ")")
                words += group
            elif k == 1 and r.random() < 0.5:
                left.append("1")
            else:
                left.append(n)
                words.append(n)
    r.shuffle(words)
    right = []
    while words:
        if r.random() < 0.3:
            k = r.randint(1, min(3, len(words)))
            right.append("(" + r.choice([" ", "  "]).join(words[:k]) + ")")
            words = words[k:]
        else:
            right.append(words.pop(0))
        if r.random() < 0.1:
            right.append(r.choice(["1", "()"]))
    case = {"axes": axes}
    if left is None:
        case["pattern"] = " ".join(right)
        return case
    plain = [w for w in left if w in dict(axes) and w in right]
    run = plain[:1]
    if run and r.random() < 0.3:  # "..." for one axis
        left[left.index(run[0])] = "..."
        right[right.index(run[0])] = "..."
    case["pattern"] = " ".join(left) + r.choice([" -> ", "->"]) + " ".join(right)
    case["sizes"] = sizes
    return case


def samples(r, dtype, n):
    """Random bits, values of the usual range, and values where rounding is close."""
    if dtype in ("float16", "bfloat16"):
        return bytes(r.randrange(256) for _ in range(2 * n))
    dt = np.dtype(dtype)
    if dt.kind != "f":
        small = np.array([r.choice([0, 1, 2, 100, 127, r.randrange(128)]) for _ in range(n)]).astype(dt)
        wild = np.frombuffer(bytes(r.randrange(256) for _ in range(n * dt.itemsize)), dt)
        return np.where(np.arange(n) % 2 == 0, small, wild).tobytes()
    wild = np.frombuffer(bytes(r.randrange(256) for _ in range(n * dt.itemsize)), dt)
    halves = np.array([r.randrange(-600, 600) / 2 for _ in range(n)], dt)
    near = halves * (1 + np.array([r.choice([1, -1]) for _ in range(n)]) * np.finfo(dt).eps).astype(dt)
    odd = np.array([(1 + r.randrange(1, 2048, 2) * 2.0**-11) * 2.0 ** r.randrange(-30, 17) for _ in range(n)], dt)
    odd = odd * (1 + np.array([r.choice([0, 1, -1]) for _ in range(n)]) * np.finfo(dt).eps).astype(dt)
    special = np.array([r.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 65520, 65519.99]) for _ in range(n)], dt)
    return np.choose(np.arange(n) % 5, [wild, halves, near, odd, special]).tobytes()


def random_conversion(r, source, to):
    case = {"from": source, "to": to, "data": samples(r, source, 40).hex()}
    if r.random() < 0.6:
        case["scale"] = float(np.float32(r.choice([1e-4, 0.5, -3.7, r.uniform(-2, 2), 1 / 255])))
    if r.random() < 0.5:
        case["offset"] = float(np.float32(r.choice([-0.1, 1000, r.uniform(-5, 5)])))
    if r.random() < 0.3:
        case["clip"] = [float(np.float32(r.uniform(-10, -0.1))), float(np.float32(r.uniform(0.1, 200)))]
    if r.random() < 0.5:
        case["nodata"] = r.choice([0, 100, 1.5, -9999, 300])
        if "float" in source and r.random() < 0.4:
            case["nodata"] = "nan"
        if r.random() < 0.7:
            case["fill"] = r.choice([0, 7, 255])
    return case


def random_label(r, source):
    """Classes as int64, without arithmetic."""
    case = random_conversion(r, source, "int64")
    for member in ("scale", "offset", "clip"):
        case.pop(member, None)
    if "fill" in case:
        case["fill"] = r.choice([-100, 0, 2**40])
    return case


def lines(cases):
    return "[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n"


def make():
    here = pathlib.Path(__file__).parent
    r = random.Random(20)
    layouts = [random_layout(r) for _ in range(120)]
    pairs = [(s, t) for s in REAL for t in TO]
    conversions = [random_conversion(r, s, t) for s, t in pairs for _ in range(5 if s == "float64" else 2)]
    r = random.Random(21)
    conversions += [random_label(r, s) for s in TO_INT64 for _ in range(4)]
    for name, cases in (("patterns.json", layouts), ("conversions.json", conversions)):
        (here / name).write_text(lines([{**c, **answer(c)} for c in cases]))


if __name__ == "__main__":
    try:
        import torch  # noqa: F401
    except ImportError:
        pass
    if sys.argv[1:] == ["make"]:
        make()
    elif sys.argv[1:] == ["answer"]:
        json.dump([answer(c) for c in json.load(sys.stdin)], sys.stdout)
    else:
        sys.exit(__doc__)
