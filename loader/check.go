package loader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// BadSample is a row of a dataset that cannot be read.
type BadSample struct {
	Source  string // the name of the source; empty if there is one
	Dataset string // the path of its table
	Row     int64  // of the table
	ID      string // see catalog.Table.ID
	Err     error
}

// CheckOptions say how Check works.
type CheckOptions struct {
	// MaxBad bounds the bad samples that are listed. Default DefaultMaxBad.
	MaxBad int
	// Progress is called after every sample, from one goroutine at a time.
	Progress func(done, total int64)
}

// DefaultMaxBad is the default of CheckOptions.MaxBad.
const DefaultMaxBad = 100_000

// CheckReport is what Check found.
type CheckReport struct {
	Samples int64       // rows that were read
	Bad     int64       // rows that cannot be read
	List    []BadSample // the first bad rows, by source and row
}

// Check reads every row that the spec selects, once and completely, not only the windows of a run: the
// picked bands with their masks, the metadata columns, and the shapes on it. It ignores other
// rows. It returns an error only if a sample is not to blame, such as an error of the network.
func (e *Engine) Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	o.MaxBad = cmp.Or(o.MaxBad, DefaultMaxBad)
	running := &check{engine: e, options: o}
	total := int64(0)
	for _, set := range e.sets {
		n := set.rows.Len(set.table.N)
		total += n
		running.ends = append(running.ends, total)
	}
	visits := func(r *pixels.Reader) func(context.Context, int64) error {
		return func(ctx context.Context, i int64) error { return running.visit(ctx, r, i) }
	}
	if err := pixels.Sweep(ctx, e.options, e.remote(), total, o.Progress, visits); err != nil {
		return nil, err
	}
	slices.SortFunc(running.list, func(a, b badOfSet) int {
		return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.Row, b.Row))
	})
	report := &CheckReport{Samples: total, Bad: int64(running.bad)}
	for _, b := range running.list[:min(len(running.list), o.MaxBad)] {
		report.List = append(report.List, b.BadSample)
	}
	return report, nil
}

// check is a Check in progress.
type check struct {
	engine  *Engine
	options CheckOptions
	ends    []int64 // for each source, the number of rows up to its end

	mu   sync.Mutex // guards bad and list
	bad  int
	list []badOfSet
}

type badOfSet struct {
	set int
	BadSample
}

// visit checks row i of all sources together.
func (c *check) visit(ctx context.Context, r *pixels.Reader, i int64) error {
	set, _ := slices.BinarySearch(c.ends, i+1)
	d := c.engine.sets[set]
	if set > 0 {
		i -= c.ends[set-1]
	}
	row := d.rows.At(i)
	err := c.row(ctx, r, d, row)
	if err == nil || fault.KindOf(err) == 0 {
		return err
	}
	sample, _ := d.table.ID(ctx, row) // without an id, the number of the row names it
	c.mu.Lock()
	defer c.mu.Unlock()
	// If there are more than MaxBad, these are roughly the first, because the workers finish in any
	// order.
	if c.bad++; len(c.list) < c.options.MaxBad {
		c.list = append(c.list, badOfSet{set, BadSample{d.name, d.source.Source, row, sample, err}})
	}
	return nil
}

// row reads a row completely. Of several errors it returns the one that a run would report.
func (c *check) row(ctx context.Context, r *pixels.Reader, d *dataset, row int64) error {
	var worst error
	note := func(err error) (goOn bool) {
		if err != nil && outranks(err, worst) {
			worst = err
		}
		return err == nil || fault.KindOf(err) != 0
	}
	draw := shuffle.Draw{Dataset: slices.Index(c.engine.leaves, d), Row: row}
	for i, f := range d.rasters {
		if d.table.Lacks(f.TableColumn, row) {
			continue
		}
		for step := range d.files.count(i) {
			lacks := d.files.padding(i, step, row) || d.table.Lacks(d.rasters[i].TableColumn, row)
			if !lacks && !note(c.asset(ctx, r, d, &draw, i, step)) {
				return worst
			}
		}
	}
	for _, v := range d.values {
		_, err := v.read(ctx, d.table, row)
		if !note(err) {
			return worst
		}
	}
	if len(d.vectors) > 0 {
		_, lead := d.leads(row)
		asset, err := d.table.Fields[lead].Asset(ctx, row)
		for i := 0; i < len(d.vectors) && err == nil; i++ {
			err = d.vectors[i].Check(ctx, row, &asset)
		}
		note(err)
	}
	return worst
}

// asset reads a step of a raster field of a row completely.
func (c *check) asset(ctx context.Context, r *pixels.Reader, d *dataset, draw *shuffle.Draw, field, step int) error {
	raster := d.rasters[field]
	asset, err := d.table.Fields[d.column(field, step)].Asset(ctx, draw.Row)
	if errors.Is(err, rows.ErrLacks) {
		return nil
	}
	if err != nil {
		return err
	}
	// With windows on the ground, the places of all scenes would be checked twice: opening has done it.
	if d.ground == nil {
		for view, d := range d.ofViews() {
			drawn := c.engine.plan.View(draw, view)
			if _, err := c.engine.windowOf(ctx, d, &drawn, field, draw.Row, asset); err != nil {
				return fault.WithFile(err, asset.URI)
			}
		}
	}
	read := func(a catalog.Asset, bands []int) error {
		whole := chunk.Box{B1: a.Index.Bands, Y1: a.Index.Height, X1: a.Index.Width}
		return r.Read(ctx, a, whole, bands, pixels.Nowhere{}, pixels.Nowhere{})
	}
	if asset.Parts != nil {
		return raster.EachPart(&asset, func(k int, part *pixels.Raster, _ *pixels.Lay) error {
			return read(asset.Parts[k], part.PlanesOf(nil, asset.Parts[k].Index).Picked)
		})
	}
	picked, err := d.names.bandsOf(ctx, raster, asset)
	if err != nil {
		return err
	}
	return read(asset, picked.Picked)
}
