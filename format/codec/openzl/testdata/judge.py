"""Decodes frames with the original library and geozl's codecs. Reads frames from standard input, each after its size
(u32) and whether to verify checksums (u8); answers each with a line: "ok SHA256 ..." (for each output its type, width,
number of elements, content and lengths, hashed), or "error CODE WORDS", with " (zstd)" where it was zstd that refused."""
import hashlib, re, struct, sys
import geozl
import openzl.ext as zl

NAMES = {zl.Type.Serial: b"serial", zl.Type.Struct: b"struct", zl.Type.Numeric: b"numeric", zl.Type.String: b"string"}
stdin, stdout = sys.stdin.buffer, sys.stdout


def digest(o):
    h = hashlib.sha256(NAMES[o.type])
    h.update(struct.pack("<II", 0 if o.type == zl.Type.String else o.elt_width, o.num_elts))
    if o.num_elts:
        h.update(o.content.as_bytes())
        if o.type == zl.Type.String:
            h.update(o.string_lens.as_nparray().astype("<u4").tobytes())
    return h.hexdigest()


while True:
    head = stdin.read(5)
    if len(head) < 5:
        break
    size, verify = struct.unpack("<IB", head)
    frame = stdin.read(size)
    try:
        d = zl.DCtx()
        geozl.register_decoders(d)
        if not verify:
            d.set_parameter(zl.DParam.CheckCompressedChecksum, 2)
            d.set_parameter(zl.DParam.CheckContentChecksum, 2)
        print("ok", *[digest(o) for o in d.decompress(frame)], flush=True)
    except Exception as e:
        text = str(e)
        code = re.search(r"error code: (\d+)", text)
        words = re.search(r"error string: (.*)", text)
        print("error", code.group(1) if code else "?", (words.group(1) if words else type(e).__name__) + " (zstd)" * ("Zstd decompression failed" in text), flush=True)
