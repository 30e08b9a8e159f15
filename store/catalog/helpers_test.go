package catalog_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
)

// tinyTIFF is a classic TIFF of one uncompressed 8-bit strip (TIFF 6.0, section 3), followed by pad bytes.
func tinyTIFF(height, width, pad int) []byte {
	le := binary.LittleEndian
	pixels := height * width
	b := append([]byte("II*\x00"), 0, 0, 0, 0)
	le.PutUint32(b[4:], uint32(8+pixels+pixels&1))
	b = append(b, make([]byte, pixels+pixels&1)...)
	tags := [][2]int{{256, width}, {257, height}, {258, 8}, {259, 1}, {262, 1}, {273, 8}, {277, 1},
		{278, height}, {279, pixels}}
	b = le.AppendUint16(b, uint16(len(tags)))
	for _, t := range tags {
		b = le.AppendUint16(b, uint16(t[0]))
		b = le.AppendUint16(b, 4) // LONG
		b = le.AppendUint32(b, 1)
		b = le.AppendUint32(b, uint32(t[1]))
	}
	b = le.AppendUint32(b, 0)
	return append(b, make([]byte, pad)...)
}

// tree writes files into a new directory: names ending in .tif get a tiny TIFF whose height is its number in the list
// plus one, unless the content is given as "name=content".
func tree(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		content := string(tinyTIFF(i+1, 3, i))
		if at := strings.IndexByte(n, '='); at >= 0 {
			n, content = n[:at], n[at+1:]
		}
		writeFile(t, filepath.Join(dir, n), content)
	}
	return dir
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, src string, o catalog.Options, fields ...catalog.Source) *catalog.Table {
	t.Helper()
	tab, err := catalog.Open(context.Background(), src, fields, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	})
	return tab
}

// ids lists the names of the samples.
func ids(t testing.TB, tab *catalog.Table) (s []string) {
	t.Helper()
	for row := range tab.Len() {
		id, err := tab.ID(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, id)
	}
	return s
}

// index writes a catalog file of paths.
func index(t testing.TB, file string, o build.Options, paths ...string) int {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if o.Base == "" {
		o.Base = filepath.Dir(file)
	}
	n, err := build.Write(t.Context(), f, paths, o)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// corpus returns a folder of the test corpus beside the checkout, or skips the test.
func corpus(t testing.TB, folder string) string {
	t.Helper()
	for dir := ".."; ; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			dir = filepath.Join(dir, "..", "shared", "corpus", folder)
			if _, err := os.Stat(dir); err != nil {
				t.Skip("no test corpus")
			}
			return dir
		}
		if len(dir) > 64 {
			t.Skip("no module root")
		}
	}
}

// memory is a source.Opener of one object in memory; every other name is NotFound.
type memory struct {
	name string
	data []byte
}

func (m memory) Open(_ context.Context, uri string) (source.Reader, error) {
	if uri != m.name {
		return nil, fault.New(fault.NotFound, "file", fault.NoOffset, "no such file")
	}
	return m, nil
}

func (m memory) Size() int64  { return int64(len(m.data)) }
func (m memory) Close() error { return nil }
func (m memory) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > m.Size() || int64(len(p)) > m.Size()-off {
		return fault.New(fault.Corrupt, "byte range", off, "past the end")
	}
	copy(p, m.data[off:])
	return nil
}
