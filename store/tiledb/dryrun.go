package tiledb

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// DryRun counts the reads of tiles that a Reader would make. It reads footers, R-trees and lists of
// offsets, but no tiles. Like a Reader it keeps state from box to box, and is not safe for
// concurrent use.
type DryRun struct {
	a    *Array
	last [2]decodedRange // the ranges that the Reader would have decoded: of values, and of validity
	tile uint64          // size of the largest tile
	read uint64          // peak of stored bytes held
	kept uint64          // peak of decoded bytes held of sparse fragments
	h    readAhead
}

// NewDryRun returns a dry run of a new Reader.
func (a *Array) NewDryRun() *DryRun { return &DryRun{a: a} }

// Held returns the peak memory of the Reader in bytes: one decoded tile, the bytes read ahead, and
// the kept tiles of sparse fragments.
func (p *DryRun) Held() int64 { return int64(p.tile + p.read + p.kept) }

// Ahead corresponds to Reader.Ahead.
func (p *DryRun) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return p.h.announce(ctx, p.a, attr, boxes)
}

// dryFile is a file of tiles that would be read.
type dryFile struct {
	tileFile
	keep bool // decoded tiles are kept
	last *decodedRange
	note func(file string, off, n int64)
}

func (p *DryRun) open(ctx context.Context, f *Fragment, column int, kind list,
	note func(file string, off, n int64)) (*dryFile, error) {
	offsets, err := p.a.list(ctx, f, kind, column)
	if err != nil {
		return nil, err
	}
	uri := f.file(p.a.Schema, column, kind)
	return &dryFile{tileFile: tileFile{uri: uri, offsets: offsets, size: f.size(column, kind), gap: f.gap,
		local: f.local(), slot: p.h.slot(uri)},
		keep: p.h.on && !f.Dense, last: &p.last[(&part{kind: kind}).which()], note: note}, nil
}

// decode corresponds to Reader.decode for the first of its files, and to Reader.decodeKept.
func (p *DryRun) decode(t *dryFile, tile int64, next nextTiles, n uint64, lo, hi int) {
	if t.keep && p.h.find(t.uri, tile) != nil {
		return
	}
	if m := t.last; m.uri != t.uri || m.tile != tile || lo < m.lo || m.hi < hi {
		if !t.inMemory(&p.h, tile, next) {
			t.note(t.uri, int64(t.slot.from), int64(t.slot.n))
		}
		*t.last, p.tile = decodedRange{t.uri, tile, lo, hi}, max(p.tile, n)
	}
	if t.keep {
		p.h.keep(t.uri, tile, int(n))
	}
	stored, kept := p.h.held()
	p.read, p.kept = max(p.read, stored), max(p.kept, kept)
}

// Dense calls read for every range of a file that Reader.DenseInto would read for a box. exact is
// false if a sparse fragment is involved whose cells in the box are known only after reading its
// coordinates.
func (p *DryRun) Dense(ctx context.Context, attr int, b Box, axes []int,
	read func(file string, off, n int64)) (exact bool, err error) {
	shape, _, err := p.a.Shape(b)
	if err != nil {
		return false, err
	}
	if axes == nil {
		axes = p.a.axes
	}
	target := layout{axes: axes, stride: strides(shape, axes)}
	if err := p.h.expectOne(ctx, p.a, attr, b); err != nil {
		return false, fault.WithFile(err, p.a.uri)
	}
	exact = true
	attribute := &p.a.Schema.Attrs[attr]
	parts := []part{attribute.values(attr)}
	if attribute.Nullable {
		parts = append(parts, attribute.validity(attr))
	}
	for _, piece := range parts {
		err = errors.Join(err, p.a.layers(b, p.h.whole, func(i int) error {
			if p.a.Fragments[i].Dense {
				return p.dense(ctx, i, piece, b, target, read)
			}
			sure, err := p.sparse(ctx, i, piece, b, read)
			exact = exact && sure
			return err
		}))
	}
	return exact && err == nil, fault.WithFile(err, p.a.uri)
}

func (p *DryRun) dense(ctx context.Context, i int, of part, b Box, to layout,
	read func(file string, off, n int64)) error {
	if !p.a.Fragments[i].has(of.attr) {
		return nil
	}
	dryFile, err := p.open(ctx, p.a.Fragments[i], of.attr, of.kind, read)
	if err != nil {
		return err
	}
	size := of.size
	n := uint64(p.a.Schema.tileCells) * uint64(size)
	return p.h.tiles(ctx, p.a, i, b, to, func(tile int64, next nextTiles, c *copyPlan) error {
		p.decode(dryFile, tile, next, n, c.first*size, (c.last+1)*size)
		return nil
	})
}

// Sparse calls read for every range of a file that Reader.Sparse would read for a box and an
// attribute of fixed length. If each tile of coordinates lies wholly in the box, the tiles of the
// attribute are certain. Otherwise exact is false and they are those that may have a cell.
func (p *DryRun) Sparse(ctx context.Context, attr int, b Box,
	read func(file string, off, n int64)) (exact bool, err error) {
	p.h.forget()
	exact, met := true, []int{}
	for i, f := range p.a.Fragments {
		if f.NonEmpty.intersects(b) {
			met = append(met, i)
		}
	}
	// Where fragments overlap, later cells may hide a whole tile of an earlier fragment, whose
	// values would not be read.
	exact = len(met) < 2
	for _, i := range met {
		sure, err := p.coords(ctx, i, b, read)
		if err != nil {
			return false, fault.WithFile(err, p.a.uri)
		}
		exact = exact && sure
	}
	attribute := &p.a.Schema.Attrs[attr]
	parts := []part{attribute.values(attr)}
	if attribute.Nullable {
		parts = append(parts, attribute.validity(attr))
	}
	for _, piece := range parts {
		for _, i := range met {
			if err := p.values(ctx, i, piece, b, read); err != nil {
				return false, fault.WithFile(err, p.a.uri)
			}
		}
	}
	return exact, nil
}

// sparse handles sparse fragment i of a dense array.
func (p *DryRun) sparse(ctx context.Context, i int, of part, b Box, read func(file string, off, n int64)) (exact bool,
	err error) {
	if exact, err = p.coords(ctx, i, b, read); err != nil {
		return false, err
	}
	return exact, p.values(ctx, i, of, b, read)
}

// coords counts the coordinates that Reader.eachTile would read. certain is true if all cells of
// these tiles are in the box.
func (p *DryRun) coords(ctx context.Context, i int, b Box, read func(file string, off, n int64)) (certain bool,
	err error) {
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
	schema, fragment := p.a.Schema, p.a.Fragments[i]
	if !fragment.x.dimTypes {
		return certain, p.tilesOf(ctx, i, len(schema.Attrs), tileOffsets, schema.DimType.Size()*len(schema.Dims), b,
			read)
	}
	columns := len(schema.Dims)
	if fragment.foot.times {
		columns++
	}
	for d := range columns {
		codec := fragment.codec(p.a, p.a.column(d))
		if codec.t == StringASCII {
			if certain = false; codec.together {
				continue
			}
		}
		err = errors.Join(err, p.tilesOf(ctx, i, p.a.column(d), tileOffsets, codec.t.Size(), b, read))
	}
	return certain, err
}

// values counts the values that belong to the coordinates.
func (p *DryRun) values(ctx context.Context, i int, of part, b Box, read func(file string, off, n int64)) error {
	if !p.a.Fragments[i].has(of.attr) {
		return nil
	}
	return p.tilesOf(ctx, i, of.attr, of.kind, of.size, b, read)
}

// tilesOf counts the tiles of a file of sparse fragment i that show in b.
func (p *DryRun) tilesOf(ctx context.Context, i, column int, kind list, cell int, b Box,
	read func(file string, off, n int64)) error {
	fragment := p.a.Fragments[i]
	tiles, err := p.a.shownTiles(ctx, i, b)
	if err != nil || len(tiles) == 0 {
		return err
	}
	dryFile, err := p.open(ctx, fragment, column, kind, read)
	if err != nil {
		return err
	}
	for k, tile := range tiles {
		n := fragment.cells(p.a.Schema, tile) * uint64(cell)
		next := nextTiles{list: tiles[k+1:]}
		if column >= len(p.a.Schema.Attrs) {
			next = p.h.after(fragment, tile, next)
		}
		p.decode(dryFile, tile, next, n, 0, int(n))
	}
	return nil
}
