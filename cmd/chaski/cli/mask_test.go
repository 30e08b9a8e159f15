package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestVerifyOfMaskedFiles: verify decodes masks too, and names the place of a fault.
func TestVerifyOfMaskedFiles(t *testing.T) {
	r := chaski(t.Context(), "verify", testdata(t, "masks"))
	var got struct{ Files, Chunks, Faulty int64 }
	if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil || got.Files != 5 || got.Faulty != 0 ||
		got.Chunks != 12+4+4+4+12+3+12+8+3*8+3*12 {
		t.Errorf("%+v", r)
	}
	b := testfile.Read(t, testdata(t, "masks", "bytes.tif"))
	f, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tags := f.Tags(t.Context(), &f.Dirs[1])
	v, at := tags.Value(ifd.TagStripByteCounts), tags.Value(ifd.TagStripOffsets)
	if tags.Err != nil {
		t.Fatal(tags.Err)
	}
	for i := range v.Uint(2) { // 128 does nothing in PackBits: the strip ends early
		b[at.Uint(2)+i] = 128
	}
	path := filepath.Join(t.TempDir(), "broken.tif")
	testfile.Write(t, path, b)
	r = chaski(t.Context(), "verify", path)
	if r.code != 1 || !errorLine.MatchString(r.err) ||
		!strings.Contains(r.err, fmt.Sprintf("mask chunk 2 packbits at %d", at.Uint(2))) {
		t.Errorf("%+v", r)
	}
	if r := chaski(t.Context(), "cat", path); r.code != 0 {
		t.Errorf("the samples as stored: %+v", r)
	}
}
