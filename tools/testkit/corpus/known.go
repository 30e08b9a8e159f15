package corpus

import (
	"archive/zip"
	"compress/bzip2"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Known copies an array of testdata/tiledb/known.zip into a directory of the test, and returns its path.
func Known(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	array, err := fs.Sub(Packed(t, "known.zip"), name)
	if err == nil {
		err = os.CopyFS(path, array)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Packed opens a ZIP in testdata/tiledb for the time of the test.
func Packed(t testing.TB, name string) fs.FS {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join(Testdata(t), "tiledb", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	const method = 12 // bzip2
	z.RegisterDecompressor(method, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	return z
}
