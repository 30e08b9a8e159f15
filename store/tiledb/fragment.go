package tiledb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
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

	// Version is the format version.
	Version uint32

	uri    string
	x      formatTraits
	schema *Schema // that it was written with
	attrs  []int   // its number of each attribute of the array, or -1 if it does not have it
	gap    int64   // of its files: see source.Gap
	foot   footer
	first  []int64 // of a dense fragment: the index of its first tile along each dimension
	grid   []int64 // and the number of its tiles along each

	// Several readers read these once.
	lists keylock.Values[listKey, []uint64]
	tree  keylock.Value[*rtree]
}

// footer is the end of a fragment's metadata file, with the offsets of the parts in front of it. Its lists have an
// entry for each attribute of the fragment's schema and one for the coordinates of formats 3 and 4; from format 5 on
// also one for each dimension, and for the times of cells if the fragment has them. In formats 3 and 4, lists about
// variable-length data have none for the coordinates.
type footer struct {
	start          int64              // offset of the footer in its file
	sizes          [numLists][]uint64 // of the files whose tiles a list locates
	offsets        [numLists][]uint64 // of each list
	rtree          uint64
	times, deletes bool // cells have times, and times at which they were deleted
}

// listKey identifies one of the lists of a fragment's metadata.
type listKey struct {
	kind listKind
	at   int // the place of its column in the footer
}

type listKind uint8

const (
	tileOffsets listKind = iota
	varOffsets
	varTileSizes
	nullOffsets
	numLists
)

// lists has the names of the lists in errors, and how the names of the files end whose tiles they locate.
var lists = [numLists]struct{ name, suffix string }{tileOffsets: {"tile offsets", ".tdb"},
	varOffsets: {"var tile offsets", "_var.tdb"}, nullOffsets: {"validity tile offsets", "_validity.tdb"},
	varTileSizes: {name: "var tile sizes"}}

// has reports whether the fragment has an attribute of the array.
func (f *Fragment) has(attr int) bool { return f.attrs[attr] >= 0 }

// elem describes cells of n values to the filters of the fragment's format.
func (f *Fragment) elem(t Datatype, n int) filter.Elem {
	elem := t.elem(n)
	if elem.Kind == filter.Time && f.x.wholeTimes {
		elem.Kind = filter.Signed
	}
	return elem
}

// openFragment reads the footer of a fragment's metadata.
func (a *Array) openFragment(ctx context.Context, uri string, d fragmentDir) (*Fragment, error) {
	fragment := &Fragment{Name: d.name, From: d.from, To: d.to, Version: d.version, uri: uri}
	if d.version == 0 {
		fragment.Version = Version
	}
	known := false
	if fragment.x, known = formatOf(fragment.Version); !known {
		return nil, fault.WithFile(errVersion("fragment name", fault.NoOffset, uint64(fragment.Version)), uri)
	}
	file := uri + "/" + metadataName
	reader, err := a.store.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	fragment.gap = max(source.Gap(reader), 0)
	if err := a.readFooter(ctx, reader, fragment); err != nil {
		return nil, fault.WithFile(err, file)
	}
	return fragment, nil
}

// denseGrid computes the tiles of a dense fragment: those that its non-empty domain intersects.
func (f *Fragment) denseGrid(c *byteCursor, s *Schema, at int, tiles, last uint64) error {
	switch {
	case !s.Dense:
		return c.fault(fault.Corrupt, at, "a dense fragment in a sparse array")
	case tiles != 0 || last != uint64(s.tileCells) && !f.x.dimTypes:
		return c.fault(fault.Corrupt, at,
			"a dense fragment with %d sparse tiles and %d cells in the last one, of %d", tiles, last, s.tileCells)
	}
	f.Tiles, f.LastCells = 1, s.tileCells
	f.first, f.grid = make([]int64, len(s.Dims)), make([]int64, len(s.Dims))
	for d, interval := range f.NonEmpty {
		dim := &s.Dims[d]
		// The non-empty domain may end outside the array's domain, but not outside the last tile of
		// the domain: the tile would not have a number otherwise.
		last := uint64(dim.Domain.Hi-dim.Domain.Lo) / dim.Extent
		if interval.Lo < dim.Domain.Lo || interval.Lo > dim.Domain.Hi ||
			uint64(interval.Hi-dim.Domain.Lo)/dim.Extent > last {
			return c.fault(fault.Corrupt, at,
				"the non-empty domain of dimension %d is [%s, %s], outside of the array's", d,
				s.DimType.FormatCoord(interval.Lo), s.DimType.FormatCoord(interval.Hi))
		}
		lo, hi := uint64(interval.Lo-dim.Domain.Lo)/dim.Extent, uint64(interval.Hi-dim.Domain.Lo)/dim.Extent
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

func (f *Fragment) sparseTiles(c *byteCursor, s *Schema, at int, tiles, last uint64) error {
	switch {
	case tiles == 0 || tiles > math.MaxInt64/16:
		return c.fault(fault.Corrupt, at, "a sparse fragment of %d tiles", tiles)
	case last == 0 || last > s.Capacity:
		return c.fault(fault.Corrupt, at+8, "%d cells in the last tile, of %d", last, s.Capacity)
	case !s.Domain().covers(f.NonEmpty):
		return c.fault(fault.Corrupt, at, "the non-empty domain is outside of the array's")
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

// file returns the URI of a file of a column.
func (f *Fragment) file(stem string, kind listKind) string {
	if source.IsWeb(f.uri) {
		// A "%" or "?" in the name of an attribute would change the URL.
		stem = url.PathEscape(stem)
	}
	return f.uri + "/" + stem + lists[kind].suffix
}

// columnStorage says where and how a column is stored in a fragment.
type columnStorage struct {
	at       int    // its place in the lists of the footer, -1 if the fragment does not have it
	stem     string // the beginning of the names of its files
	what     string // in errors
	t        Datatype
	p        filter.Pipeline
	e        filter.Elem
	together bool // variable-length values have the offsets of their cells in the same tiles
}

// stored returns how a column of the array is stored.
func (f *Fragment) stored(s *Schema, column int) columnStorage {
	schema := f.schema
	stem := func(letter string, number int, name string) string {
		switch {
		case f.x.numbered:
			return letter + strconv.Itoa(number)
		case f.x.escaped:
			return escapeName(name)
		}
		return name
	}
	if column < len(f.attrs) {
		index := f.attrs[column]
		if index < 0 {
			return columnStorage{at: -1}
		}
		attr := &schema.Attrs[index]
		place := columnStorage{at: index, stem: stem("a", index, attr.Name), what: "attribute " + attr.Name,
			t: attr.Type, p: attr.Pipeline, e: f.elem(attr.Type, int(attr.Values))}
		if attr.Var() {
			place.e = f.elem(attr.Type, 1)
			place.together = attr.Type.text() && attr.Pipeline.HoldsOffsets(f.Version, attr.Type == StringASCII)
		}
		return place
	}
	d := column - len(f.attrs) - 1
	place := columnStorage{at: len(schema.Attrs) + 1 + d, p: schema.Coords}
	switch d {
	case -1:
		place.stem, place.what, place.t, place.e = coordsName, "coordinates", s.DimType, s.DimType.elem(len(s.Dims))
		place.e.Alt = place.e.Size
		return place
	case len(schema.Dims):
		place.stem, place.what, place.t, place.e = "t", "times", Uint64, f.elem(Uint64, 1)
		return place
	}
	dim := &schema.Dims[d]
	place.stem, place.what, place.t = stem("d", d, dim.Name), "dimension "+dim.Name, s.Type(d)
	place.e = f.elem(place.t, 1)
	if form, _ := formatOf(schema.version()); len(dim.Pipeline.Filters) > 0 || !form.dimTypes {
		place.p = dim.Pipeline
	}
	place.together = place.t == StringASCII && place.p.HoldsOffsets(f.Version, true)
	return place
}

// escapeName writes the characters as %XX that format 8 does not have in the names of files.
func escapeName(name string) string {
	var escaped strings.Builder
	for _, char := range []byte(name) {
		if strings.IndexByte("!#$%&'()*+,/:;=?@[]\"<>\\|", char) >= 0 {
			fmt.Fprintf(&escaped, "%%%02X", char)
		} else {
			escaped.WriteByte(char)
		}
	}
	return escaped.String()
}

// hide sorts fragments into the order in which later ones win, and separates those that count from
// those that are hidden: in formats 3 and 4, by a consolidated fragment whose range of time has
// theirs inside; later, by a vacuum file that lists them and counts itself.
func (a *Array) hide(all []*Fragment, vacuums []vacuumFile) (keep, hidden []*Fragment) {
	slices.SortFunc(all, func(a, b *Fragment) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name))
	})
	replaced := map[string]bool{}
	for _, vacuum := range vacuums {
		if a.counts(vacuum.nameStamp) {
			for _, name := range vacuum.names {
				replaced[name] = true
			}
		}
	}
	var wide []*Fragment
	for _, fragment := range all {
		if fragment.From != fragment.To && !fragment.x.committed {
			wide = append(wide, fragment)
		}
	}
	for _, fragment := range all {
		if replaced[fragment.Name] || !fragment.x.committed && slices.ContainsFunc(wide, fragment.hiddenBy) {
			hidden = append(hidden, fragment)
		} else {
			keep = append(keep, fragment)
		}
	}
	return keep, hidden
}

// counts reports whether a fragment with a range of time counts. A consolidated fragment of a sparse array has the time
// of each cell from format 15 on (fragments may have them in 14): then a part of its range is enough.
func (a *Array) counts(s nameStamp) bool {
	if x, _ := formatOf(s.version); x.deletes && !a.Schema.Dense {
		return a.o.touches(s.from, s.to)
	}
	return a.o.includes(s.from, s.to)
}

// hiddenBy reports whether g replaces f. Of two fragments with the same range the one with the
// smaller name counts, as in libtiledb 1.6.3.
func (f *Fragment) hiddenBy(g *Fragment) bool {
	if f == g || f.From < g.From || f.To > g.To {
		return false
	}
	return f.From != g.From || f.To != g.To || f.Name > g.Name
}
