package taco_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// named is a container with what a walk over its levels finds, by path.
type named struct {
	path    string
	open    *taco.Dataset
	content []byte
	entries map[string]store.Entry
}

func walk(t testing.TB, d *taco.Dataset, found map[string]store.Entry) {
	t.Helper()
	ctx := context.Background()
	var below func(e store.Entry)
	below = func(e store.Entry) {
		found[e.Path] = e
		for child, err := range d.Children(ctx, e) {
			if err != nil {
				t.Fatal(err)
			}
			below(child)
		}
	}
	rows, err := d.Visible(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		e, err := d.Entry(ctx, 0, row)
		if err != nil {
			t.Fatal(err)
		}
		below(e)
	}
}

// FuzzNames opens any name CONTAINER::PATH of real containers. A path that a walk over the container finds opens as the
// bytes of the file at that sample's place. Any other one is refused with a kind, or names, by positions (#N), parts of
// ids or chunks, a sample that the walk finds, and its bytes.
func FuzzNames(f *testing.F) {
	race.SkipCovered(f)
	files := &openers.Files{}
	f.Cleanup(func() { files.Close() })
	var all []named
	for _, name := range []string{"coast/coast.tacozip", "coast/flat.tacozip", "containers/tortilla/mixed.tortilla",
		"containers/taco-v1/stream_n1.taco", "containers/taco-v1/stream_n2_top.taco"} {
		path := filepath.Join(corpus.Testdata(f), filepath.FromSlash(name))
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		c := named{path, mustOpen(f, path), content, map[string]store.Entry{}}
		walk(f, c.open, c.entries)
		for p := range c.entries {
			f.Add(uint8(len(all)), p)
			f.Add(uint8(len(all)), p+"::0")
		}
		all = append(all, c)
	}
	for _, p := range []string{"", "#0", "#0/#0", "#0/#00/#-1", "#99999999999999999999", "::", "a::b::c", "#0::1",
		"../x", "tile_00/", "//", "/tile_00", "\x00", "#0/s2/img::0"} {
		for i := range all {
			f.Add(uint8(i), p)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, path string) {
		c := &all[int(which)%len(all)]
		e, err := c.open.Resolve(t.Context(), path)
		r, openErr := new(taco.Kind).OpenMember(t.Context(), files, c.path+source.Separator+path)
		if openErr == nil {
			defer r.Close()
		}
		if want, ok := c.entries[path]; ok && (err != nil || !same(e, want)) {
			t.Fatalf("%q is %+v, %v, the walk finds %+v", path, e, err, want)
		}
		if err != nil {
			if fault.KindOf(err) == 0 || fault.KindOf(openErr) != fault.KindOf(err) {
				t.Fatalf("%q: %v, and opened: %v", path, err, openErr)
			}
			return
		}
		sample := e
		if e.Of != nil {
			sample = *e.Of
		}
		if found, ok := c.entries[sample.Path]; !ok || !same(sample, found) {
			t.Fatalf("%q is %+v, which is not in the container", path, sample)
		}
		switch {
		case e.Of != nil: // its first bytes are made, and a damaged one is refused
			if openErr != nil && fault.KindOf(openErr) == 0 {
				t.Fatalf("%q: %v", path, openErr)
			}
		case e.Folder:
			if fault.KindOf(openErr) != fault.Unsupported {
				t.Fatalf("%q is a folder, and opened: %v", path, openErr)
			}
		case openErr != nil:
			t.Fatalf("%q: %v", path, openErr)
		default:
			got := make([]byte, r.Size())
			if err := r.ReadAt(t.Context(), got, 0); err != nil ||
				!bytes.Equal(got, c.content[e.Offset:e.Offset+e.Size]) {
				t.Fatalf("%q has %d other bytes: %v", path, len(got), err)
			}
		}
	})
}

// same reports whether two entries are one sample.
func same(a, b store.Entry) bool {
	return a.Path == b.Path && a.Level == b.Level && a.Row == b.Row && a.Offset == b.Offset && a.Size == b.Size
}
