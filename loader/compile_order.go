package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// compile resolves everything that is the same for all samples. batch is as for addSource.
func (d *dataset) compile(ctx context.Context, e *Engine, batch int64) (shuffle.Source, error) {
	var empty shuffle.Source
	rows, err := rows.Selected(ctx, d.table, d.source, e.options)
	if err != nil {
		return empty, err
	}
	if rows != nil {
		d.digestRows("rows", rows)
	}
	d.rows = rows
	if err := d.compileFields(ctx, e.spec.BadSamples); err != nil {
		return empty, err
	}
	d.remarks.log(e, d)
	if err := d.checkGround(ctx, e); err != nil {
		return empty, err
	}
	for _, v := range d.vectors {
		if err := v.Own(ctx, d.table, d.rasters[0].TableColumn, rows); err != nil {
			return empty, fault.WithPart(err, "field "+v.Name, fault.NoOffset)
		}
	}
	if d.sampler.MaxNoData != nil {
		if rows, err = d.openCoverage(ctx, e); err != nil {
			return empty, err
		}
	}
	groups := [][]uint32{rows}
	items := shuffle.Dataset{Items: d.table.N, Rows: rows}
	if items.Transforms, err = e.spec.Elements(); err != nil {
		return empty, err
	}
	if items.Views, err = d.compileViews(); err != nil {
		return empty, err
	}
	for _, view := range d.ofViews() {
		if err := view.checkSquare(items.Transforms, e.spec.Augment); err != nil {
			return empty, err
		}
	}
	switch {
	case d.source.Time != nil:
		if err = d.compileSeries(ctx, &items, rows); err == nil && d.steps > 1 && items.Series.Single() {
			e.options.Logger.Warn("no series has two rows: key is the column whose value all rows of a series have, "+
				"and order says their time", "source", d.source.Source, "key", d.source.Time.Key,
				"order", d.source.Time.Order)
		}
	case d.source.Strata != nil:
		groups, err = d.compileStrata(ctx, rows)
	}
	if err != nil {
		return empty, err
	}
	d.leaves = len(groups)
	if err := d.compileSampler(ctx, e, &items.Sampler); err != nil {
		return empty, err
	}
	if d.source.Strata == nil {
		e.leaves = append(e.leaves, d)
		return d.leaf(ctx, e, items)
	}
	return d.mixture(ctx, e, items, groups, batch)
}

// checkSquare checks that windows are square if transforms swap rows and columns.
func (d *dataset) checkSquare(transforms shuffle.Elements, augment string) error {
	if !transforms.Swaps() {
		return nil
	}
	if d.sampler.Height != d.sampler.Width {
		return fmt.Errorf("spec: augment %q needs square windows, not %d by %d pixels", augment, d.sampler.Height,
			d.sampler.Width)
	}
	for _, r := range d.rasters {
		if r.H != r.W {
			return fmt.Errorf("spec: augment %q needs square windows, and those of field %q have %d by %d pixels",
				augment, r.Name, r.H, r.W)
		}
	}
	return nil
}

// compileSeries makes sequences of rows the items of the dataset. It returns a fault of kind not
// found if all rows lack a sequence.
func (d *dataset) compileSeries(ctx context.Context, one *shuffle.Dataset, rs []uint32) (err error) {
	if one.Series, err = rows.SeriesOf(ctx, d.table, d.source.Time, rs); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	one.Rows, d.steps = nil, d.source.Time.Length
	if one.Series.Len() == 0 {
		return fault.WithFile(fault.New(fault.NotFound, "dataset", "no sequence of %d steps", d.steps),
			d.source.Source)
	}
	d.digestSeries(one.Series)
	for i := range d.fields {
		if field := &d.fields[i]; field.Timeless() {
			if err := d.checkTimeless(ctx, field, &d.table.Fields[i], one.Series); err != nil {
				return fault.WithFile(rows.InField(field.Name, err), d.source.Source)
			}
		}
	}
	return nil
}

// checkTimeless checks that the rows of each sequence have the same value of a field, or the same file.
func (d *dataset) checkTimeless(ctx context.Context, field *Field, column *rows.Field, s *shuffle.Series) error {
	sequence := make([]int64, s.Length())
	for i := range s.Len() {
		s.Rows(i, sequence)
		first, err := column.Value(ctx, sequence[0])
		for _, row := range sequence[1:] {
			if row < 0 || err != nil {
				break
			}
			var value catalog.Value
			if value, err = column.Value(ctx, row); err == nil && !sameValue(first, value) {
				return fault.New(fault.Corrupt, "time", "its layout is %q, and the rows %d and %d of one sequence "+
					"differ: a layout with an axis t has a value for each step", field.Layout, sequence[0], row)
			}
		}
		if err != nil && fault.KindOf(err) == 0 { // the run meets faults of samples when it reads them
			return err
		}
	}
	return nil
}

// sameValue reports whether two values are equal; NaN equals NaN.
func sameValue(a, b catalog.Value) bool {
	float := a.Float == b.Float || a.Float != a.Float && b.Float != b.Float
	single := float && a.Int == b.Int && a.Null == b.Null && bytes.Equal(a.Text, b.Text)
	return single && slices.EqualFunc(a.List, b.List, sameValue)
}

// compileStrata returns the rows of each value of the column to balance. It fails if no row has a
// value, or if there are more values than a mixture of the plan can have.
func (d *dataset) compileStrata(ctx context.Context, rs []uint32) (groups [][]uint32, _ error) {
	column := d.source.Strata.Column
	found, err := rows.StrataOf(ctx, d.table, column, rs)
	fail := func(kind fault.Kind, format string, args ...any) ([][]uint32, error) {
		return nil, fault.WithFile(fault.New(kind, "column "+column, format, args...), d.source.Source)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("strata: %w", err)
	case len(found) == 0:
		return fail(fault.NotFound, "no row has a value")
	case len(found) > shuffle.WordLen:
		return fail(fault.Limit, "%d values, at most %d can be balanced", len(found), shuffle.WordLen)
	}
	for _, s := range found {
		groups = append(groups, s.Rows)
		d.digestRows(s.Key, s.Rows)
	}
	return groups, nil
}

// mixture makes a source for package shuffle that draws from the strata. batch is as for addSource.
func (d *dataset) mixture(ctx context.Context, e *Engine, one shuffle.Dataset, groups [][]uint32,
	batch int64) (shuffle.Source, error) {
	mixture := &shuffle.Mixture{Until: spec.Untils[d.source.Strata.Until], Length: d.source.Strata.Length}
	parts := int64(shuffle.WordLen)
	if d.source.Strata.PerBatch {
		if batch == 0 {
			return shuffle.Source{}, fmt.Errorf("strata: %w", spec.ErrPerBatch)
		}
		if parts, mixture.Batch = batch, batch; int64(len(groups)) > batch {
			return shuffle.Source{}, fmt.Errorf(
				"strata: per_batch: the %d values of column %q do not fit into the %d samples of a batch",
				len(groups), d.source.Strata.Column, batch)
		}
	}
	for _, rows := range groups {
		s := one
		s.Rows = rows
		leaf, err := d.leaf(ctx, e, s)
		if err != nil {
			return shuffle.Source{}, err
		}
		mixture.Sources = append(mixture.Sources, leaf)
		e.leaves = append(e.leaves, d)
	}
	// The default length is the length of all strata together. With per_batch every batch must be whole, so it is
	// rounded down to batches, but to one at least.
	if mixture.Until == shuffle.Given && mixture.Length == 0 {
		sizes, err := spec.Lengths(mixture.Sources)
		if err != nil {
			return shuffle.Source{}, err
		}
		for _, n := range sizes {
			mixture.Length += n
		}
		if mixture.Batch > 0 {
			mixture.Length = max(mixture.Length/mixture.Batch, 1) * mixture.Batch
		}
	}
	mixed := Source{Mixture: spec.Mixture{Sources: make([]Source, len(groups)),
		Temperature: d.source.Strata.Temperature}}
	if err := mixed.SetCounts(mixture.Sources, parts); err != nil {
		return shuffle.Source{}, fmt.Errorf("strata: %w", err)
	}
	for i := range mixed.Sources {
		mixture.Counts = append(mixture.Counts, mixed.Sources[i].Count)
	}
	return shuffle.Source{Mixture: mixture}, nil
}

// leaf adds the number of windows of every item to a dataset of the plan.
func (d *dataset) leaf(ctx context.Context, e *Engine, one shuffle.Dataset) (shuffle.Source, error) {
	items := one.Len()
	sampler := &one.Sampler
	windows, counts := sampler.Kind.(shuffle.Counted)
	count := func(i int64) int64 { return int64(d.sampler.PerAsset) }
	if d.sizes.available() {
		count = func(i int64) int64 {
			size := d.sizes.of(one.Row(i))
			if size.Height < 1 || size.Width < 1 {
				return 1 // the asset cannot be read; the run meets the error when it reads it
			}
			return windows.Count(int(size.Height), int(size.Width))
		}
	}
	var err error
	switch {
	case !counts:
	case d.limited.by != nil:
		err = d.limitGrid(ctx, &one)
	case d.sizes.one != nil && items > 0: // no loop over the items, which may be millions
		sampler.Runs, err = shuffle.EqualRuns(items, count(0))
	default:
		sampler.Runs, err = shuffle.NewRuns(items, count)
	}
	one.Blocks = d.blocks(e, &one)
	return shuffle.Source{Dataset: &one}, err
}

// digestRows adds rows, under a name, to the digest of the data.
func (p *population) digestRows(what string, rows []uint32) {
	p.digest.Record([]byte(what))
	// Otherwise two lists could be joined into the bytes of one.
	p.digest.Number(uint64(len(rows)))
	for _, row := range rows {
		_, _ = p.digest.Write(binary.LittleEndian.AppendUint32(p.digest.AvailableBuffer(), row))
	}
}

// digestSeries adds the rows of all sequences to the digest of the data.
func (p *population) digestSeries(s *shuffle.Series) {
	rows := make([]int64, s.Length())
	for i := range s.Len() {
		s.Rows(i, rows)
		for _, row := range rows {
			p.digest.Number(uint64(row))
		}
	}
}
