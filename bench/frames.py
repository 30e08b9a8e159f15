"""Decodes frames with the original library. It answers each line of JSON on its input with one.

To {"class", "files"} it reads the frames of a class, decodes them once, and answers {"sha256"} of
all outputs, or {"refused"} with the error. To {"class", "seconds", "cpu"} it decodes that class
again and again for so many seconds, of processor time if cpu, and answers {"passes", "seconds"}.
Frames that need geozl's codecs are decoded by the library of geozl.
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
except ImportError:
    geozl = None
print(json.dumps({"versions": ", ".join(versions)}), flush=True)


def read(files):
    frames, digest = [], hashlib.sha256()
    for path in files:
        with open(path, "rb") as f:
            frames.append(f.read())
    try:
        for frame in frames:
            for output in decoder.decompress(frame):
                digest.update(output.content.as_bytes())
        return frames, decoder.decompress, digest.hexdigest()
    except Exception:
        if geozl is None:
            raise
    digest = hashlib.sha256()
    for frame in frames:
        digest.update(geozl.decompress(frame))
    return frames, geozl.decompress, digest.hexdigest()


def measure(frames, decode, seconds, cpu):
    clock = time.process_time if cpu else time.perf_counter
    passes, start = 0, clock()
    while passes == 0 or clock() - start < seconds:
        for frame in frames:
            decode(frame)
        passes += 1
    return {"passes": passes, "seconds": clock() - start}


classes = {}
for line in sys.stdin:
    ask = json.loads(line)
    if "files" not in ask:
        answer = measure(*classes[ask["class"]], ask["seconds"], ask["cpu"])
    else:
        try:
            *classes[ask["class"]], digest = read(ask["files"])
            answer = {"sha256": digest}
        except Exception as e:
            answer = {"refused": (str(e).strip() or repr(e)).splitlines()[0][:200]}
    print(json.dumps(answer), flush=True)
