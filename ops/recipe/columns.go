package recipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// Columns that are computed.
const (
	columnSource    = "chaski:source" // the id of the chip's sample in the source
	columnWindow    = "chaski:window" // y, x, height, width in pixels of the first field's raster
	columnSplit     = "split"
	columnCRS       = "stac:crs"
	columnShape     = "stac:tensor_shape"
	columnTransform = "stac:geotransform"
	columnCentroid  = "stac:centroid"
	columnStats     = "geotiff:stats"
)

var computed = []string{columnSource, columnWindow, columnSplit, columnCRS, columnShape, columnTransform,
	columnCentroid, columnStats}

// table has what the columns are made of, with a row for each chip.
type table struct {
	sources []string
	rows    []int
	splits  []string
	lonlats [][2]float64
	files   [][]facts  // of each field
	bands   [][]string // of each field, those of the first chip
}

// facts is a file without its bytes.
type facts struct {
	window    [4]int64
	shape     [3]int
	epsg      int
	placed    bool
	transform [6]float64
	stats     [][]float64
}

func (t *table) len() int { return len(t.sources) }

// add adds a chip.
func (t *table) add(c *chip) {
	t.sources, t.rows, t.splits = append(t.sources, c.source), append(t.rows, int(c.row)), append(t.splits, c.split)
	t.lonlats = append(t.lonlats, c.lonlat)
	if t.files == nil {
		t.files = make([][]facts, len(c.files))
		for _, f := range c.files {
			t.bands = append(t.bands, f.bands)
		}
	}
	for k, f := range c.files {
		w := f.window
		t.files[k] = append(t.files[k], facts{[4]int64{int64(w.Y), int64(w.X), int64(w.H), int64(w.W)}, f.shape,
			f.geo.EPSG, f.geo.HasTransform, f.geo.Transform, f.stats})
	}
}

// choose leaves the columns of the source that the recipe names.
func (m *maker) choose() error {
	if len(m.recipe.Columns) == 0 {
		return nil
	}
	var names []string
	for _, name := range m.recipe.Columns {
		switch {
		case name == "*":
			for _, c := range m.data.Columns() {
				if !slices.Contains(names, c.Name) && !m.own(c.Name) {
					names = append(names, c.Name)
				}
			}
		case m.data.Index(name) < 0:
			return fault.WithFile(fault.New(fault.NotFound, "column "+name, fault.NoOffset,
				"the source has no such column"), m.recipe.Source)
		case m.own(name):
			return fmt.Errorf("recipe: columns has %q, which the container has itself", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	m.names = names
	return nil
}

// own reports whether a column of the source is one that the container computes, or that describes the source's files.
func (m *maker) own(name string) bool {
	switch name {
	case "id", "type", "path", "uri", "tortilla:id", "tortilla:offset", "tortilla:length", "chaski:index",
		"rumi:header", "taco:header":
		return true
	case columnSplit:
		return m.recipe.Split != nil
	}
	return strings.HasPrefix(name, "internal:") || slices.Contains(computed, name)
}

// columns returns the columns of the levels.
func (m *maker) columns(ctx context.Context) ([]*tables.Table, error) {
	t := &m.table
	one := len(t.files) == 1
	top := &columns{}
	if err := m.carried(ctx, top); err != nil {
		return nil, err
	}
	top.add(columnSource, tables.NewStrings(t.sources, nil))
	if m.recipe.Windows.Kind != Whole {
		top.add(columnWindow, listOf(integers, t.len(), func(i int) []int64 { return t.files[0][i].window[:] }))
	}
	if m.recipe.Split != nil {
		top.add(columnSplit, tables.NewStrings(t.splits, nil))
	}
	top.stac(t.len(), func(i int) *facts { return &t.files[0][i] })
	top.add(columnCentroid, centroids(t.lonlats))
	if one {
		if *m.recipe.Statistics {
			top.stats(t.len(), func(i int) *facts { return &t.files[0][i] })
		}
		return []*tables.Table{top.table()}, nil
	}
	n := len(t.files)
	at := func(i int) *facts { return &t.files[i%n][i/n] }
	below := &columns{}
	below.stac(n*t.len(), at)
	if *m.recipe.Statistics {
		below.stats(n*t.len(), at)
	}
	return []*tables.Table{top.table(), below.table()}, nil
}

// carried adds the columns of the source.
func (m *maker) carried(ctx context.Context, to *columns) error {
	for _, name := range m.names {
		v, err := m.data.Take(m.table.rows).Column(ctx, name)
		if err != nil {
			return err
		}
		to.add(name, v)
	}
	return nil
}

// columns collects columns.
type columns struct {
	names   []string
	vectors []*tables.Vector
}

func (c *columns) add(name string, v *tables.Vector) {
	c.names, c.vectors = append(c.names, name), append(c.vectors, v)
}

func (c *columns) table() *tables.Table { return tables.FromVectors(c.names, c.vectors) }

// stac adds the columns of STAC of n rasters.
func (c *columns) stac(n int, of func(i int) *facts) {
	crs, none := make([]string, n), make([]bool, n)
	for i := range n {
		if crs[i] = fmt.Sprintf("EPSG:%d", of(i).epsg); of(i).epsg == 0 {
			crs[i], none[i] = "", true
		}
	}
	c.add(columnCRS, tables.NewStrings(crs, none))
	c.add(columnShape, listOf(integers, n, func(i int) []int64 {
		s := of(i).shape
		return []int64{int64(s[0]), int64(s[1]), int64(s[2])}
	}))
	c.add(columnTransform, listOf(floats, n, func(i int) []float64 {
		if !of(i).placed {
			return nil
		}
		return of(i).transform[:]
	}))
}

// stats adds the column geotiff:stats of n rasters.
func (c *columns) stats(n int, of func(i int) *facts) {
	var bands [][]float64
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		none[i] = of(i).stats == nil
		bands = append(bands, of(i).stats...)
		offs = append(offs, uint32(len(bands)))
	}
	each := listOf(float32s, len(bands), func(i int) []float64 { return bands[i] })
	c.add(columnStats, tables.NewList(each, offs, none))
}

var (
	int64s   = tables.Type{Kind: tables.Int64, Bits: 64}
	float64s = tables.Type{Kind: tables.Float64, Bits: 64}
	float32s = func(v []float64) *tables.Vector {
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, v, nil)
	}
	integers = func(v []int64) *tables.Vector { return tables.NewInts(int64s, v, nil) }
	floats   = func(v []float64) *tables.Vector { return tables.NewFloats(float64s, v, nil) }
)

// listOf returns n lists; a nil one is null.
func listOf[T any](of func([]T) *tables.Vector, n int, values func(i int) []T) *tables.Vector {
	var all []T
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		v := values(i)
		none[i] = v == nil
		all = append(all, v...)
		offs = append(offs, uint32(len(all)))
	}
	return tables.NewList(of(all), offs, none)
}

// centroids returns points as WKB: little-endian, type 1.
func centroids(points [][2]float64) *tables.Vector {
	var data []byte
	offs, none := make([]uint32, 1, len(points)+1), make([]bool, len(points))
	for i, p := range points {
		if none[i] = math.IsNaN(p[0] + p[1]); !none[i] {
			data = append(data, 1, 1, 0, 0, 0)
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(p[0]))
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(p[1]))
		}
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(tables.Type{Kind: tables.Binary}, data, offs, none)
}
