"""What a streaming TACO 0.2 holds, by the text of the specification: for the test that writes them.

read_taco.py PATH...     a line of JSON for each: "tables" (rows with paths), "leaves" (SHA-256 by
                         path), "tiles" (SHA-256 of the bytes of each row of the last table, by its
                         root and id), and "collection"
"""

import hashlib
import io
import json
import os
import re
import struct
import sys

import pyarrow.parquet as pq


def main():
    """Follows the chain from the header on."""
    for name in sys.argv[1:]:
        with open(name, "rb") as f:
            b = f.read()
        magic, at, size, parts, doc, doc_size = struct.unpack("<2s5Q", b[:42])
        assert magic == b"WX" and parts == 1 and not any(b[42:200]), b[:200]
        found = {"tables": [], "leaves": {}, "tiles": {}}
        found["collection"] = json.loads(b[doc : doc + doc_size].decode())
        while True:
            file = pq.ParquetFile(io.BytesIO(b[at : at + size]))
            pointer = file.metadata.metadata[b"pointer"].decode()
            rows = file.read().to_pylist()
            found["tables"].append([[r["tortilla:root"], r["tortilla:id"]] for r in rows])
            if pointer == "NULL":
                break
            for r in rows:
                if r["tortilla:file_format"] == "TORTILLA":
                    inner = r["tortilla:offset"]
                    assert b[inner : inner + 2] == b"#y", r
                    continue
                above = "" if len(found["tables"]) == 1 else r["tortilla:root"] + "/"
                data = b[r["tortilla:offset"] :][: r["tortilla:length"]]
                found["leaves"][above + r["tortilla:id"]] = hashlib.sha256(data).hexdigest()
            at, size = map(int, re.fullmatch(r"OFFSETLENGTH\((\d+), (\d+)\)", pointer).groups())
        for r in rows:
            data = b[r["tortilla:offset"] :][: r["tortilla:length"]]
            key = f"{r['tortilla:root']}|{r['tortilla:id']}"
            assert key not in found["tiles"], key
            found["tiles"][key] = hashlib.sha256(data).hexdigest()
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # threads of Arrow that still run would abort the process
