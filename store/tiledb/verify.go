package tiledb

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
)

// Checked counts what Verify checked.
type Checked struct {
	Fragments int   // with hidden ones
	Tiles     int64 // decoded tiles: of attributes, coordinates, offsets and variable-length data
	Bytes     int64 // decoded bytes
	Cells     int64 // of all fragments, without those that only fill up dense tiles
}

// Verify reads the whole array: every tile of every attribute, of hidden fragments too, and every part of the metadata
// that reading needs. It checks that the metadata agrees with itself and with the files, that
// every filter can be undone, that offsets ascend, that coordinates lie in the boxes of the R-tree,
// and these in the non-empty domain. It returns the first fault, with the counts up to it.
func (a *Array) Verify(ctx context.Context) (Checked, error) {
	verifier := &arrayVerifier{a: a, r: a.NewReader()}
	for _, list := range [][]*Fragment{a.Fragments, a.Hidden} {
		for _, fragment := range list {
			verifier.c.Fragments++
			if err := verifier.fragment(ctx, fragment); err != nil {
				return verifier.c, fault.WithFile(err, fragment.uri)
			}
		}
	}
	return verifier.c, nil
}

type arrayVerifier struct {
	a *Array
	r *Reader
	c Checked
}

func (v *arrayVerifier) fragment(ctx context.Context, f *Fragment) error {
	schema := v.a.Schema
	if f.Dense {
		_, n := f.NonEmpty.shape(math.MaxInt64 / 2)
		v.c.Cells += n
	} else if err := v.coords(ctx, f); err != nil {
		return err
	}
	for i := range schema.Attrs {
		if !f.has(i) {
			continue
		}
		attr := &schema.Attrs[i]
		err := v.column(ctx, f, attr.values(i))
		if err == nil && attr.Nullable {
			err = v.column(ctx, f, attr.validity(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *arrayVerifier) coords(ctx context.Context, f *Fragment) error {
	schema := v.a.Schema
	tree, err := v.a.rtree(ctx, f)
	if err != nil {
		return err
	}
	if root := union(tree.levels[0]); !root.intersects(schema.Domain()) ||
		!f.NonEmpty.covers(root.cut(schema.Domain())) {
		return fault.WithFile(fault.New(fault.Corrupt, rtreePart,
			"it reaches past the non-empty domain"), f.uri+"/"+metadataName)
	}
	v.r.ahead.forget()
	var tiles []int64
	tree.tiles(schema.Domain(), func(t int64) { tiles = append(tiles, t) })
	return v.r.eachTile(ctx, f, tiles, schema.Domain(), func(c *tileCells) error {
		v.c.Tiles++
		v.c.Cells += int64(c.cells)
		for d := range c.planes {
			v.c.Bytes += int64(len(c.planes[d].data) + len(c.planes[d].offs))
		}
		return nil
	})
}

// column decodes every tile of a column.
func (v *arrayVerifier) column(ctx context.Context, f *Fragment, p columnPart) error {
	v.r.ahead.forget()
	v.r.ahead.share(2) // values and offsets
	column, err := v.r.column(ctx, f, p)
	if err != nil {
		return err
	}
	defer column.close()
	column.expect(func(yield func(int64) bool) {
		for tile := int64(0); tile < f.Tiles && yield(tile); tile++ {
		}
	})
	for tile := range f.Tiles {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := int(f.cells(v.a.Schema, tile)) - 1
		data, err := column.tile(ctx, tile, 0, last)
		if err != nil {
			return err
		}
		if v.c.Tiles++; column.size == 0 {
			v.c.Tiles++ // of offsets
		}
		v.c.Bytes += int64(data.end) + int64(len(data.offs))
	}
	return nil
}
