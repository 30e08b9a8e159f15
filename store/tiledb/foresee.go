package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Foresight says which reads of tiles a Reader makes, without making them: footers, R-trees and lists of offsets are read,
// tiles are not. Like a Reader it goes on from box to box, and is not safe for concurrent use.
type Foresight struct {
	a    *Array
	last memo   // what the Reader has decoded
	tile uint64 // bytes of the largest tile
	read uint64 // most bytes held of reads
	kept uint64 // most bytes held of sparse fragments
	h    ahead
}

// Foresee returns what foresees the reads of a new Reader.
func (a *Array) Foresee() *Foresight { return &Foresight{a: a} }

// Held returns the memory of the Reader in bytes: a decoded tile, what was read ahead, and what was kept of sparse fragments.
func (p *Foresight) Held() int64 { return int64(p.tile + p.read + p.kept) }

// Ahead is Reader.Ahead.
func (p *Foresight) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return p.h.say(ctx, p.a, attr, boxes)
}

// foreseen is a file of tiles that would be read.
type foreseen struct {
	tileFile
	keep bool // decoded tiles
	note func(file string, off, n int64)
}

func (p *Foresight) open(ctx context.Context, f *Fragment, attr int, note func(file string, off, n int64)) (*foreseen, error) {
	offsets, err := p.a.list(ctx, f, tileOffsets, attr)
	if err != nil {
		return nil, err
	}
	uri := f.file(p.a.Schema, attr, false)
	return &foreseen{tileFile: tileFile{uri: uri, offsets: offsets, size: f.foot.sizes[attr], gap: f.gap, local: f.local(), slot: p.h.slot(uri)},
		keep: p.h.on && !f.Dense, note: note}, nil
}

// decode is Reader.decode for the first of its files, and Reader.decodeKept.
func (p *Foresight) decode(t *foreseen, tile int64, next following, n uint64, lo, hi int) {
	if t.keep && p.h.find(t.uri, tile) != nil {
		return
	}
	if m := p.last; m.uri != t.uri || m.tile != tile || lo < m.lo || m.hi < hi {
		if !t.there(&p.h, tile, next) {
			t.note(t.uri, int64(t.slot.from), int64(t.slot.n))
		}
		p.last, p.tile = memo{t.uri, tile, lo, hi}, max(p.tile, n)
	}
	if t.keep {
		p.h.keep(t.uri, tile, int(n))
	}
	stored, kept := p.h.held()
	p.read, p.kept = max(p.read, stored), max(p.kept, kept)
}

// Dense calls read for every range of a file that Reader.DenseInto reads of a box. What a sparse fragment of a dense array
// has in it shows only in the coordinates: then it is not exact.
func (p *Foresight) Dense(ctx context.Context, attr int, b Box, axes []int, read func(file string, off, n int64)) (exact bool, err error) {
	shape, _, err := p.a.Shape(b)
	if err != nil {
		return false, err
	}
	if axes == nil {
		axes = p.a.axes
	}
	to := layout{axes: axes, stride: strides(shape, axes)}
	if err := p.h.about(ctx, p.a, attr, b); err != nil {
		return false, fault.WithFile(err, p.a.uri)
	}
	exact = true
	err = p.a.layers(b, p.h.whole, func(i int) error {
		if p.a.Fragments[i].Dense {
			return p.dense(ctx, i, attr, b, to, read)
		}
		sure, err := p.sparse(ctx, i, attr, b, read)
		exact = exact && sure
		return err
	})
	return exact && err == nil, fault.WithFile(err, p.a.uri)
}

func (p *Foresight) dense(ctx context.Context, i, attr int, b Box, to layout, read func(file string, off, n int64)) error {
	t, err := p.open(ctx, p.a.Fragments[i], attr, read)
	if err != nil {
		return err
	}
	size := p.a.Schema.Attrs[attr].CellSize()
	n := uint64(p.a.Schema.tileCells) * uint64(size)
	return p.h.tiles(ctx, p.a, i, b, to, func(tile int64, next following, c *copyPlan) error {
		p.decode(t, tile, next, n, c.first*size, (c.last+1)*size)
		return nil
	})
}

// Sparse calls read for every range of a file that Reader.Sparse reads of a box for an attribute of fixed length. Which tiles
// of the attribute that are is certain where their cells lie in the box all of them: else it is not exact, and they
// are those that may have one.
func (p *Foresight) Sparse(ctx context.Context, attr int, b Box, read func(file string, off, n int64)) (exact bool, err error) {
	p.h.forget()
	exact, met := true, []int{}
	for i, f := range p.a.Fragments {
		if f.NonEmpty.intersects(b) {
			met = append(met, i)
		}
	}
	// All coordinates come before the first value; where fragments overlap, later cells may hide a whole tile.
	exact = len(met) < 2
	for _, i := range met {
		sure, err := p.coords(ctx, i, b, read)
		if err != nil {
			return false, fault.WithFile(err, p.a.uri)
		}
		exact = exact && sure
	}
	for _, i := range met {
		if err := p.values(ctx, i, attr, b, read); err != nil {
			return false, fault.WithFile(err, p.a.uri)
		}
	}
	return exact, nil
}

// sparse is sparse fragment i of a dense array.
func (p *Foresight) sparse(ctx context.Context, i, attr int, b Box, read func(file string, off, n int64)) (exact bool, err error) {
	if exact, err = p.coords(ctx, i, b, read); err != nil {
		return false, err
	}
	return exact, p.values(ctx, i, attr, b, read)
}

// coords notes the coordinates that Reader.eachTile reads. certain says that of each of the tiles all cells are in the box.
func (p *Foresight) coords(ctx context.Context, i int, b Box, read func(file string, off, n int64)) (certain bool, err error) {
	tree, err := p.a.rtree(ctx, p.a.Fragments[i])
	if err != nil {
		return false, err
	}
	boxes := tree.levels[len(tree.levels)-1]
	tiles, err := p.a.shownTiles(ctx, i, b)
	if err != nil {
		return false, err
	}
	certain = !slices.ContainsFunc(tiles, func(t int64) bool { return !b.covers(boxes[t]) })
	return certain, p.tilesOf(ctx, i, len(p.a.Schema.Attrs), p.a.Schema.DimType.Size()*len(p.a.Schema.Dims), b, read)
}

// values notes the values that go with the coordinates.
func (p *Foresight) values(ctx context.Context, i, attr int, b Box, read func(file string, off, n int64)) error {
	return p.tilesOf(ctx, i, attr, p.a.Schema.Attrs[attr].CellSize(), b, read)
}

// tilesOf notes the tiles of a file of sparse fragment i that show in b.
func (p *Foresight) tilesOf(ctx context.Context, i, attr, cell int, b Box, read func(file string, off, n int64)) error {
	f := p.a.Fragments[i]
	tiles, err := p.a.shownTiles(ctx, i, b)
	if err != nil || len(tiles) == 0 {
		return err
	}
	t, err := p.open(ctx, f, attr, read)
	if err != nil {
		return err
	}
	for k, tile := range tiles {
		n := f.cells(p.a.Schema, tile) * uint64(cell)
		next := following{list: tiles[k+1:]}
		if attr == len(p.a.Schema.Attrs) {
			next = p.h.after(f, tile, next)
		}
		p.decode(t, tile, next, n, 0, int(n))
	}
	return nil
}
