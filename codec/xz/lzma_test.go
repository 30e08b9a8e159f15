package xz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/ulikunitz/xz/lzma"
)

// imagery returns bytes that repeat, in part, as samples of 16 bits do.
func imagery(rnd *rand.Rand, n int) []byte {
	p := make([]byte, 0, n+300)
	for len(p) < n {
		switch rnd.IntN(6) {
		case 0:
			p = append(p, bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(300))...)
		case 1:
			if len(p) > 0 {
				from := rnd.IntN(len(p))
				p = append(p, p[from:min(len(p), from+rnd.IntN(40))]...)
			}
		default:
			p = append(p, byte(rnd.IntN(32)), byte(rnd.IntN(2)))
		}
	}
	return p[:n]
}

// written returns an LZMA2 stream by the library.
func written(tb testing.TB, p []byte, lc, lp, pb int) []byte {
	tb.Helper()
	var out bytes.Buffer
	properties := lzma.Properties{LC: lc, LP: lp, PB: pb}
	w, err := lzma.Writer2Config{Properties: &properties, DictCap: 1 << 16}.NewWriter2(&out)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(p); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// byLibrary fills the front of dst. whole reports whether the stream has that much and ends, or has no more.
func byLibrary(dst, src []byte) (n int, whole bool) {
	stream, err := lzma.Reader2Config{DictCap: max(lzma.MinDictCap, len(dst)+300)}.NewReader2(bytes.NewReader(src))
	if err != nil {
		return 0, errors.Is(err, io.EOF)
	}
	if n, err = io.ReadFull(stream, dst); err == nil {
		_, err = stream.Read(make([]byte, 1))
	}
	return n, stream.EOS() && (err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// agree fails unless both give the same bytes of a stream, or refuse it.
func agree(t *testing.T, d *decoder, src []byte, size int) {
	t.Helper()
	got, want := make([]byte, size), make([]byte, size)
	n, used, ended, err := d.fill(got, src)
	if used > len(src) {
		t.Fatalf("%x: %d bytes used of %d", src, used, len(src))
	}
	m, whole := byLibrary(want, src)
	// As liblzma has it; the library does not look at either.
	if errors.Is(err, errStored) || errors.Is(err, errProperties) {
		return
	}
	if whole != (ended && err == nil) || whole && (n != m || !bytes.Equal(got[:n], want[:m])) {
		t.Fatalf("%x: %d of %d bytes, ended %t, %v; the library has %d, %t", src, n, size, ended, err, m, whole)
	}
	if err == nil && !ended && !bytes.Equal(got, want) && m == size {
		t.Fatalf("%x: other bytes than the library", src)
	}
}

// TestProperties: streams with all properties come back, whole, in part and cut.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	d := new(decoder)
	for lc := range maxLCLP + 1 {
		for lp := range maxLCLP + 1 - lc {
			pb := rnd.IntN(maxPB + 1)
			want := imagery(rnd, 1+rnd.IntN(1<<17))
			src := written(t, want, lc, lp, pb)
			name := fmt.Sprint(lc, lp, pb)
			for _, size := range []int{len(want), len(want) + 1, len(want) / 2} {
				got := make([]byte, size)
				n, _, ended, err := d.fill(got, src)
				most := min(size, len(want))
				if err != nil || ended != (size >= len(want)) || n != most || !bytes.Equal(got[:n], want[:most]) {
					t.Fatalf("%s: %d bytes of %d, ended %t, %v", name, n, size, ended, err)
				}
			}
			for range 20 {
				cut := rnd.IntN(len(src))
				n, _, ended, err := d.fill(make([]byte, len(want)), src[:cut])
				if err == nil && (ended || n < len(want)) {
					t.Fatalf("%s, cut to %d bytes: %d bytes", name, cut, n)
				}
			}
		}
	}
}

// TestDamaged: streams with other bits give what the library gives, or are refused as there.
func TestDamaged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	d := new(decoder)
	for range 1000 {
		want := imagery(rnd, 1+rnd.IntN(2000))
		src := written(t, want, rnd.IntN(3), rnd.IntN(3), rnd.IntN(5))
		agree(t, d, src, len(want))
		for range 1 + rnd.IntN(2) {
			src[rnd.IntN(len(src))] ^= 1 << rnd.IntN(8)
		}
		agree(t, d, src, len(want))
	}
}

// FuzzLZMA2 compares with the library.
func FuzzLZMA2(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for lc := range maxLCLP + 1 {
		f.Add(written(f, imagery(rnd, 500), lc, maxLCLP-lc, lc), uint16(500))
	}
	f.Add([]byte{1, 0, 3, 'a', 'b', 'c', 'd', 2, 0, 0, 'e', 0}, uint16(5))
	d := new(decoder)
	f.Fuzz(func(t *testing.T, src []byte, size uint16) { agree(t, d, src, int(size)) })
}
