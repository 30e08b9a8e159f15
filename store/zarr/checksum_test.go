package zarr

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/source/openers"
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

// TestChecksums: a chunk whose checksum does not match, or that is too short to have one, is corrupt, and the error
// names the file, the chunk and the codec.
func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a/.zarray", `{"zarr_format":2,"shape":[3],"chunks":[3],"dtype":"|u1","fill_value":0,"order":"C",`+
		`"filters":[{"id":"fletcher32"}],"compressor":null}`)
	var files openers.Files
	defer files.Close()
	for stored, want := range map[string]string{
		"abc\x62\xc4\xc5\x25": "",
		"abd\x62\xc4\xc5\x25": "the checksum does not match",
		"\x62\xc4\xc5\x25":    "4 bytes, 7 needed",
		"abc":                 "3 bytes, 7 needed",
	} {
		put(t, dir, "a/0", stored)
		n, err := Open(t.Context(), &files, filepath.Join(dir, "a"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Array.NewReader().ReadInto(t.Context(), make([]byte, 3), []int64{0}, []int64{3}, []int64{1})
		if want == "" && err == nil {
			continue
		}
		if want = filepath.Join(dir, "a/0") + ": chunk 0 codec fletcher32: " + want + ": corrupt"; err == nil ||
			err.Error() != want {
			t.Errorf("%q: %v, want %s", stored, err, want)
		}
	}
}
