package tiledb

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Cells are cells of a sparse array, sorted by their coordinates, the first dimension first.
type Cells struct {
	N int
	// Coords are the coordinates, cell by cell, little-endian: N times the number of dimensions.
	Coords []byte
	// Values has an entry for each requested attribute.
	Values []Values
}

// visit is a tile with cells in the box.
type visit struct {
	fragment int
	tile     int64
	first    int // index of its first hit
}

// matches are the cells in a box, over all fragments. A hit is one such cell.
type matches struct {
	dims    int
	coords  []Coord // of every hit
	raw     []byte  // the same, as stored
	hits    []int   // the row of each hit in its tile
	visits  []visit
	place   []int // of each hit: its index in the result, or -1 if a later fragment has the same cell
	n       int   // cells in the result
	maximum int64 // limit in bytes
}

// Sparse reads the cells of a sparse array whose coordinates lie in a box, and the values of some
// attributes. If several fragments have a cell, that of the latest one counts. If that fragment has
// it several times, all of them count.
func (r *Reader) Sparse(ctx context.Context, attrs []int, b Box) (*Cells, error) {
	s := r.a.Schema
	if s.Dense {
		return nil, fault.New(fault.Unsupported, "sub-array", fault.NoOffset, "the array is dense")
	}
	if err := s.check(b); err != nil {
		return nil, err
	}
	r.ahead.forget()
	all := &matches{dims: len(s.Dims), maximum: r.a.o.MaxResult}
	for i, f := range r.a.Fragments {
		if f.NonEmpty.intersects(b) {
			if err := r.find(ctx, all, i, b); err != nil {
				return nil, err
			}
		}
	}
	out := &Cells{Coords: all.sort(s.DimType.Size()), N: all.n}
	for _, attr := range attrs {
		v, err := r.collect(ctx, all, attr)
		if err != nil {
			return nil, err
		}
		out.Values = append(out.Values, v)
	}
	return out, nil
}

// find adds the cells of fragment i that lie in a box.
func (r *Reader) find(ctx context.Context, all *matches, i int, b Box) error {
	size := r.a.Schema.DimType.Size()
	tiles, err := r.a.shownTiles(ctx, i, b)
	if err != nil {
		return err
	}
	return r.eachTile(ctx, r.a.Fragments[i], tiles, b, func(c *tileCells) error {
		if err := all.add(i, c); err != nil {
			return err
		}
		for _, row := range c.rows {
			for at := row; at < len(c.coords); at += c.cells {
				all.coords = append(all.coords, c.coords[at])
				all.raw = append(all.raw, c.planes[at*size:(at+1)*size]...)
			}
		}
		return nil
	})
}

// add records the rows of a tile.
func (f *matches) add(fragment int, c *tileCells) error {
	if int64(len(f.hits)+len(c.rows)) > f.maximum/int64(48+16*f.dims) {
		return fault.New(fault.Limit, "sub-array", fault.NoOffset, "%d cells take more than %d bytes",
			len(f.hits)+len(c.rows), f.maximum)
	}
	if len(c.rows) > 0 {
		f.visits = append(f.visits, visit{fragment, c.tile, len(f.hits)})
		f.hits = append(f.hits, c.rows...)
	}
	return nil
}

// at returns the coordinates of a hit.
func (f *matches) at(h int) []Coord { return f.coords[h*f.dims : (h+1)*f.dims] }

// sortKey is a hit with its first coordinate, which decides most comparisons without a look at the
// others.
type sortKey struct {
	first Coord
	hit   int
}

// sort gives every hit its place in the result, and returns the coordinates in that order.
func (f *matches) sort(size int) []byte {
	order := make([]sortKey, len(f.hits))
	for h := range order {
		order[h] = sortKey{f.coords[h*f.dims], h}
	}
	slices.SortFunc(order, func(a, b sortKey) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return cmp.Or(slices.Compare(f.at(a.hit), f.at(b.hit)), cmp.Compare(a.hit, b.hit))
	})
	f.place = make([]int, len(f.hits))
	cell := f.dims * size
	out := make([]byte, 0, len(f.raw))
	from := f.fragments()
	latest := 0 // the last fragment among the equal hits at hand: hits are in the order of fragments
	for i := len(order) - 1; i >= 0; i-- {
		h := order[i].hit
		if i+1 == len(order) || order[i].first != order[i+1].first || !slices.Equal(f.at(h), f.at(order[i+1].hit)) {
			latest = from(h)
		}
		if from(h) != latest {
			f.place[h] = -1
		}
	}
	for _, k := range order {
		if f.place[k.hit] < 0 {
			continue
		}
		f.place[k.hit] = f.n
		f.n++
		out = append(out, f.raw[k.hit*cell:(k.hit+1)*cell]...)
	}
	f.raw = nil
	return out
}

// fragments returns a function that maps a hit to its fragment.
func (f *matches) fragments() func(hit int) int {
	var list, first []int // fragments, and the first hit of each
	for _, v := range f.visits {
		if len(list) == 0 || list[len(list)-1] != v.fragment {
			list, first = append(list, v.fragment), append(first, v.first)
		}
	}
	return func(hit int) int {
		if len(list) == 1 {
			return list[0]
		}
		i, found := slices.BinarySearch(first, hit)
		if !found {
			i--
		}
		return list[i]
	}
}

// needed calls do for each tile from which a hit is in the result, with its hits and the tiles that
// come next. It calls open before the tiles of each fragment and closeFile after them.
func (f *matches) needed(open func(fragment int) error, do func(tile int64, next nextTiles, hits []int,
	place []int) error, closeFile func() error) error {
	for v := 0; v < len(f.visits); {
		fragment, end := f.visits[v].fragment, v
		for end < len(f.visits) && f.visits[end].fragment == fragment {
			end++
		}
		if err := open(fragment); err != nil {
			return err
		}
		err := f.ofFragment(v, end, do)
		if cerr := closeFile(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		v = end
	}
	return nil
}

func (f *matches) ofFragment(v, end int, do func(tile int64, next nextTiles, hits []int, place []int) error) error {
	var tiles []int64
	var list []int
	for ; v < end; v++ {
		if lo, hi := f.hitsOf(v); slices.Max(f.place[lo:hi]) >= 0 {
			tiles, list = append(tiles, f.visits[v].tile), append(list, v)
		}
	}
	for k, tile := range tiles {
		lo, hi := f.hitsOf(list[k])
		if err := do(tile, nextTiles{list: tiles[k+1:]}, f.hits[lo:hi], f.place[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// hitsOf returns the range of the hits in a tile, which is not empty.
func (f *matches) hitsOf(v int) (lo, hi int) {
	if v+1 < len(f.visits) {
		return f.visits[v].first, f.visits[v+1].first
	}
	return f.visits[v].first, len(f.hits)
}

// collect reads the values of one attribute.
func (r *Reader) collect(ctx context.Context, all *matches, attr int) (Values, error) {
	a := &r.a.Schema.Attrs[attr]
	if a.Var() {
		return r.collectVar(ctx, all, attr)
	}
	size, elem := a.CellSize(), a.Type.elem(int(a.Values))
	if int64(all.n) > r.a.o.MaxResult/int64(size) {
		return Values{}, fault.New(fault.Limit, "sub-array", fault.NoOffset,
			"%d cells of %d bytes, at most %d bytes", all.n, size, r.a.o.MaxResult)
	}
	out := make([]byte, all.n*size)
	var f *Fragment
	open := func(i int) (err error) {
		f = r.a.Fragments[i]
		_, err = r.open(ctx, 0, f, attr, false)
		return err
	}
	err := all.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		n, err := r.fixedSize(f, tile, size)
		if err != nil {
			return err
		}
		first, end := hits[0], hits[len(hits)-1]
		src, err := r.decode(ctx, 0, tile, next, n, a.Pipeline, elem, first*size, (end+1)*size)
		if err != nil {
			return err
		}
		for i, h := range hits {
			if p := place[i]; p >= 0 {
				copy(out[p*size:(p+1)*size], src[h*size:])
			}
		}
		return nil
	}, func() error { return r.file[0].close() })
	return Values{Data: out}, err
}

func (r *Reader) collectVar(ctx context.Context, all *matches, attr int) (Values, error) {
	v := &varCells{spans: make([]span, all.n), limit: r.a.o.MaxResult}
	var f *Fragment
	var sizes []uint64
	open := func(i int) (err error) {
		f = r.a.Fragments[i]
		sizes, err = r.openVar(ctx, f, attr)
		return err
	}
	err := all.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		offs, data, err := r.varTile(ctx, f, attr, sizes, tile, next, hits[0], hits[len(hits)-1])
		if err != nil {
			return err
		}
		for i, h := range hits {
			if place[i] < 0 {
				continue
			}
			if v.spans[place[i]], err = v.cell(offs, data, h, sizes[tile]); err != nil {
				return err
			}
		}
		return nil
	}, r.closeVar)
	if err != nil {
		return Values{}, err
	}
	return v.values(r.a.o.MaxResult)
}
