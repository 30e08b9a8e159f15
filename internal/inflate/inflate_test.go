package inflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"testing"
)

// contents are bytes of many kinds: runs, periods, noise, and samples of imagery as differences.
func contents() map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise, steps, text := make([]byte, 70000), make([]byte, 200000), []byte(nil)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for i := 0; i < len(steps); i += 2 { // 16-bit differences: low bytes of 7 bits, high bytes of one
		v := rnd.IntN(200) - 100
		steps[i], steps[i+1] = byte(v), byte(v>>8)
	}
	for len(text) < 100000 {
		text = fmt.Appendf(text, "%d is %x; ", rnd.IntN(1000), rnd.IntN(100))
	}
	skewed := make([]byte, 150000) // codes of up to 15 bits
	for i := range skewed {
		for skewed[i] < 250 && rnd.IntN(2) == 0 {
			skewed[i]++
		}
	}
	all := map[string][]byte{
		"none": {}, "one": {7}, "constant": make([]byte, 100000), "noise": noise, "steps": steps, "text": text,
		"skewed": skewed,
	}
	for _, far := range []int{2, 3, 5, 7, 8, 9, 31, 258, 32768} {
		all[fmt.Sprint("period ", far)] = bytes.Repeat(noise[:far], 1+70000/far)
	}
	return all
}

// levels are those of the encoder: stored, fixed and dynamic blocks, without and with matches.
var levels = []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, 6, flate.BestCompression}

func compressed(t testing.TB, p []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	for len(p) > 0 { // several blocks, and empty ones between them
		n := min(len(p), 50001)
		_, _ = w.Write(p[:n])
		p = p[n:]
		_ = w.Flush()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAgainstEncoder: what the standard library compresses comes back, whole and in part, and with more than fits.
func TestAgainstEncoder(t *testing.T) {
	d := new(Decoder)
	for name, want := range contents() {
		for _, level := range levels {
			src := append(compressed(t, want, level), "behind it"...)
			got := make([]byte, len(want))
			n, err := d.Whole(got, src)
			if err != nil || !bytes.Equal(got, want) || string(src[n:]) != "behind it" {
				t.Errorf("%s at %d: %v, %d of %d bytes of the stream", name, level, err, n, len(src))
			}
			for _, n := range []int{0, 1, len(want) / 3, len(want) - 1, len(want)} {
				if n < 0 || n > len(want) {
					continue
				}
				part := bytes.Repeat([]byte{0xa5}, n+8)
				m, err := d.Fill(part[:n:n], src)
				if err != nil || m != n || !bytes.Equal(part[:n], want[:n]) || part[n] != 0xa5 {
					t.Errorf("%s at %d: %d bytes of it: %d, %v", name, level, n, m, err)
				}
				if _, err = d.Whole(part[:n:n], src); n < len(want) && !errors.Is(err, ErrSurplus) {
					t.Errorf("%s at %d: %d bytes, as if they were all: %v", name, level, n, err)
				}
			}
			more := make([]byte, len(want)+1)
			if n, err := d.Fill(more, src); err == nil || n != len(want) {
				t.Errorf("%s at %d: one byte more than it has: %d, %v", name, level, n, err)
			}
			if _, err := d.Whole(more, src); err == nil || errors.Is(err, ErrSurplus) {
				t.Errorf("%s at %d: one byte more than it has, as a whole: %v", name, level, err)
			}
		}
	}
}

// TestCutStreams: a stream that is cut anywhere is refused.
func TestCutStreams(t *testing.T) {
	d := new(Decoder)
	for name, want := range contents() {
		for _, level := range levels {
			src := compressed(t, want, level)
			got := make([]byte, len(want))
			for cut := 1; cut < len(src); cut += 1 + cut/2 {
				if _, err := d.Whole(got, src[:len(src)-cut]); err == nil || errors.Is(err, ErrSurplus) {
					t.Errorf("%s at %d without its last %d bytes: %v", name, level, cut, err)
				}
			}
		}
	}
}

// agree compares a decoder with the standard library on any bytes.
func agree(t *testing.T, d *Decoder, src []byte, size int) {
	t.Helper()
	in := bytes.NewReader(src)
	r := flate.NewReader(in)
	want := make([]byte, size)
	n, wantErr := io.ReadFull(r, want)
	got := make([]byte, size)
	m, err := d.Fill(got, src)
	if errors.Is(wantErr, io.ErrUnexpectedEOF) && m > n {
		certain(t, src, got[:m])
		if _, err := d.Whole(got, src); err == nil {
			t.Fatalf("%d bytes of %x as a whole, although it is cut", size, src)
		}
		return
	}
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %x: %d, %v; the standard library has %d, %v", size, src, m, err, n, wantErr)
	}
	if wantErr != nil && (m != n || !bytes.Equal(got[:m], want[:n])) {
		t.Fatalf("%d bytes of %x before a fault: %d; the standard library has %d", size, src, m, n)
	}
	end, err := d.Whole(got, src)
	if wantErr != nil {
		if err == nil || errors.Is(err, ErrSurplus) {
			t.Fatalf("%d bytes of %x as a whole: %v; the standard library has %v", size, src, err, wantErr)
		}
		return
	}
	var more [1]byte
	switch _, wantErr = io.ReadFull(r, more[:]); {
	case wantErr == nil:
		if !errors.Is(err, ErrSurplus) {
			t.Fatalf("%d bytes of %x: %v; the standard library has more", size, src, err)
		}
	case wantErr == io.EOF:
		if err != nil || end != len(src)-in.Len() || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes of %x: %v, ends at %d; the standard library ends at %d", size, src, err, end,
				len(src)-in.Len())
		}
	case errors.Is(err, ErrSurplus) && errors.Is(wantErr, io.ErrUnexpectedEOF):
		one := make([]byte, size+1)
		if m, _ := d.Fill(one, src); m != len(one) {
			t.Fatalf("%d bytes of %x, which has more and has none: %d", size+1, src, m)
		}
		certain(t, src, one)
	default:
		if err == nil || errors.Is(err, ErrSurplus) {
			t.Fatalf("%d bytes of %x: %v; the standard library has %v", size, src, err, wantErr)
		}
	}
}

// certain fails unless a stream that is cut begins with want, whatever follows it. The standard library takes no code
// of a stream that has fewer bits left than the code that ends a block, even if they are a code: with two bytes more it
// has to take it, whichever they are.
func certain(t *testing.T, src, want []byte) {
	t.Helper()
	for _, more := range []byte{0, 0xff} {
		got := make([]byte, len(want))
		r := flate.NewReader(bytes.NewReader(append(bytes.Clone(src), more, more)))
		if n, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes of %x, which is cut: the standard library, with two bytes %x more, has %d, %v",
				len(want), src, more, n, err)
		}
	}
}

// TestDamagedStreams: streams with changed bits are refused, or mean what the standard library says that they mean.
func TestDamagedStreams(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	d := new(Decoder)
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	for _, want := range contents() {
		for _, level := range levels {
			src := compressed(t, want[:min(len(want), 20000)], level)
			for range rounds {
				bad := bytes.Clone(src)
				for range 1 + rnd.IntN(3) {
					// Mostly in front, where codes are.
					bad[min(rnd.IntN(len(bad)), rnd.IntN(400))] ^= 1 << rnd.IntN(8)
				}
				size := []int{0, 1, 300, min(len(want), 20000), 30000}[rnd.IntN(5)]
				agree(t, d, bad, size)
			}
		}
	}
}

// TestRandomStreams: bytes without meaning are read as the standard library reads them.
func TestRandomStreams(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	d := new(Decoder)
	rounds := 100_000
	if testing.Short() {
		rounds = 10_000
	}
	for range rounds {
		src := make([]byte, rnd.IntN(80))
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		if len(src) > 0 && rnd.IntN(2) == 0 {
			src[0] = src[0]&^6 | 4 // a block with codes
		}
		agree(t, d, src, rnd.IntN(400))
	}
}

// FuzzInflate compares with the standard library.
func FuzzInflate(f *testing.F) {
	for _, p := range contents() {
		for _, level := range levels {
			f.Add(compressed(f, p[:min(len(p), 2000)], level), uint16(min(len(p), 2000)))
		}
	}
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, size uint16) { agree(t, d, src, int(size)) })
}

func TestNoAlloc(t *testing.T) {
	d := new(Decoder)
	for name, want := range contents() {
		src, dst := compressed(t, want, 6), make([]byte, len(want))
		if n := testing.AllocsPerRun(3, func() {
			if _, err := d.Whole(dst, src); err != nil {
				t.Error(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	d := new(Decoder)
	for name, want := range contents() {
		src, dst := compressed(b, want, 6), make([]byte, len(want))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(want)))
			for range b.N {
				if _, err := d.Whole(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAdler32: the checksum is the standard library's, for any length and the largest sums.
func TestAdler32(t *testing.T) {
	data := bytes.Repeat([]byte{255}, 3*5552)
	random := make([]byte, len(data))
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	for _, p := range [][]byte{data, random} {
		for n := range len(p) {
			if n > 200 && n%97 > 1 {
				continue
			}
			if got, want := Adler32(p[len(p)-n:]), adler32.Checksum(p[len(p)-n:]); got != want {
				t.Fatalf("%d bytes: %08x, want %08x", n, got, want)
			}
		}
	}
}
