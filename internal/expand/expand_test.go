package expand

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
)

// methods are the compressors, each with a writer that is not this package's.
var methods = []struct {
	name   string
	write  func(t *testing.T, b []byte) []byte
	expand func(d *Decoder, dst, src []byte) error
	summed bool // a changed byte of the content is noticed
}{
	{"zstd", func(t *testing.T, b []byte) []byte {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(b, nil)
	}, (*Decoder).Zstd, true},
	{"zlib", func(t *testing.T, b []byte) []byte {
		var out bytes.Buffer
		return written(t, zlib.NewWriter(&out), &out, b)
	}, (*Decoder).Zlib, true},
	{"gzip", func(t *testing.T, b []byte) []byte {
		var out bytes.Buffer
		return written(t, gzip.NewWriter(&out), &out, b)
	}, (*Decoder).Gzip, true},
	{"bzip2", func(t *testing.T, b []byte) []byte {
		c := exec.CommandContext(t.Context(), "bzip2", "-c")
		c.Stdin = bytes.NewReader(b)
		out, err := c.Output()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("bzip2 is not here to write with")
		} else if err != nil {
			t.Fatal(err)
		}
		return out
	}, (*Decoder).Bzip2, true},
	{"lz4", func(t *testing.T, b []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		var c lz4.Compressor
		n, err := c.CompressBlock(b, out)
		if err != nil {
			t.Fatal(err)
		}
		return out[:n]
	}, func(_ *Decoder, dst, src []byte) error { return LZ4(dst, src) }, false},
}

func written(t *testing.T, w io.WriteCloser, out *bytes.Buffer, b []byte) []byte {
	t.Helper()
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestExactSizes: what fills the memory is read; what is shorter, longer, cut or changed is corrupt; and a stream reads
// the same after any of these.
func TestExactSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	content := make([]byte, 50_000)
	for i := range content {
		content[i] = byte(r.IntN(8))
	}
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			src := m.write(t, content)
			d := &Decoder{}
			for name, c := range map[string]struct {
				src  []byte
				size int
			}{
				"cut":     {src[:len(src)/2], len(content)},
				"shorter": {src, len(content) + 1},
				"longer":  {src, len(content) - 1},
				"nothing": {nil, len(content)},
			} {
				if err := m.expand(d, make([]byte, c.size), c.src); !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s: %v, want corrupt", name, err)
				}
				dst := make([]byte, len(content))
				if err := m.expand(d, dst, src); err != nil || !bytes.Equal(dst, content) {
					t.Errorf("after %s: %v", name, err)
				}
			}
			if bad := bytes.Clone(src); m.summed {
				bad[len(bad)/2] ^= 1
				if err := m.expand(d, make([]byte, len(content)), bad); !errors.Is(err, fault.Corrupt) {
					t.Errorf("changed: %v, want corrupt", err)
				}
			}
		})
	}
}

// FuzzGzip compares members of gzip with those that the standard library reads.
func FuzzGzip(f *testing.F) {
	for _, head := range []gzip.Header{{}, {Name: "a", Comment: "b", Extra: []byte("abc")}, {Extra: []byte{}}} {
		var out bytes.Buffer
		for range 2 {
			w := gzip.NewWriter(&out)
			w.Header = head
			_, _ = w.Write([]byte("some content, some content"))
			_ = w.Close()
		}
		f.Add(out.Bytes(), 52)
		f.Add(out.Bytes()[:out.Len()/2], 26)
	}
	f.Add([]byte("\x1f\x8b\x08\x02\x00\x00\x00\x00\x00\x00\xff\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0)
	f.Fuzz(func(t *testing.T, src []byte, size int) {
		if size < 0 || size > 1<<16 {
			return
		}
		want := make([]byte, size)
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err == nil {
			err = exactly(want, r)
		}
		got := make([]byte, size)
		if own := new(Decoder).Gzip(got, src); (own == nil) != (err == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v, the library %v", own, err)
		}
	})
}
