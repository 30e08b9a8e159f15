package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// uris is a column of strings; "" is a null. It gives every cell in the same memory.
func uris(of []string) *columns.Column {
	var buf bytes.Buffer
	return column.Map(column.Nulls(int64(len(of))), func(row int64, _ Value) Value {
		if of[row] == "" {
			return Value{Null: true}
		}
		buf.Reset()
		buf.WriteString(of[row])
		return Value{Text: buf.Bytes()}
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
		uri := rapid.StringMatching(`(a/(b/(c/|cc/)?)?)?[xyz]|/[xyz]|a/x|a/b/x|a|a/b|`)
		of := rapid.SliceOfN(uri, 0, 8).Draw(r, "uris")
		f := &fieldColumns{kind: Raster, main: uris(of),
			columns: map[string]*columns.Column{layout.Size: column.Nulls(0)}}
		got, err := hashValues(t.Context(), f, int64(len(of)))
		if err != nil || got != slowDigest(of) {
			r.Fatalf("%q: %x, %v, want %x", of, got, err, slowDigest(of))
		}
	})
}

// record is a value as hash documents it; nil is a null.
func record(v any) []byte {
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	switch v := v.(type) {
	case int64:
		return append(number(8), number(uint64(v))...)
	case float64:
		return append(number(8), number(math.Float64bits(v))...)
	case string:
		return append(number(uint64(len(v))), v...)
	case []any:
		out := number(uint64(len(v)))
		for _, element := range v {
			out = append(out, record(element)...)
		}
		return out
	}
	return number(math.MaxUint64)
}

// slowField is a field of a dataset: its values, and the sizes of its files or of two columns of blobs, -1 for none.
type slowField struct {
	kind   Kind
	values []any
	sizes  []int64
}

// slowPrint is the fingerprint of n samples that hash documents.
func slowPrint(n int, fields ...slowField) string {
	b := binary.LittleEndian.AppendUint64([]byte("chaski dataset 1\n"), uint64(n))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(fields)))
	for _, f := range fields {
		b = append(b, byte(f.kind))
		var values, sizes []byte
		for _, v := range f.values {
			values = append(values, record(v)...)
		}
		sum := xxh3.Hash128(values).Bytes()
		if f.sizes != nil {
			var uris []string
			for _, v := range f.values {
				uri, _ := v.(string)
				uris = append(uris, uri)
			}
			sum = slowDigest(uris)
		}
		if b = append(b, sum[:]...); f.kind == Raster || f.sizes != nil {
			for _, size := range f.sizes {
				sizes = binary.LittleEndian.AppendUint64(sizes, uint64(size))
			}
			sum = xxh3.Hash128(sizes).Bytes()
			b = append(b, sum[:]...)
		}
	}
	sum := xxh3.Hash128(b).Bytes()
	return hex.EncodeToString(sum[:])
}

// TestFingerprints: the fingerprint of files and of tables is what hash documents.
func TestFingerprints(t *testing.T) {
	dir := t.TempDir()
	names, sizes := []any{"a.tif", "b.tif", "c.tif"}, []int64{1, 11, 21}
	for i, name := range names {
		testfile.Write(t, filepath.Join(dir, name.(string)), make([]byte, sizes[i]))
	}
	check := func(src string, n int, read []Source, want ...slowField) {
		t.Helper()
		tab, err := Open(t.Context(), src, read, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		if got, want := tab.Fingerprint(), slowPrint(n, want...); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
		if file, n := tab.Remarks.PageFile, tab.Remarks.PageBytes; file != "" || n != 0 {
			t.Errorf("pages of %s: %q, %d", src, file, n)
		}
	}
	check(dir, 3, nil, slowField{Raster, names, sizes})
	labels := filepath.Join(dir, "l") // of which one lacks
	for name, size := range map[string]int{"a.geojson": 7, "c.geojson": 9} {
		testfile.Write(t, filepath.Join(labels, name), make([]byte, size))
	}
	check(dir, 3, []Source{{Field: "image", Pattern: "{id}.tif"}, {Field: "l", Pattern: "l/{id}.geojson", Beside: true,
		Optional: true}}, slowField{Raster, names, sizes}, slowField{Text, []any{filepath.Join(labels, "a.geojson"),
		nil, filepath.Join(labels, "c.geojson")}, []int64{7, 0, 9}})
	type row struct {
		URI    *string  `parquet:"uri,optional"`
		Blob   *string  `parquet:"blob,optional"`
		N      *int64   `parquet:"n,optional"`
		F      float64  `parquet:"f"`
		S      *string  `parquet:"s,optional"`
		Tags   []string `parquet:"tags,list"`
		Counts []int64  `parquet:"counts,list"`
	}
	path := filepath.Join(dir, "t.parquet")
	rapid.Check(t, func(r *rapid.T) {
		var rows []row
		var uri, blobs, n, f, s, tags, counts slowField
		text := func(name string, of ...string) (*string, any) {
			v := rapid.SampledFrom(append(of, "")).Draw(r, name)
			if v == "" {
				return nil, nil
			}
			return &v, v
		}
		add := func(field *slowField, v any) { field.values = append(field.values, v) }
		for range rapid.IntRange(1, 4).Draw(r, "rows") {
			var line row
			var v any
			line.URI, v = text("uri", "x/a.tif", "x/b.tif", "x/y/a.tif")
			add(&uri, v)
			line.Blob, v = text("blob", "b", "a blob")
			if text, ok := v.(string); ok {
				blobs.sizes = append(blobs.sizes, int64(len(text)))
			} else {
				blobs.sizes = append(blobs.sizes, -1)
			}
			if add(&n, nil); rapid.Bool().Draw(r, "number") {
				v := rapid.Int64().Draw(r, "n")
				line.N, n.values[len(rows)] = &v, v
			}
			line.F = rapid.Float64().Draw(r, "f")
			add(&f, line.F)
			line.S, v = text("s", "é", "b")
			add(&s, v)
			var words, numbers []any
			for _, word := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "bc"}), 0, 3).Draw(r, "tags") {
				line.Tags, words = append(line.Tags, word), append(words, word)
				line.Counts, numbers = append(line.Counts, int64(len(word))), append(numbers, int64(len(word)))
			}
			add(&tags, words)
			add(&counts, numbers)
			rows = append(rows, line)
		}
		if err := parquet.WriteFile(path, rows); err != nil {
			r.Fatal(err)
		}
		uri.kind, n.kind, f.kind, s.kind, tags.kind, counts.kind = Raster, Int, Float, Text, List|Text, List|Int
		blobs.kind, blobs.values = Raster, uri.values
		check(path, len(rows), []Source{{Field: "uri", Kind: Raster}, {Field: "x", Column: "uri", Blob: "blob"},
			{Field: "n"}, {Field: "f"}, {Field: "s"}, {Field: "tags"}, {Field: "counts"}}, uri, blobs, n, f, s, tags,
			counts)
	})
}
