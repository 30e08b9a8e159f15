package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// uris is a column of strings; "" is a null. It gives every cell in the same memory.
func uris(of []string) *columns.Column {
	var buf bytes.Buffer
	return columns.Map(columns.Nulls(int64(len(of))), func(row int64, _ columns.Cell) columns.Cell {
		if of[row] == "" {
			return columns.Cell{Null: true}
		}
		buf.Reset()
		buf.WriteString(of[row])
		return columns.Cell{Text: buf.Bytes()}
	})
}

// slowDigest is the digest that hash documents, of strings without the directory that all share.
func slowDigest(of []string) [16]byte {
	folder, known := "", false
	for _, s := range of {
		if s == "" {
			continue
		}
		if !known {
			folder, known = s[:strings.LastIndex(s, "/")+1], true
		}
		for !strings.HasPrefix(s, folder) {
			folder = folder[:strings.LastIndex(folder[:len(folder)-1], "/")+1]
		}
	}
	var b []byte
	for _, s := range of {
		if s == "" {
			b = binary.LittleEndian.AppendUint64(b, math.MaxUint64)
			continue
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)-len(folder)))
		b = append(b, s[len(folder):]...)
	}
	return xxh3.Hash128(b).Bytes()
}

// TestDigestOfAnyOrder: the digest of URIs is that without the directory that all share, wherever the rows are that
// have no URI, or one elsewhere.
func TestDigestOfAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		of := rapid.SliceOfN(rapid.StringMatching(`(a/(b/(c/|cc/)?)?)?[xyz]|`), 0, 8).Draw(r, "uris")
		f := &fieldColumns{kind: Raster, main: uris(of),
			columns: map[string]*columns.Column{layout.Size: columns.Nulls(0)}}
		got, err := hashValues(t.Context(), f, int64(len(of)))
		if err != nil || got != slowDigest(of) {
			r.Fatalf("%q: %x, %v, want %x", of, got, err, slowDigest(of))
		}
	})
}

// TestFingerprintOfFolder: the fingerprint of files is what hash documents.
func TestFingerprintOfFolder(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a.tif", "b.tif", "c.tif"}
	b := binary.LittleEndian.AppendUint64([]byte("chaski dataset 1\n"), uint64(len(names)))
	b = append(binary.LittleEndian.AppendUint64(b, 1), byte(Raster))
	values := slowDigest(names)
	b = append(b, values[:]...)
	var sizes []byte
	for i, name := range names {
		sizes = binary.LittleEndian.AppendUint64(sizes, uint64(10*i+1))
		testfile.Write(t, filepath.Join(dir, name), make([]byte, 10*i+1))
	}
	digest := xxh3.Hash128(sizes).Bytes()
	whole := xxh3.Hash128(append(b, digest[:]...)).Bytes()
	tab, err := Open(t.Context(), dir, []Source{{Field: "image"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if want := hex.EncodeToString(whole[:]); tab.Fingerprint() != want {
		t.Errorf("%s, want %s", tab.Fingerprint(), want)
	}
	if file, n := tab.PageBytes(); file != "" || n != 0 {
		t.Errorf("pages of a folder: %q, %d", file, n)
	}
}
