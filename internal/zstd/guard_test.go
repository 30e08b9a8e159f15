package zstd_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// TestNothingOutsideIsTouched: decoding valid and broken frames reads nothing behind src, and reads
// or writes nothing before dst or behind its capacity.
func TestNothingOutsideIsTouched(t *testing.T) {
	guard.Faults(t)
	const most = 300 << 10
	from, to := guard.New(t, most), guard.New(t, most)
	r := rand.New(rand.NewPCG(5, 6))
	d := zstd.New()
	try := func(frame []byte, n int) {
		for _, back := range []bool{false, true} {
			src := from.Put(back, frame)
			_ = d.Decompress(to.At(back, n)[:n:n], src)
			_ = d.Decompress(to.At(back, n+zstd.Spare)[:n], src)
			_ = d.DecompressPrefix(to.At(back, n)[:n:n], src, n/3)
			_ = d.DecompressPrefix(to.At(back, n+zstd.Spare)[:n], src, n/3)
		}
	}
	for _, c := range handmades() {
		if len(c.src) <= most {
			for n := range 30 {
				try(c.src, n)
			}
			try(c.src, min(len(c.want), most-zstd.Spare))
		}
	}
	var contents [][]byte
	for n := range 301 {
		contents = append(contents, samples(n))
	}
	for _, n := range []int{5000, 70 << 10, 280 << 10} {
		contents = append(contents, samples(n), bytes.Repeat(samples(n/7), 7))
	}
	for _, c := range contents {
		frame := compress(t, c, kzstd.WithEncoderCRC(len(c)%2 == 0), kzstd.WithSingleSegment(len(c)%3 == 0))
		if len(frame) > most {
			continue
		}
		try(frame, len(c))
		for range 6 {
			broken := bytes.Clone(frame)
			for range 1 + r.IntN(3) {
				broken[r.IntN(len(broken))] ^= 1 << r.IntN(8)
			}
			try(broken, len(c))
			try(broken[:r.IntN(len(broken)+1)], len(c))
			try(frame, r.IntN(len(c)+2))
		}
	}
}
