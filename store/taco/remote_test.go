package taco_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/far"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// farPlaces puts an object onto a web server and into a bucket. Nothing small is read by the way: blocks
// are as small as what a reader asks for of a container's head.
func farPlaces(t *testing.T, name string, b []byte) map[string]far.Place {
	t.Helper()
	return far.Places(t, name, b, remote.Options{Block: 256})
}

// TestOpeningTakesTwoRequests: over HTTP and from S3, opening a container is its head, and one range at its end. Where
// the samples are takes none: small tables and the directory are in that range.
func TestOpeningTakesTwoRequests(t *testing.T) {
	for _, name := range []string{
		"../coast/coast.tacozip", // its directory is read, as the order of its samples leaves doubt
		"../coast/flat.tacozip",
		"taco-v2/current/three_level.tacozip",
		"taco-v2/current/unsorted_two_level.tacozip", // likewise
		"taco-v2/spec200/codec_snappy.tacozip",
		"taco-v1/bytes.taco",
		streamed,
		"tortilla/flat_bytes.tortilla",
	} {
		b := testfile.Read(t, testdata(t, name))
		for scheme, p := range farPlaces(t, filepath.Base(name), b) {
			d, err := taco.Open(t.Context(), p.Opener, []string{p.URI}, taco.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if asked := p.Asked(); len(asked) != 2 || asked[0] != "GET bytes=0-255" {
				t.Errorf("%s of %s opened by %q", name, scheme, asked)
			}
			var files []store.Entry
			for e, err := range d.Leaves(t.Context(), false) {
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, e)
			}
			if asked := p.Asked(); len(asked) != 0 || len(files) == 0 {
				t.Errorf("%s of %s: %d samples found by %q", name, scheme, len(files), asked)
			}
			for _, e := range files[:min(3, len(files))] {
				r, err := e.Open(t.Context(), p.Opener)
				if err != nil {
					t.Fatal(err)
				}
				if source.Gap(r) < source.MinGap || source.ETag(r) == "" {
					t.Errorf("%s of %s: a sample has gap %d, tag %q", name, scheme, source.Gap(r), source.ETag(r))
				}
				got := make([]byte, e.Size)
				if err := r.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got, b[e.Offset:e.Offset+e.Size]) {
					t.Errorf("%s of %s: other bytes, %v", e.Path, scheme, err)
				}
				asked := p.Asked() // the bytes that opened the container may have some of the sample
				var first, last int64
				if len(asked) == 1 {
					if _, err := fmt.Sscanf(asked[0], "GET bytes=%d-%d", &first, &last); err != nil {
						t.Fatal(err)
					}
				}
				if len(asked) > 1 || len(asked) == 1 && (first < e.Offset || last >= e.Offset+e.Size) {
					t.Errorf("%s of %s, %d bytes at %d, read by %q", e.Path, scheme, e.Size, e.Offset, asked)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
