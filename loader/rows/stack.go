package rows

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// stack says which fields of the table below a field is made of.
type stack struct {
	first, n int // from first on; n is 0 for a field that is not a stack
	grid     spec.Grid
	table    bool // a look-up table has values for its bands, which are mostly masks: each may lack alone
}

// flatten puts the parts of stacked fields in their place. Without one it returns the fields, and nil.
func flatten(fields []spec.Field) ([]spec.Field, []stack) {
	var flat []spec.Field
	stacks := make([]stack, len(fields))
	some := false
	for i := range fields {
		field := &fields[i]
		stacks[i].first = len(flat)
		if !field.Stacked() {
			flat = append(flat, *field)
			continue
		}
		parts := field.Parts()
		stacks[i].n, stacks[i].grid, some = len(parts), field.Grid, true
		stacks[i].table = field.LUT != nil
		flat = append(flat, parts...)
	}
	if !some {
		return fields, nil
	}
	return flat, stacks
}

// stack joins the fields of a table to the stacks that flatten has found. flat are its fields so far. The sizes and
// places of stacks are known where they have the grid of the first raster.
func (t *Table) stack(flat []spec.Field, stacks []stack) error {
	below, fields := t.Fields, make([]Field, len(stacks))
	for i, part := range stacks {
		parts := below[part.first:][:part.n]
		kind, other := numbersIn(parts)
		switch {
		case kind == 0 || other >= 0 && below[part.first+other].Kind == catalog.Raster:
		case other >= 0:
			name := &flat[part.first+other]
			return InField(name.Name, fault.New(fault.Unsupported, "column "+name.Column,
				"holds %ss, and other columns of the field numbers", below[part.first+other].Kind))
		default:
			made := &stacked{parts: parts, kind: kind, mayLack: flat[part.first].MayLack()}
			fields[i] = Field{Kind: kind | catalog.List, values: made}
			continue
		}
		for place := part.first; place < part.first+part.n; place++ {
			if err := flat[place].CheckKind(below[place].Kind); err != nil {
				return InField(flat[place].Name, err)
			}
			if below[place].Steps != nil {
				return InField(flat[place].Name, fault.New(fault.Unsupported, "asset",
					"it has steps of time, and the rasters of a stack have none"))
			}
		}
		fields[i] = below[part.first]
		if part.n > 0 {
			fields[i].values, fields[i].changes = &stacked{parts: parts, grid: part.grid, table: part.table}, nil
			fields[i].lacks = lacking(parts, part.table)
		}
		if part.grid != 0 || part.table && fields[i].lacks != nil {
			fields[i].Size, fields[i].unsized, t.misplaced = nil, true, true
		}
	}
	for i := range stacks {
		if steps := fields[i].Steps; steps != nil {
			moved := &Steps{of: steps.of, number: steps.number}
			for _, number := range steps.Fields {
				moved.Fields = append(moved.Fields, len(fields))
				fields = append(fields, below[number])
			}
			fields[i].Steps = moved
		}
	}
	t.Fields = fields
	return nil
}

// numbersIn returns the kind of the numbers that columns have together, 0 for an empty list, and the first column
// that lacks numbers, or -1.
func numbersIn(fields []Field) (kind catalog.Kind, other int) {
	other = -1
	for i, field := range fields {
		switch {
		case field.Kind == catalog.Int || field.Kind == catalog.Float:
			kind = max(kind, field.Kind)
		case other < 0:
			other = i
		}
	}
	return kind, other
}

// lacking notes the rows in which one of some fields lacks, or all of them; nil if none may.
func lacking(fields []Field, all bool) (lacks []bool) {
	for _, field := range fields {
		if lacks == nil {
			lacks = slices.Clone(field.lacks)
			continue
		}
		for row, is := range field.lacks {
			if lacks[row] == all {
				lacks[row] = is
			}
		}
	}
	return lacks
}

// stacked are the values of a field that is a stack of rasters, or a list of the numbers of several columns.
type stacked struct {
	parts   []Field
	grid    spec.Grid    // of rasters
	table   bool         // the pixels of a raster that lacks are nodata
	kind    catalog.Kind // of numbers, else 0
	mayLack bool         // a list is null where one of its numbers is
}

// Asset implements Values: it returns the stack of the rasters that the parts have in a row.
func (s *stacked) Asset(ctx context.Context, _ int, row int64) (catalog.Asset, error) {
	assets := make([]catalog.Asset, len(s.parts))
	var lead *catalog.Asset
	for k := range assets {
		part, err := &s.parts[k], error(ErrLacks)
		if !s.table || part.lacks == nil || !part.lacks[row] {
			assets[k], err = part.Asset(ctx, row)
		}
		switch {
		case err == nil && lead == nil:
			lead = &assets[k]
		case err != nil && !(s.table && errors.Is(err, ErrLacks)):
			return catalog.Asset{}, err
		}
	}
	if lead == nil {
		return catalog.Asset{}, ErrLacks
	}
	for k := range assets {
		if assets[k].Index == nil {
			assets[k] = catalog.Asset{URI: lead.URI, Member: lead.Member, Place: lead.Place, Axes: lead.Axes,
				Bytes: []byte{0}}
			if assets[k].Index = absent(lead.Index); assets[k].Index == nil {
				return *lead, lead.Fault(fault.New(fault.Limit, "asset", "over %d chunks, beside a raster that lacks",
					maxAbsent))
			}
		}
	}
	return newStack(assets, s.grid)
}

// maxAbsent bounds the chunks of a raster that lacks: of an array, no file has them.
const maxAbsent = 1 << 20

// absent returns the index of a raster like another one, whose pixels are all nodata: no chunk of it was written. It is
// nil if these are over maxAbsent.
func absent(of *chunk.Index) *chunk.Index {
	x := &chunk.Index{DType: of.DType, Bands: of.DataBands(), Height: of.Height, Width: of.Width, ChunkB: 1,
		ChunkH: of.ChunkH, ChunkW: of.ChunkW, Predictor: chunk.NoPredictor, NoData: new(float64)}
	if x.Groups() > maxAbsent || x.Across() > maxAbsent/x.Groups() || x.Down() > maxAbsent/x.Groups()/x.Across() {
		return nil
	}
	x.Ranges = make([]chunk.Range, x.Across()*x.Down()*x.Groups())
	return x
}

// Value implements Values: it returns the list of the numbers that the parts have in a row or, of rasters, the path of
// the first.
func (s *stacked) Value(ctx context.Context, _ int, row int64) (catalog.Value, error) {
	if s.kind == 0 {
		return s.parts[0].Value(ctx, row)
	}
	list := make([]catalog.Value, len(s.parts))
	for k := range s.parts {
		part := &s.parts[k]
		var err error
		if list[k], err = part.Value(ctx, row); err != nil {
			return catalog.Value{}, err
		}
		if s.mayLack && list[k].Null {
			return catalog.Value{Null: true}, nil
		}
		if part.Kind == catalog.Int && s.kind == catalog.Float {
			list[k].Float = float64(list[k].Int)
		}
	}
	return catalog.Value{List: list}, nil
}

// newStack returns the stack of some rasters on a grid. It fails with kind unsupported if a raster has other steps of
// time than the first one, or lies where the grid has no size in metres.
func newStack(parts []catalog.Asset, grid spec.Grid) (catalog.Asset, error) {
	lead := &parts[0]
	index := &chunk.Index{DType: lead.Index.DType, Height: lead.Index.Height, Width: lead.Index.Width, ChunkB: 1,
		ChunkH: lead.Index.ChunkH, ChunkW: lead.Index.ChunkW}
	asset := catalog.Asset{URI: lead.URI, Member: lead.Member, Index: index, Place: lead.Place, Parts: parts}
	for k := range parts {
		part := &parts[k]
		index.Bands += part.Index.Steps() * part.Index.DataBands()
		switch steps := part.Index.Steps(); {
		case steps != lead.Index.Steps():
			return asset, part.Fault(fault.New(fault.Unsupported, "asset", "it has %d steps of time, and the first "+
				"raster of its stack has %d", steps, lead.Index.Steps()))
		case steps > 1 && (part.Index.Alpha || part.Index.Masking() != nil):
			return asset, part.Fault(fault.New(fault.Unsupported, "asset", "it has %d steps of time and a mask: make "+
				"it a field of its own", steps))
		}
		index.Times = max(index.Times, part.Index.Times)
		if index.Bands > chunk.MaxBands {
			return asset, part.Fault(fault.New(fault.Limit, "asset", "the stack has over %d bands", chunk.MaxBands))
		}
	}
	if grid == 0 {
		return asset, nil
	}
	return asset, lead.Fault(regrid(&asset, float64(grid)))
}

// maxSide bounds the sides of a grid that a raster does not have itself: 2^24 pixels of 10 m are four times around
// the Earth.
const maxSide = 1 << 24

// regrid gives a stack pixels of a size in metres, from the upper left corner of its first raster. The last row and
// column reach past it, or end before it, by up to half a pixel.
func regrid(a *catalog.Asset, metres float64) error {
	fail := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "grid", format, args...)
	}
	if err := a.Unplaced("a grid in metres needs"); err != nil {
		return err
	}
	system, ok := crs.ByCode(a.Place.EPSG)
	switch {
	case !ok:
		return fail("%v m: its CRS, EPSG:%d, is not known", metres, a.Place.EPSG)
	case system.Geographic() || system.Unit() != 1:
		return fail("%v m: the coordinates of its CRS, EPSG:%d, are not in metres", metres, a.Place.EPSG)
	}
	index := a.Index
	transform := a.Place.Transform(index.Height, index.Width)
	down, across := math.Hypot(transform[2], transform[5]), math.Hypot(transform[1], transform[4]) // sizes of a pixel
	height, width := math.Round(down*float64(index.Height)/metres), math.Round(across*float64(index.Width)/metres)
	if !(height >= 1 && width >= 1 && height <= maxSide && width <= maxSide) {
		return fail("%v m: a grid of %v by %v pixels; its sides must have 1 to %d", metres, height, width, maxSide)
	}
	chunkSide := func(n int, size float64) int {
		return max(int(math.Min(math.Round(float64(n)*size/metres), maxSide)), 1)
	}
	index.ChunkH, index.ChunkW = chunkSide(index.ChunkH, down), chunkSide(index.ChunkW, across)
	index.Height, index.Width = int(height), int(width)
	for _, i := range [...]int{1, 4} {
		transform[i], transform[i+1] = transform[i]*metres/across, transform[i+1]*metres/down
	}
	a.Place = catalog.NewPlace(a.Place.EPSG, &transform, index.Height, index.Width)
	return nil
}
