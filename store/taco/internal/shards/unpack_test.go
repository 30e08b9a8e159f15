package shards

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// withDisk opens files in memory by name, and others on the disk.
type withDisk struct{ memory }

// Open implements source.Opener.
func (w withDisk) Open(ctx context.Context, uri string) (source.Reader, error) {
	if filepath.IsAbs(uri) {
		b, err := os.ReadFile(uri)
		return held(b), err
	}
	return w.memory.Open(ctx, uri)
}

// b"over 100 bytes " * 10, compressed by the packages of Python that MosaicML Streaming uses: zstd 1.5.7, and bz2.
const (
	originalZstd  = "28b52ffd2096b50000786f7665722031303020627974657320010004a1661d"
	originalBzip2 = "425a6839314159265359f015738900003199804000600012009d202000508069a680a5534d063d4c" +
		"27c9d265324d269309f9369b4da705dc914e14243c055ce240"
)

// zipped returns the shards of an index, compressed as a whole.
func zipped(t testing.TB, m memory, compression string) memory {
	t.Helper()
	var x struct {
		Version int              `json:"version"`
		Shards  []map[string]any `json:"shards"`
	}
	if err := json.Unmarshal(m["mds/index.json"], &x); err != nil {
		t.Fatal(err)
	}
	out := memory{}
	for _, s := range x.Shards {
		raw := s["raw_data"].(map[string]any)["basename"].(string)
		var b bytes.Buffer
		var w io.WriteCloser
		switch name, _, _ := strings.Cut(compression, ":"); name {
		case "gz":
			w = gzip.NewWriter(&b)
		case "zstd":
			w, _ = zstd.NewWriter(&b)
		default:
			w = struct {
				io.Writer
				io.Closer
			}{&b, io.NopCloser(nil)}
		}
		if _, err := w.Write(m["mds/"+raw]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s["compression"] = compression
		s["zip_data"] = map[string]any{"basename": raw + ".zip", "bytes": b.Len(), "hashes": map[string]string{}}
		out["mds/"+raw+".zip"] = b.Bytes()
	}
	index, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	out["mds/index.json"] = index
	return out
}

// unpackedOf opens compressed shards with a folder to decompress them into.
func unpackedOf(t *testing.T, m memory) (*Container, error) {
	t.Helper()
	dir := t.TempDir()
	return OpenMDS(t.Context(), withDisk{m}, "mds", join, func() (string, error) { return dir, nil })
}

// TestUnpack: compressed shards have the files, hashes and columns of those that the original writer did not compress.
func TestUnpack(t *testing.T) {
	m := fixture(t, "mds")
	want, err := OpenMDS(t.Context(), m, "mds", join, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, compression := range []string{"zstd:7", "zstd", "gz:9"} {
		c, err := unpackedOf(t, zipped(t, m, compression))
		if err != nil {
			t.Fatal(compression, err)
		}
		for i := range want.files {
			a, _ := want.Entry(t.Context(), 1, i)
			b, _ := c.Entry(t.Context(), 1, i)
			one, _ := m.Open(t.Context(), a.URI)
			two, err := withDisk{m}.Open(t.Context(), b.URI)
			if err != nil {
				t.Fatal(err)
			}
			if a.ID != b.ID || a.Head != b.Head || a.Offset != b.Offset || a.Size != b.Size ||
				!bytes.Equal(one.(held), two.(held)) {
				t.Errorf("file %d is %+v, want %+v", i, b, a)
			}
		}
		if len(c.files) != len(want.files) || c.samples() != want.samples() {
			t.Errorf("%d files of %d samples", len(c.files), c.samples())
		}
	}
}

// TestUnpackOfTheOriginal: frames by the packages that MosaicML Streaming compresses with.
func TestUnpackOfTheOriginal(t *testing.T) {
	for compression, text := range map[string]string{"zstd:3": originalZstd, "bz2": originalBzip2} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		s := indexShard{Compression: compression, Raw: &fileInfo{Bytes: 150}, Zip: &fileInfo{Bytes: int64(len(b))}}
		var got bytes.Buffer
		if err := s.decompress(t.Context(), &got, "x", held(b)); err != nil ||
			got.String() != strings.Repeat("over 100 bytes ", 10) {
			t.Errorf("%s: %q, %v", compression, got.String(), err)
		}
	}
}

// TestHostileUnpack: what does not decompress to the size in the index is refused, and writes no more than that.
func TestHostileUnpack(t *testing.T) {
	m := fixture(t, "mds")
	for name, c := range map[string]struct {
		compression string
		change      func(m memory)
		kind        fault.Kind
		want        string
	}{
		"snappy":    {"snappy", func(memory) {}, fault.Unsupported, `its compression is "snappy"`},
		"brotli":    {"br:11", func(memory) {}, fault.Unsupported, `its compression is "br:11"`},
		"longer":    {"zstd", replaceAll(`"bytes":8232`, `"bytes":8231`), fault.Corrupt, "over 8231 bytes"},
		"shorter":   {"gz", replaceAll(`"bytes":8232`, `"bytes":8233`), fault.Corrupt, "8232 bytes when decompressed"},
		"negative":  {"gz", replaceAll(`"bytes":8232`, `"bytes":-1`), fault.Corrupt, "-1 bytes"},
		"too large": {"gz", replaceAll(`"bytes":8232`, `"bytes":4294967296`), fault.Corrupt, "32 bits"},
		"cut": {"zstd", func(m memory) {
			b := m["mds/shard.00000.mds.zip"]
			m["mds/shard.00000.mds.zip"] = b[:len(b)-1]
		}, fault.Corrupt, "by index.json"},
		"damaged": {"gz", func(m memory) { m["mds/shard.00000.mds.zip"][40] ^= 255 }, fault.Corrupt,
			"compressed shard"},
		"missing": {"gz", func(m memory) { delete(m, "mds/shard.00000.mds.zip") }, fault.NotFound, ""},
		"window": {"zstd", func(m memory) {
			// A frame of 16 bytes that asks for a window of 64 GiB.
			m["mds/shard.00000.mds.zip"] = append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xd0}, make([]byte, 10)...)
			at := bytes.Index(m["mds/index.json"], []byte(`"zip_data":{"basename":"shard.00000.mds.zip","bytes":`))
			end := at + bytes.IndexByte(m["mds/index.json"][at:], '}')
			m["mds/index.json"] = append(append(bytes.Clone(m["mds/index.json"][:at]),
				`"zip_data":{"basename":"shard.00000.mds.zip","bytes":16,"hashes":{`...), m["mds/index.json"][end:]...)
		}, fault.Limit, "window"},
	} {
		z := zipped(t, m, c.compression)
		c.change(z)
		_, err := unpackedOf(t, z)
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		var f *fault.Error
		if !errors.As(err, &f) || !strings.HasPrefix(f.File, "mds/shard.00000.mds") {
			t.Errorf("%s: file %q", name, f.File)
		}
	}
}
