//go:build linux && !purego && !twins

package inflate

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
)

// guarded returns n bytes in front of a page that must not be touched: reading or writing past them ends the process,
// whereas past a slice of the heap nobody would notice.
func guarded(tb testing.TB, n int) []byte {
	tb.Helper()
	page := syscall.Getpagesize()
	all := (n + page - 1) / page * page
	access, kind := syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE
	mem, err := syscall.Mmap(-1, 0, all+page, access, kind)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Munmap(mem) })
	if err := syscall.Mprotect(mem[all:], syscall.PROT_NONE); err != nil {
		tb.Fatal(err)
	}
	return mem[all-n : all : all]
}

// TestWithinSlices cuts source and destination at many places, each at the end of its memory: what is decoded until
// there is right, and nothing past it is touched. Streams are long enough for pairs of literals.
func TestWithinSlices(t *testing.T) {
	const most = 1 << 18
	from, to := guarded(t, most), guarded(t, most)
	d := new(Decoder)
	for name, want := range contents() {
		for _, level := range levels {
			src := compressed(t, want, level)
			for cut := 0; cut < min(len(src), 5000); cut += 1 + cut/8 {
				in := from[most-len(src)+cut:]
				copy(in, src)
				out := to[most-len(want):]
				n, err := d.Fill(out, in)
				if !bytes.Equal(out[:n], want[:n]) || (err == nil) != (n == len(want)) {
					t.Fatalf("%s at %d without its last %d bytes: %d of %d bytes, %v", name, level, cut, n,
						len(want), err)
				}
			}
			in := from[most-len(src):]
			copy(in, src)
			for cut := 0; cut < min(len(want), 1000); cut += 1 + cut/8 {
				out := to[most-len(want)+cut:]
				if n, err := d.Fill(out, in); err != nil || !bytes.Equal(out, want[:n]) {
					t.Fatalf("%s at %d, all but %d bytes: %d, %v", name, level, cut, n, err)
				}
			}
		}
	}
}

// FuzzFast compares the loop in assembly with its twin and with the standard library. long puts bytes behind the
// stream, so that codes are joined to pairs and the loop lasts until the stream's own end.
func FuzzFast(f *testing.F) {
	for _, p := range contents() {
		for _, level := range levels {
			f.Add(compressed(f, p[:min(len(p), 2000)], level), uint16(min(len(p), 2000)), true)
		}
	}
	from, to := guarded(f, 1<<17), guarded(f, 1<<16)
	with, d := hasBMI2, new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte, size uint16, long bool) {
		if len(src) > 1<<15 {
			return
		}
		if long {
			src = append(bytes.Clone(src), bytes.Repeat(src[max(0, len(src)-7):], pairsFrom)...)
		}
		in, out, twin := from[len(from)-len(src):], to[len(to)-int(size):], make([]byte, size)
		copy(in, src)
		agree(t, d, in, int(size))
		n, err := d.Fill(out, in)
		defer func() { hasBMI2 = with }()
		hasBMI2 = false
		m, twinErr := d.Fill(twin, in)
		if m != n || fmt.Sprint(err) != fmt.Sprint(twinErr) || !bytes.Equal(out[:n], twin[:n]) {
			t.Fatalf("%d bytes of %x: %d, %v; in Go %d, %v", size, src, n, err, m, twinErr)
		}
	})
}
