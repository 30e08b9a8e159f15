package zipsource_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipsource"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// archives opens one archive under any name that ends in .zip.
type archives struct{ b []byte }

func (a *archives) Open(_ context.Context, uri string) (source.Reader, error) {
	if !strings.HasSuffix(uri, ".zip") && uri != "odd" {
		return nil, fault.New(fault.NotFound, "file", fault.NoOffset, "no such file")
	}
	return &corpus.Mem{B: a.b}, nil
}

// archive returns a ZIP by another implementation, with a stored and a packed file.
func archive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, method := range map[string]uint16{"a/stored.tif": zip.Store, "a/packed.tif": zip.Deflate} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.WriteString(f, strings.Repeat(name, 1000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.RegisterCompressor(93, func(out io.Writer) (io.WriteCloser, error) { return nopCloser{out}, nil })
	if _, err := w.CreateHeader(&zip.FileHeader{Name: "zstd.tif", Method: 93}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// TestOpen promises that stored and packed files have their bytes at any range, by each form of the name, and that what
// is not read is named.
func TestOpen(t *testing.T) {
	o := &zipsource.Opener{Archives: &archives{archive(t)}}
	for name, want := range map[string]string{
		"/vsizip/x.zip/a/stored.tif": "a/stored.tif", "/vsizip//data/X.ZIP.zip/a/packed.tif": "a/packed.tif",
		"/vsizip/{odd}/a/packed.tif": "a/packed.tif", "/vsizip//vsicurl/https://h/x.zip/a/packed.tif": "a/packed.tif",
	} {
		r, err := o.Open(t.Context(), name)
		if err != nil {
			t.Fatal(name, err)
		}
		if want = strings.Repeat(want, 1000); r.Size() != int64(len(want)) {
			t.Errorf("%s: got %d bytes, want %d", name, r.Size(), len(want))
		}
		for _, span := range [][2]int{{0, len(want)}, {7, 20}, {len(want) - 1, 1}, {len(want), 0}} {
			b, part := make([]byte, span[1]), want[span[0]:span[0]+span[1]]
			if err := r.ReadAt(t.Context(), b, int64(span[0])); err != nil || string(b) != part {
				t.Errorf("%s: %d bytes at %d: got %q, %v", name, span[1], span[0], b, err)
			}
		}
		if err := r.ReadAt(t.Context(), make([]byte, 2), int64(len(want))-1); fault.KindOf(err) == 0 {
			t.Errorf("%s: a range past the end: got %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]fault.Kind{
		"/vsizip/x.zip/none.tif": fault.NotFound, "/vsizip/x.zip/zstd.tif": fault.Unsupported,
		"/vsizip/none/a": fault.Unsupported, "/vsizip/x.zip": fault.Unsupported, "/vsizip/{x.zip}": fault.Unsupported,
		"/vsizip/{none}/a": fault.NotFound,
	} {
		if _, err := o.Open(t.Context(), name); fault.KindOf(err) != want {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

// FuzzOpen promises that a damaged archive gives an error with a kind, or the bytes that were packed.
func FuzzOpen(f *testing.F) {
	b := archive(f)
	f.Add(b)
	f.Add(b[:len(b)-30])
	f.Add(bytes.Replace(b, []byte{8, 0}, []byte{0, 0}, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := &zipsource.Opener{Archives: &archives{b}}
		for _, name := range []string{"a/stored.tif", "a/packed.tif"} {
			r, err := o.Open(t.Context(), "/vsizip/x.zip/"+name)
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatal(err)
				}
				continue
			}
			if r.Size() > 256<<20 {
				t.Fatal(r.Size())
			}
			if err := r.ReadAt(t.Context(), make([]byte, r.Size()), 0); err != nil && fault.KindOf(err) == 0 {
				t.Fatal(err)
			}
		}
	})
}
