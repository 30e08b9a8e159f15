package tiledb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/chaski-eo/chaski/fault"
)

// Cells are cells of a sparse array, sorted by their coordinates, the first dimension first.
type Cells struct {
	N int
	// Coords are the coordinates, cell by cell, little-endian: N times the number of dimensions. It
	// is nil if a dimension has strings.
	Coords []byte
	// Dims are the coordinates of each dimension, if one has strings.
	Dims []Values
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
	dims   int
	coords []Coord  // of every hit
	raw    []byte   // the same, as stored, but for strings
	texts  [][]byte // the strings of every hit, of the dimensions that have them
	isText []bool   // which dimensions have strings; nil if none
	times  []uint64 // when each hit was written
	// hasTimes says that a fragment has the times of its cells, so one of them may be later than
	// a cell of a later fragment.
	hasTimes bool
	textSize int64 // bytes of texts
	dups     bool  // all cells with the same coordinates count
	hits     []int // the row of each hit in its tile
	visits   []visit
	place    []int // of each hit: its index in the result, or -1 if a later fragment has the same cell
	n        int   // cells in the result
	maximum  int64 // limit in bytes
}

// Sparse reads the cells of a sparse array whose coordinates lie in a box, and the values of some attributes. If
// several fragments have a cell, the latest one counts. If that fragment has it several times, all of them count.
func (r *Reader) Sparse(ctx context.Context, attrs []int, b Box) (*Cells, error) {
	schema := r.a.Schema
	if schema.Dense {
		return nil, fault.New(fault.Unsupported, "sub-array", "the array is dense")
	}
	if err := schema.check(b); err != nil {
		return nil, err
	}
	r.ahead.forget()
	hits := &matches{dims: len(schema.Dims), maximum: r.a.o.MaxResult, dups: schema.AllowsDups}
	if schema.hasText() {
		for d := range schema.Dims {
			hits.isText = append(hits.isText, schema.Type(d) == StringASCII)
		}
	}
	met := 0
	for i, f := range r.a.Fragments {
		if f.NonEmpty.intersects(b) {
			met++
			if err := r.find(ctx, hits, i, b); err != nil {
				return nil, err
			}
		}
	}
	if r.dry != nil {
		// Where fragments overlap, later cells may hide a whole tile of an earlier fragment, whose
		// values would not be read.
		r.dry.exact = r.dry.exact && met < 2
		return &Cells{}, r.collectAll(ctx, hits, attrs, &Cells{})
	}
	order := hits.sort()
	out := &Cells{N: hits.n}
	if hits.isText == nil {
		out.Coords = hits.cells(order, schema)
	} else {
		out.Dims = hits.columns(order, schema)
	}
	hits.raw, hits.texts = nil, nil
	return out, r.collectAll(ctx, hits, attrs, out)
}

// collectAll appends the values of some attributes.
func (r *Reader) collectAll(ctx context.Context, hits *matches, attrs []int, out *Cells) error {
	for _, attr := range attrs {
		values, err := r.read(attr, hits.n, func(p columnPart, to sink) error { return r.collect(ctx, to, hits, p) })
		if err != nil {
			return err
		}
		out.Values = append(out.Values, values)
	}
	return nil
}

// find adds the cells of fragment i that lie in a box.
func (r *Reader) find(ctx context.Context, all *matches, i int, b Box) error {
	tiles, err := r.a.shownTiles(ctx, i, b)
	if err != nil {
		return err
	}
	fragment := r.a.Fragments[i]
	return r.eachTile(ctx, fragment, tiles, b, func(c *tileCells) error {
		if err := all.add(i, c); err != nil || r.dry != nil {
			return err
		}
		for _, row := range c.rows {
			for i := row; i < len(c.coords); i += c.cells {
				all.coords = append(all.coords, c.coords[i])
			}
			for d := range c.planes {
				if p := &c.planes[d]; p.size > 0 {
					all.raw = append(all.raw, p.at(row)...)
				} else if err := all.addText(p.at(row)); err != nil {
					return err
				}
			}
			all.addTime(fragment, c, row)
		}
		return nil
	})
}

// addText adds a string of the last hit.
func (f *matches) addText(s []byte) error {
	if f.textSize += int64(len(s)) + 24; f.textSize > f.maximum {
		return fault.New(fault.Limit, "sub-array", "strings of cells take more than %d bytes", f.maximum)
	}
	f.texts = append(f.texts, slices.Clone(s))
	return nil
}

// addTime records when the last hit was written. Cells of a fragment without times of cells have the
// time of the fragment.
func (f *matches) addTime(fr *Fragment, c *tileCells, row int) {
	written := fr.From
	if c.times != nil {
		written, f.hasTimes = u64(c.times, row), true
	}
	f.times = append(f.times, written)
}

// add records the rows of a tile.
func (f *matches) add(fragment int, c *tileCells) error {
	if int64(len(f.hits)+len(c.rows)) > f.maximum/int64(48+16*f.dims) {
		return fault.New(fault.Limit, "sub-array", "%d cells take more than %d bytes",
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

// sortKey is a hit with its first coordinate, which decides most comparisons without a look at the others.
type sortKey struct {
	first Coord
	hit   int
}

// compare orders two hits by their coordinates, the first dimension first.
func (f *matches) compare(a, b int) int {
	if f.isText == nil {
		return slices.Compare(f.at(a), f.at(b))
	}
	texts, textIndex := len(f.texts)/max(len(f.hits), 1), 0
	for d, text := range f.isText {
		order := cmp.Compare(f.coords[a*f.dims+d], f.coords[b*f.dims+d])
		if text {
			if order == 0 {
				order = bytes.Compare(f.texts[a*texts+textIndex], f.texts[b*texts+textIndex])
			}
			textIndex++
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// sort gives every hit its place in the result, and returns the hits in that order. Of cells with the same coordinates
// the latest one counts: the one in the latest fragment, or the one with the latest time if cells have times.
func (f *matches) sort() []int {
	order := make([]sortKey, len(f.hits))
	for h := range order {
		order[h] = sortKey{f.coords[h*f.dims], h}
	}
	slices.SortFunc(order, func(a, b sortKey) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return cmp.Or(f.compare(a.hit, b.hit), cmp.Compare(a.hit, b.hit))
	})
	f.place = make([]int, len(f.hits))
	if !f.dups {
		f.dropOlder(order)
	}
	out := make([]int, 0, len(order))
	for _, key := range order {
		if f.place[key.hit] < 0 {
			continue
		}
		f.place[key.hit] = f.n
		f.n++
		out = append(out, key.hit)
	}
	return out
}

// dropOlder leaves out hits with the coordinates of a later one. Hits are in the order of fragments.
func (f *matches) dropOlder(order []sortKey) {
	for i := 0; i < len(order); {
		end := i + 1
		for end < len(order) && order[end].first == order[i].first && f.compare(order[i].hit, order[end].hit) == 0 {
			end++
		}
		if end > i+1 {
			f.keepLatest(order[i:end])
		}
		i = end
	}
}

// keepLatest keeps the latest of some hits with the same coordinates: with times one of them, without
// all of the latest fragment, which may have a cell several times.
func (f *matches) keepLatest(same []sortKey) {
	last := same[len(same)-1].hit
	if f.hasTimes {
		for _, key := range same {
			if f.times[key.hit] > f.times[last] {
				last = key.hit
			}
		}
	}
	for _, key := range same {
		if key.hit != last && (f.hasTimes || f.fragmentOf(key.hit) != f.fragmentOf(last)) {
			f.place[key.hit] = -1
		}
	}
}

// cells returns the coordinates of hits, cell by cell.
func (f *matches) cells(order []int, s *Schema) []byte {
	size := 0
	for _, t := range s.types() {
		size += t.Size()
	}
	out := make([]byte, 0, len(order)*size)
	for _, h := range order {
		out = append(out, f.raw[h*size:(h+1)*size]...)
	}
	return out
}

// columns returns the coordinates of hits, dimension by dimension.
func (f *matches) columns(order []int, s *Schema) []Values {
	out := make([]Values, f.dims)
	texts, size := len(f.texts)/max(len(f.hits), 1), len(f.raw)/max(len(f.hits), 1)
	pos, textIndex := 0, 0
	for d := range out {
		values, width := &out[d], s.Type(d).Size()
		if f.isText[d] {
			values.Offsets = make([]uint64, 0, len(order))
		}
		for _, hit := range order {
			if f.isText[d] {
				values.Offsets = append(values.Offsets, uint64(len(values.Data)))
				values.Data = append(values.Data, f.texts[hit*texts+textIndex]...)
			} else {
				values.Data = append(values.Data, f.raw[hit*size+pos:hit*size+pos+width]...)
			}
		}
		if f.isText[d] {
			textIndex++
		} else {
			pos += width
		}
	}
	return out
}

// fragmentOf returns the fragment of a hit.
func (f *matches) fragmentOf(hit int) int {
	after := sort.Search(len(f.visits), func(i int) bool { return f.visits[i].first > hit })
	return f.visits[after-1].fragment
}

// collect gives a part of an attribute of the hits in the result to a sink. In a dry run all hits are.
func (r *Reader) collect(ctx context.Context, to sink, all *matches, p columnPart) error {
	if r.dry != nil {
		all.place = make([]int, len(all.hits))
	}
	for first := 0; first < len(all.visits); {
		fragment, end := all.visits[first].fragment, first
		for end < len(all.visits) && all.visits[end].fragment == fragment {
			end++
		}
		if err := r.collectFrom(ctx, to, all, r.a.Fragments[fragment], first, end, p); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// collectFrom is collect for a fragment, whose tiles are visits v to end-1.
func (r *Reader) collectFrom(ctx context.Context, to sink, all *matches, f *Fragment, v, end int,
	p columnPart) (err error) {
	var column *openColumn // nil if the fragment lacks the attribute
	if f.has(p.column) {
		if column, err = r.column(ctx, f, p); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, column.close()) }()
	}
	var tiles []int64
	var list []int
	// One value serves all tiles, because it is moved to the heap.
	var data tileData
	for ; v < end; v++ {
		if lo, hi := all.hitsOf(v); slices.Max(all.place[lo:hi]) >= 0 {
			tiles, list = append(tiles, all.visits[v].tile), append(list, v)
		}
	}
	if column != nil && len(tiles) > 0 {
		column.expect(slices.Values(r.ahead.expected(f, tiles, 2)))
	}
	for k, tile := range tiles {
		lo, hi := all.hitsOf(list[k])
		rows, places := all.hits[lo:hi], all.place[lo:hi]
		if column == nil {
			for _, place := range places {
				if place >= 0 && r.dry == nil {
					to.fill(place, 1)
				}
			}
			continue
		}
		if data, err = column.tile(ctx, tile, rows[0], rows[len(rows)-1]); err != nil {
			return err
		}
		if r.dry != nil {
			continue
		}
		if err := to.scatter(&data, rows, places); err != nil {
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
