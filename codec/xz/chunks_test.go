package xz

import (
	"bytes"
	"errors"
	"fmt"
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

// TestProperties: streams with all properties come back, whole, in part and cut, and other properties are refused.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for lc := range maxLCLP + 1 {
		for lp := range maxLCLP + 1 - lc {
			want := imagery(rnd, 1+rnd.IntN(1<<17))
			src := written(t, want, lc, lp, rnd.IntN(5))
			name := fmt.Sprint(lc, lp)
			for _, size := range []int{len(want), len(want) + 1, len(want) / 2} {
				got := make([]byte, size)
				n, _, ended, err := fill(got, src)
				most := min(size, len(want))
				if err != nil || ended != (size >= len(want)) || n != most || !bytes.Equal(got[:n], want[:most]) {
					t.Fatalf("%s: %d bytes of %d, ended %t, %v", name, n, size, ended, err)
				}
			}
			for range 20 {
				cut := rnd.IntN(len(src))
				n, _, ended, err := fill(make([]byte, len(want)), src[:cut])
				if err == nil && (ended || n < len(want)) {
					t.Fatalf("%s, cut to %d bytes: %d bytes", name, cut, n)
				}
			}
			// Behind the head of a chunk of 2 bytes or more, its properties.
			const larger = (4*5+1)*9 + maxLCLP
			if src[5] = larger; src[0] >= newProperties {
				if _, _, _, err := fill(make([]byte, len(want)), src); !errors.Is(err, errProperties) {
					t.Fatalf("%s: properties %d: %v", name, larger, err)
				}
			}
		}
	}
}

// FuzzLZMA2: no stream fails otherwise than by an error, or uses more bytes than there are.
func FuzzLZMA2(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for lc := range maxLCLP + 1 {
		f.Add(written(f, imagery(rnd, 500), lc, maxLCLP-lc, lc), uint16(500))
	}
	f.Add([]byte{1, 0, 3, 'a', 'b', 'c', 'd', 2, 0, 0, 'e', 0}, uint16(5))
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		n, used, ended, err := fill(make([]byte, size), src)
		if n > int(size) || used > len(src) || err == nil && !ended && n < int(size) {
			t.Fatalf("%d of %d bytes, %d of %d used, ended %t, %v", n, size, used, len(src), ended, err)
		}
	})
}
