package zarr

import (
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
)

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
		n, err := Open(t.Context(), &files, filepath.Join(dir, "a"), arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Array.Read(t.Context(), make([]byte, 3), []int64{0}, []int64{3})
		if want == "" && err == nil {
			continue
		}
		if want = filepath.Join(dir, "a/0") + ": chunk 0 codec fletcher32: " + want + ": corrupt"; err == nil ||
			err.Error() != want {
			t.Errorf("%q: %v, want %s", stored, err, want)
		}
	}
}
