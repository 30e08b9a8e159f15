"""Decodes frames with the original library, a line of JSON for each line that asks.

{"class", "files"} reads frames and decodes them once: {"sha256"} of all outputs, or {"refused"}.
{"class", "seconds"} decodes a class again and again: {"passes", "seconds"}.
"""

import hashlib
import importlib.metadata
import json
import platform
import sys
import time

import openzl.ext as zl


def version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


decoder = zl.DCtx()
versions = [f"Python {platform.python_version()}", version("openzl"), version("geozl")]
try:
    import geozl

    geozl.register_decoders(decoder)
except ImportError:
    pass
print(json.dumps({"versions": ", ".join(versions)}), flush=True)


def read(files):
    frames, digest = [], hashlib.sha256()
    for path in files:
        with open(path, "rb") as f:
            frames.append(f.read())
        for output in decoder.decompress(frames[-1]):
            digest.update(output.content.as_bytes())
    return frames, digest.hexdigest()


def measure(frames, seconds):
    passes, start = 0, time.perf_counter()
    while passes == 0 or time.perf_counter() - start < seconds:
        for frame in frames:
            decoder.decompress(frame)
        passes += 1
    return {"passes": passes, "seconds": time.perf_counter() - start}


classes = {}
for line in sys.stdin:
    ask = json.loads(line)
    if "files" not in ask:
        answer = measure(classes[ask["class"]], ask["seconds"])
    else:
        try:
            classes[ask["class"]], digest = read(ask["files"])
            answer = {"sha256": digest}
        except Exception as e:
            answer = {"refused": (str(e).strip() or repr(e)).splitlines()[0][:200]}
    print(json.dumps(answer), flush=True)
