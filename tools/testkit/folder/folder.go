// Package folder has folders, catalogs and files in memory for tests of datasets.
package folder

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

// TIFF is a classic TIFF of one uncompressed 8-bit strip (TIFF 6.0, section 3), followed by pad bytes.
func TIFF(height, width, pad int) []byte {
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

// Of writes files into a new directory: names ending in .tif get a tiny TIFF whose height is its number in the list
// plus one, unless the content is given as "name=content".
func Of(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		content := string(TIFF(i+1, 3, i))
		if at := strings.IndexByte(n, '='); at >= 0 {
			n, content = n[:at], n[at+1:]
		}
		Write(t, filepath.Join(dir, n), content)
	}
	return dir
}

// Write writes a file, and its folder.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Index writes a catalog file of paths.
func Index(t testing.TB, file string, o build.Options, paths ...string) int {
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

// Open opens a table, and closes it when the test ends.
func Open(t testing.TB, src string, o catalog.Options, fields ...catalog.Source) *catalog.Table {
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

// IDs lists the names of the samples.
func IDs(t testing.TB, tab *catalog.Table) (s []string) {
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

// Memory is a source.Opener of one object in memory; every other name is NotFound.
type Memory struct {
	Name string
	Data []byte
}

// Open implements source.Opener.
func (m Memory) Open(_ context.Context, uri string) (source.Reader, error) {
	if uri != m.Name {
		return nil, fault.New(fault.NotFound, "file", "no such file")
	}
	return source.Memory(m.Data), nil
}

// OneFile is a source.Opener of one file under any name.
type OneFile []byte

// Open implements source.Opener.
func (f OneFile) Open(context.Context, string) (source.Reader, error) { return source.Memory(f), nil }
