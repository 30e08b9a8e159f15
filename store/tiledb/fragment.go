package tiledb

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Fragment is the result of one write or of one consolidation. It is safe for concurrent use.
type Fragment struct {
	Name     string
	From, To uint64 // milliseconds since 1970; they differ if the fragment was consolidated
	Dense    bool
	NonEmpty Box // bounds of the cells in it
	// Tiles is the number of tiles in the file of each attribute.
	Tiles int64
	// LastCells is the number of cells in the last tile. The other tiles of a sparse fragment hold
	// as many as the schema's capacity.
	LastCells int64

	uri   string
	gap   uint64 // of its files: see source.Gap
	foot  footer
	first []int64 // of a dense fragment: the index of its first tile along each dimension
	grid  []int64 // and the number of its tiles along each

	mu    sync.Mutex
	lists map[listKey][]uint64
	tree  *rtree
}

// footer is the end of a fragment's metadata file, with the offsets of the parts in front of it.
// The lists have an entry for each attribute; sizes and offsets have one more, for the coordinates.
type footer struct {
	start                   int64 // offset of the footer in its file
	sizes, offsets          []uint64
	varSizes                []uint64
	varOffsets, varTileSize []uint64
	rtree                   uint64
}

// listKey identifies one of the lists of a fragment's metadata.
type listKey struct {
	kind list
	attr int
}

type list uint8

const (
	tileOffsets list = iota
	varOffsets
	varTileSizes
)

// footerSize returns the bytes of a footer, which depend on the numbers of attributes and
// dimensions only.
func (s *Schema) footerSize() int64 {
	n := int64(len(s.Attrs))
	return 4 + 1 + 1 + int64(2*len(s.Dims)*s.DimType.Size()) + 8 + 8 + 8*(n+1) + 8*n + 8 + 8*(n+1) + 8*n + 8*n
}

// openFragment reads the footer of a fragment's metadata.
func openFragment(ctx context.Context, st Store, uri, name string, s *Schema) (*Fragment, error) {
	f := &Fragment{Name: name, uri: uri, lists: map[listKey][]uint64{}}
	file := uri + "/" + metadataName
	r, err := st.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f.gap = uint64(max(source.Gap(r), 0))
	if err := f.readFooter(ctx, r, s); err != nil {
		return nil, fault.WithFile(err, file)
	}
	return f, nil
}

func (f *Fragment) readFooter(ctx context.Context, r source.Reader, s *Schema) error {
	const part = "footer"
	// The size of the footer follows from the schema, so that one read from the end of the file is
	// enough.
	size := s.footerSize()
	start := r.Size() - size
	if start < 0 {
		return fault.New(fault.Corrupt, part, 0, "the file has %d bytes, the footer alone takes %d", r.Size(), size)
	}
	b := make([]byte, size)
	if err := r.ReadAt(ctx, b, start); err != nil {
		return err
	}
	c := &cursor{b: b, part: part, base: start}
	if v := c.u32("version"); v != Version {
		return c.fault(fault.Unsupported, 0, "format version %d", v)
	}
	dense, null := c.u8("dense flag"), c.u8("null domain flag")
	if dense > 1 || null > 1 {
		c.fail(4, "dense flag %d, null domain flag %d", dense, null)
	}
	f.Dense = dense == 1
	at := c.off
	if null == 1 {
		c.fail(5, "it has no non-empty domain")
	}
	const what = "non-empty domain"
	if f.Dense {
		f.NonEmpty = c.box(s.DimType, len(s.Dims), what)
	} else if b := c.bounds(s.DimType, len(s.Dims), what); b != nil {
		for d, i := range b {
			if s.DimType.unbounded(i) {
				b[d] = s.Dims[d].Domain
			}
		}
		f.NonEmpty = b
	}
	tiles, last := c.u64("number of sparse tiles"), c.u64("cells of the last tile")
	n := uint64(len(s.Attrs))
	f.foot = footer{start: start}
	f.foot.sizes, f.foot.varSizes = c.u64s(n+1, "file sizes"), c.u64s(n, "var file sizes")
	list := c.off
	f.foot.rtree = c.u64("R-tree offset")
	f.foot.offsets, f.foot.varOffsets, f.foot.varTileSize = c.u64s(n+1, "offsets"), c.u64s(n, "offsets"),
		c.u64s(n, "offsets")
	if err := c.end(); err != nil {
		return err
	}
	for i := list; i < len(b); i += 8 {
		if o := binary.LittleEndian.Uint64(b[i:]); o > uint64(start) {
			return c.fault(fault.Corrupt, i, "a part of the metadata begins at %d, after the footer at %d", o, start)
		}
	}
	if f.Dense {
		return f.denseGrid(c, s, at, tiles, last)
	}
	return f.sparseTiles(c, s, at, tiles, last)
}

// denseGrid computes the tiles of a dense fragment: those that its non-empty domain intersects.
func (f *Fragment) denseGrid(c *cursor, s *Schema, at int, tiles, last uint64) error {
	switch {
	case !s.Dense:
		return c.fault(fault.Corrupt, 4, "a dense fragment in a sparse array")
	case tiles != 0 || last != uint64(s.tileCells):
		return c.fault(fault.Corrupt, at,
			"a dense fragment with %d sparse tiles and %d cells in the last one, of %d", tiles, last, s.tileCells)
	}
	f.Tiles, f.LastCells = 1, s.tileCells
	f.first, f.grid = make([]int64, len(s.Dims)), make([]int64, len(s.Dims))
	for d, i := range f.NonEmpty {
		dim := &s.Dims[d]
		// The non-empty domain may end outside the array's domain, but not outside the last tile of
		// the domain: the tile would not have a number otherwise.
		last := uint64(dim.Domain.Hi-dim.Domain.Lo) / dim.Extent
		if i.Lo < dim.Domain.Lo || i.Lo > dim.Domain.Hi || uint64(i.Hi-dim.Domain.Lo)/dim.Extent > last {
			return c.fault(fault.Corrupt, at,
				"the non-empty domain of dimension %d is [%s, %s], outside of the array's", d,
				s.DimType.FormatCoord(i.Lo), s.DimType.FormatCoord(i.Hi))
		}
		lo, hi := uint64(i.Lo-dim.Domain.Lo)/dim.Extent, uint64(i.Hi-dim.Domain.Lo)/dim.Extent
		// A tile takes at least 8 bytes in each file. More tiles than fit into a file would
		// overflow the arithmetic on offsets.
		if n := hi - lo; n >= math.MaxInt64/16 || f.Tiles > math.MaxInt64/16/int64(n+1) {
			return c.fault(fault.Corrupt, at, "the non-empty domain has more tiles than any file")
		}
		f.first[d], f.grid[d] = int64(lo), int64(hi-lo+1)
		f.Tiles *= f.grid[d]
	}
	return nil
}

func (f *Fragment) sparseTiles(c *cursor, s *Schema, at int, tiles, last uint64) error {
	at += 2 * len(s.Dims) * s.DimType.Size()
	switch {
	case tiles == 0 || tiles > math.MaxInt64/16:
		return c.fault(fault.Corrupt, at, "a sparse fragment of %d tiles", tiles)
	case last == 0 || last > s.Capacity:
		return c.fault(fault.Corrupt, at+8, "%d cells in the last tile, of %d", last, s.Capacity)
	case !s.Domain().covers(f.NonEmpty):
		return c.fault(fault.Corrupt, 6, "the non-empty domain is outside of the array's")
	}
	f.Tiles, f.LastCells = int64(tiles), int64(last)
	return nil
}

// cells returns the number of cells in a tile.
func (f *Fragment) cells(s *Schema, tile int64) uint64 {
	switch {
	case f.Dense:
		return uint64(s.tileCells)
	case tile == f.Tiles-1:
		return uint64(f.LastCells)
	}
	return s.Capacity
}

// local reports whether the fragment is in a local directory.
func (f *Fragment) local() bool { return !source.IsRemote(f.uri) }

// file returns the URI of an attribute's file. The number of attributes stands for the coordinates.
func (f *Fragment) file(s *Schema, attr int, variable bool) string {
	name := coordsName
	if attr < len(s.Attrs) {
		name = s.Attrs[attr].Name
		if k := source.Scheme(f.uri); k == "http" || k == "https" {
			name = url.PathEscape(name) // "%" or "?" in the name of an attribute would change the URL
		}
	}
	if variable {
		return f.uri + "/" + name + varSuffix
	}
	return f.uri + "/" + name + suffix
}

// hide sorts fragments into the order in which later ones win, and separates those that count from
// those that a consolidated fragment hides because their range of time lies inside its own.
func hide(all []*Fragment) (keep, hidden []*Fragment) {
	slices.SortFunc(all, func(a, b *Fragment) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name))
	})
	var wide []*Fragment
	for _, f := range all {
		if f.From != f.To {
			wide = append(wide, f)
		}
	}
	for _, f := range all {
		if slices.ContainsFunc(wide, f.hiddenBy) {
			hidden = append(hidden, f)
		} else {
			keep = append(keep, f)
		}
	}
	return keep, hidden
}

// hiddenBy reports whether g replaces f. Of two fragments with the same range the one with the
// smaller name counts, as in libtiledb 1.6.3.
func (f *Fragment) hiddenBy(g *Fragment) bool {
	if f == g || f.From < g.From || f.To > g.To {
		return false
	}
	return f.From != g.From || f.To != g.To || f.Name > g.Name
}

// path returns the path of a local fragment.
func (f *Fragment) path() string { return source.LocalPath(f.uri) }

// newDense returns a dense fragment of a box, with its grid of tiles.
func (s *Schema) newDense(name string, b Box) (*Fragment, error) {
	f := &Fragment{Name: name, Dense: true, NonEmpty: b}
	err := f.denseGrid(&cursor{part: "sub-array", base: fault.NoOffset}, s, 0, 0, uint64(s.tileCells))
	return f, err
}
