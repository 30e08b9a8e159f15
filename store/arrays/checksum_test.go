package arrays

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestFletcher32: checksums are those of numcodecs 0.16.6, and of chunks by libhdf5 where h5py wrote the same bytes.
func TestFletcher32(t *testing.T) {
	count := make([]byte, 255)
	for i := range count {
		count[i] = byte(i)
	}
	for _, c := range []struct {
		b    []byte
		want string // as it stands in a chunk
	}{
		{[]byte{1}, "00010001"},
		{[]byte{1, 2}, "02010201"},
		{[]byte{1, 2, 3, 4, 5}, "06090e0e"}, // libhdf5 too
		{[]byte("abc"), "62c4c525"},
		{[]byte("abcdef"), "2d2a5650"},
		{count, "40bf7654"},
		{bytes.Repeat([]byte{255}, 700), "ffffffff"}, // libhdf5 too
		{bytes.Repeat([]byte{255}, 4097), "00ff00ff"},
		{bytes.Repeat([]byte("abcdefg"), 100_000), "e6e67d7d"},
	} {
		sum := fletcher32(c.b)
		got := hex.EncodeToString([]byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
		if got != c.want {
			t.Errorf("%d bytes: %s, want %s", len(c.b), got, c.want)
		}
	}
}
