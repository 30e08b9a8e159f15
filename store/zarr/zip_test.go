package zarr

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// memoryZIP opens every name as the same bytes.
type memoryZIP []byte

func (m memoryZIP) Open(context.Context, string) (source.Reader, error) { return source.Memory(m), nil }

// inZIP returns an opener of the object s3://b/x.zarr.zip.
func inZIP(b []byte) source.Opener {
	return &openers.Mux{Schemes: map[string]source.Opener{"s3": memoryZIP(b)}}
}

const zipName = "s3://b/x.zarr.zip"

// firstImage reads the first image of an array of a store, if it is small.
func firstImage(ctx context.Context, o source.Opener, n *arrays.Node, path string) ([]byte, error) {
	r, err := n.Raster(ctx, "", path, "")
	if err != nil || r.Len() == 0 {
		return nil, err
	}
	g := r.Grid()
	if err := r.Index(0).Validate(-1, 1<<16); err != nil {
		return nil, err
	}
	size := int64(g.Bands) * int64(g.Height) * int64(g.Width) * int64(g.DType.Size())
	if size > 1<<16 {
		return nil, nil
	}
	return readWindow(ctx, windowReader(o), r.Index(0), chunk.Box{B1: g.Bands, Y1: g.Height, X1: g.Width})
}

// TestCommittedZIPs: ZIPs that zarr-python wrote, of chunks that are there twice or compressed, have the pixels that it
// read of them, as remote objects.
func TestCommittedZIPs(t *testing.T) {
	const dir = "../../testdata/stores"
	text := testfile.Read(t, filepath.Join(dir, "values.json"))
	var values map[string]map[string][]string
	if err := json.Unmarshal(text, &values); err != nil || len(values) != 9 {
		t.Fatalf("%d stores: %v", len(values), err)
	}
	for name, images := range values {
		data := testfile.Read(t, filepath.Join(dir, name))
		o := inZIP(data)
		p, err := source.Parse(zipName)
		if err != nil || !Kind.(store.Named).Named(p) {
			t.Fatalf("%s: is no store: %v", name, err)
		}
		if is, err := Is(t.Context(), o, p); !is || err != nil {
			t.Fatalf("%s: is no store: %v", name, err)
		}
		node, err := Open(t.Context(), o, zipName, arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range images {
			sub, err := node.At(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := firstImage(t.Context(), o, node, path)
			if sum := digest(got, sub.Array.DType); err != nil || sum != want[0] {
				t.Errorf("%s/%s: %s, zarr-python reads %s: %v", name, path, sum, want[0], err)
			}
		}
	}
}

// FuzzZIP: a ZIP of any bytes is a store that can be read, or is refused with a kind.
func FuzzZIP(f *testing.F) {
	paths, err := filepath.Glob("../../testdata/stores/*/[bc].zarr.zip")
	if err != nil || len(paths) != 6 {
		f.Fatalf("%d stores: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		kinds := func(err error) {
			if err != nil && fault.KindOf(err) == 0 {
				t.Fatal(fmt.Errorf("an error without a kind: %w", err))
			}
		}
		o := inZIP(b)
		node, err := Open(t.Context(), o, zipName, arrays.Options{MaxChunk: 1 << 16, MaxMeta: 1 << 20})
		kinds(err)
		if err != nil {
			return
		}
		list, err := node.Members(t.Context())
		kinds(err)
		bound := int64(16 << 20)
		for _, m := range list {
			if kinds(m.Err); m.Err == nil {
				_, err := firstImage(t.Context(), o, node, m.Path)
				bound = m.Array.Indexes().Bound()
				kinds(err)
			}
		}
		if held, _ := node.Held(); held > 1<<20+bound {
			t.Fatalf("%d bytes are held", held)
		}
	})
}
