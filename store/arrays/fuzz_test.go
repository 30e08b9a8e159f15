package arrays

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// kinded fails the test if an error about a file has no kind.
func kinded(t *testing.T, err error) {
	t.Helper()
	if err != nil && fault.KindOf(err) == 0 {
		t.Fatalf("an error without a kind: %v", err)
	}
}

// FuzzBlosc: a container of any content fills what it was asked for, or is refused.
func FuzzBlosc(f *testing.F) {
	for codec := range byte(6) {
		for _, flags := range [...]byte{0, bloscShuffle, bloscBits, bloscCopy, bloscWhole} {
			b := make([]byte, bloscHeader, 256)
			b[0], b[1], b[2], b[3] = 2, 1, flags|codec<<5, 2
			binary.LittleEndian.PutUint32(b[4:], 64)
			binary.LittleEndian.PutUint32(b[8:], 64)
			b = binary.LittleEndian.AppendUint32(b, bloscHeader+4)
			b = binary.LittleEndian.AppendUint32(b, 64)
			b = append(b, bytes.Repeat([]byte{31, 1, 2, 200}, 16)...)
			binary.LittleEndian.PutUint32(b[12:], uint32(len(b)))
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < bloscHeader {
			return
		}
		n := min(binary.LittleEndian.Uint32(b[4:]), 1<<16)
		kinded(t, new(chunkDecoder).unblosc(make([]byte, n), b))
		binary.LittleEndian.PutUint32(b[12:], uint32(len(b))) // so that most inputs reach the blocks
		kinded(t, new(chunkDecoder).unblosc(make([]byte, n), b))
		dst := make([]byte, 300)
		unBloscLZ(dst, b)
	})
}
