"""Write small files by torch.save and safetensors, and expected.json with what PyTorch reads.

    python testdata/tensors/write.py
"""

import collections
import hashlib
import json
import os

import torch
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 bool uint16 uint32".split()


def values(*shape):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % 251


def typed():
    return {name: (values(3, 5) % 2 if name == "bool" else values(3, 5)).to(getattr(torch, name)) for name in TYPES}


def nested():
    """Views, parameters, and tensors in dicts, lists and tuples."""
    big = values(6, 7, 8).to(torch.int16)
    return {
        "image": values(4, 3, 9, 10).to(torch.int16),
        "labels": torch.tensor([3, 1, 2, 0]),
        "turned": big.permute(2, 0, 1),
        "part": big[2],
        "gaps": big[:, 1:6:2],
        "last": big.contiguous(memory_format=torch.contiguous_format)[:, :, :1].clone(),
        "meta": {"name": "ALSACE", "n": 4, "ratio": 0.5, "none": None, 3: values(2, 2)},
        "list": [values(2), (values(1, 3), "x", True)],
        "ordered": collections.OrderedDict(a=torch.ones(2, 2)),
        "parameter": torch.nn.Parameter(torch.ones(2, 3)),
        "size": torch.Size([1, 2]),
        "empty": torch.zeros(0, 4),
        "scalar": torch.tensor(2.5),
    }


def described(t):
    if t.numel() and not t.is_contiguous() and sorted(t.stride()) != sorted(
        torch.empty(sorted(t.shape)).stride()
    ) and not t.permute(*sorted(range(t.dim()), key=lambda d: -t.stride(d))).is_contiguous():
        return None
    t = t.detach().contiguous()
    raw = bytes(t.view(torch.uint8).numpy().tobytes()) if t.dim() else t.numpy().tobytes()
    return {
        "shape": list(t.shape),
        "dtype": str(t.dtype).removeprefix("torch."),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }


def expected(value, path=""):
    if isinstance(value, torch.Tensor):
        return {path: described(value)}
    out = {}
    if isinstance(value, dict):
        for key, item in value.items():
            out |= expected(item, f"{path}/{key}".strip("/"))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            out |= expected(item, f"{path}/{i}".strip("/"))
    return out


def main():
    saved = {"types.pt": typed(), "nested.pt": nested(), "chips.pt": values(4, 3, 9, 10).to(torch.int16)}
    for name, value in saved.items():
        torch.save(value, f"{HERE}/{name}")
    flat = {k.replace("/", "."): v for k, v in nested().items() if isinstance(v, torch.Tensor)}
    flat = {k: v.detach().contiguous().clone() for k, v in flat.items()} | typed()
    save_file(flat, f"{HERE}/flat.safetensors", metadata={"format": "pt"})
    files = {name: expected(torch.load(f"{HERE}/{name}", weights_only=False)) for name in saved}
    files["flat.safetensors"] = expected(load_file(f"{HERE}/flat.safetensors"))
    with open(f"{HERE}/expected.json", "w") as f:
        json.dump(files, f, indent=1)
        f.write("\n")


main()
