package loader

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// addSource opens a source and all sources in it, and returns it for package shuffle. It fills in
// the source of the spec. batch is the number of rows of every global batch that are of this
// source, or 0 if that varies.
func (e *Engine) addSource(ctx context.Context, src *Source, name string, open rows.Opener,
	batch int64) (shuffle.Source, error) {
	if len(src.Sources) == 0 {
		return e.addDataset(ctx, src, name, open, batch)
	}
	mixture := &shuffle.Mixture{Until: spec.Untils[src.Until], Length: src.Length}
	total := int64(shuffle.WordLen)
	if src.Batches == spec.OneSource {
		if batch != int64(e.spec.BatchSize) {
			return shuffle.Source{}, spec.ErrOneSource
		}
		mixture.Block = batch
	}
	if src.PerBatch {
		if batch == 0 {
			return shuffle.Source{}, spec.ErrPerBatch
		}
		if total, mixture.Batch = batch, batch; int64(len(src.Sources)) > batch {
			return shuffle.Source{}, fmt.Errorf("per_batch: %d sources do not fit into the %d samples of a batch",
				len(src.Sources), batch)
		}
		if src.Temperature == 0 { // sources with per_batch inside need their share before they open
			if err := src.SetCounts(nil, total); err != nil {
				return shuffle.Source{}, err
			}
		}
	}
	for i := range src.Sources {
		added := &src.Sources[i]
		full := added.Named(i)
		if name != "" {
			full = name + "/" + full
		}
		share := mixture.Block
		if src.PerBatch {
			share = added.Count
		}
		if mixture.Block > 0 {
			e.opening = nil // its batches have shapes of their own
		}
		c, err := e.addSource(ctx, added, full, open, share)
		if err != nil {
			return shuffle.Source{}, spec.InSource(added.Named(i), err)
		}
		c.Name = added.Named(i)
		mixture.Sources = append(mixture.Sources, c)
	}
	if err := src.SetCounts(mixture.Sources, total); err != nil {
		return shuffle.Source{}, err
	}
	for _, s := range src.Sources {
		mixture.Counts = append(mixture.Counts, s.Count)
	}
	return shuffle.Source{Mixture: mixture}, nil
}

// addDataset opens a source that is not a mixture. batch is as for addSource.
func (e *Engine) addDataset(ctx context.Context, src *Source, name string, open rows.Opener,
	batch int64) (shuffle.Source, error) {
	set := &dataset{name: name, number: len(e.sets), source: *src, sampler: e.spec.Sampler,
		timeless: e.spec.Batches == spec.OneSource && e.spec.SequenceOf(src) == nil,
		fields:   e.spec.FieldsOf(src), overviews: lru.New[overviewKey, pixels.Levels](overviewBytes),
		opener: e.options.Opener, digest: digest.New()}
	set.names = &bandNames{opener: set.opener, cache: lru.New[string, []string](nameBytes)}
	list := set.fields
	set.fields = spec.RowFields(list)
	if src.Sampler != nil {
		set.sampler = *src.Sampler
	}
	set.kind = set.sampler.Traits()
	var err error
	template := *src
	template.Sampler = &set.sampler // the table has the columns that it needs
	timed := e.spec.Geo || set.nearest()
	if timed {
		template.More = src.ClockColumns(&set.sampler)
	}
	if set.table, err = open(ctx, template, list); err != nil {
		return shuffle.Source{}, err
	}
	// From here on closeTables closes the table, also after an error below.
	e.sets = append(e.sets, set)
	if e.opening == nil {
		e.opening = &group{}
		e.groups = append(e.groups, e.opening)
	}
	set.group = e.opening
	set.group.sets = append(set.group.sets, set)
	set.names.shared = set.table.BandNames
	if set.table.N == 0 {
		return shuffle.Source{}, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"),
			src.Source)
	}
	if err := set.openBeside(ctx, list[len(set.fields):], e.options); err != nil {
		return shuffle.Source{}, err
	}
	if timed {
		if set.clock, err = rows.Times(ctx, set.table, template.More); err != nil {
			return shuffle.Source{}, fmt.Errorf("geo: times: %w", err)
		}
	}
	out, err := set.compile(ctx, e, batch)
	if err == nil {
		err = set.tellLimited(e)
	}
	if err != nil {
		return out, err
	}
	if src.Sampler != nil {
		f := set.fill(*src.Sampler)
		src.Sampler = &f
	} else if set == e.sets[0] {
		e.spec.Sampler = set.fill(e.spec.Sampler) // the sources that follow take these values too
	}
	return out, set.agrees(set.group.lead())
}

// openBeside opens the files of the fields of shapes.
func (d *dataset) openBeside(ctx context.Context, fields []Field, o Options) error {
	column := len(d.fields) // of the table, behind the fields of rows
	for _, field := range fields {
		drawn, err := shapes.Open(ctx, field, d.table, column, o)
		if err != nil {
			return rows.InField(field.Name, err)
		}
		d.vectors = append(d.vectors, drawn)
		switch {
		case drawn.InPixels() && d.kind.Ground:
			return fmt.Errorf("field %q: its shapes are in pixels of images, and windows on the ground are in no "+
				"image's pixels", field.Name)
		case drawn.Pattern != "" && d.kind.Ground:
			return fmt.Errorf("field %q: pattern is %q: windows on the ground lie on many images, so that they need "+
				"shapes in one file", field.Name, drawn.Pattern)
		case drawn.Pattern != "":
			column++
		default:
			d.digestRows(drawn.Fingerprint(), nil)
		}
	}
	return nil
}

// fill copies the values computed from the data (tile size, pool) into a sampler of the spec.
func (d *dataset) fill(s Sampler) Sampler {
	s.TileHeight, s.TileWidth, s.Pool = d.sampler.TileHeight, d.sampler.TileWidth, d.sampler.Pool
	return s
}

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
	if err := d.compileFields(ctx, e.spec.BadSamples, rows); err != nil {
		return empty, err
	}
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
		err = d.compileSeries(ctx, &items, rows)
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
		return d.leaf(ctx, items)
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
		return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no sequence of %d steps", d.steps),
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
	if column.Value == nil {
		return nil
	}
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
				return fault.New(fault.Corrupt, "time", fault.NoOffset, "its layout is %q, and the rows %d and %d of "+
					"one sequence differ: a layout with an axis t has a value for each step", field.Layout,
					sequence[0], row)
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
	return float && a.Int == b.Int && a.Text == b.Text && a.Null == b.Null &&
		slices.EqualFunc(a.List, b.List, sameValue)
}

// compileStrata returns the rows of each value of the column to balance. It fails if no row has a
// value, or if there are more values than a mixture of the plan can have.
func (d *dataset) compileStrata(ctx context.Context, rs []uint32) (groups [][]uint32, _ error) {
	column := d.source.Strata.Column
	found, err := rows.StrataOf(ctx, d.table, column, rs)
	fail := func(kind fault.Kind, format string, args ...any) ([][]uint32, error) {
		return nil, fault.WithFile(fault.New(kind, "column "+column, fault.NoOffset, format, args...), d.source.Source)
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
		leaf, err := d.leaf(ctx, s)
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
func (d *dataset) leaf(ctx context.Context, one shuffle.Dataset) (shuffle.Source, error) {
	items := one.Items
	row := func(i int64) int64 { return i }
	switch {
	case one.Series != nil:
		items, row = one.Series.Len(), one.Series.First
	case one.Rows != nil:
		items, row = int64(len(one.Rows)), func(i int64) int64 { return int64(one.Rows[i]) }
	}
	sampler := &one.Sampler
	windows, counts := sampler.Kind.(shuffle.Counted)
	count := func(i int64) int64 { return int64(d.sampler.PerAsset) }
	if d.sizes.available() {
		count = func(i int64) int64 {
			size := d.sizes.of(row(i))
			if size.Height < 1 || size.Width < 1 {
				return 1 // the asset cannot be read; the run meets the error when it reads it
			}
			return windows.Count(int(size.Height), int(size.Width))
		}
	}
	var err error
	switch {
	case !counts:
	case d.coverage != nil:
		err = d.limitGrid(ctx, sampler, items, row)
	case d.sizes.one != nil && items > 0: // no loop over the items, which may be millions
		sampler.Runs, err = shuffle.EqualRuns(items, count(0))
	default:
		sampler.Runs, err = shuffle.NewRuns(items, count)
	}
	return shuffle.Source{Dataset: &one}, err
}

// digestRows adds rows, under a name, to the digest of the data.
func (d *dataset) digestRows(what string, rows []uint32) {
	d.hasDigest = true
	d.digest.Record([]byte(what))
	// Otherwise two lists could be joined into the bytes of one.
	d.digest.Number(uint64(len(rows)))
	for _, row := range rows {
		_, _ = d.digest.Write(binary.LittleEndian.AppendUint32(d.digest.AvailableBuffer(), row))
	}
}

// digestSeries adds the rows of all sequences to the digest of the data.
func (d *dataset) digestSeries(s *shuffle.Series) {
	d.hasDigest = true
	rows := make([]int64, s.Length())
	for i := range s.Len() {
		s.Rows(i, rows)
		for _, row := range rows {
			d.digest.Number(uint64(row))
		}
	}
}

// noteWorker notes about how many bytes a worker holds after it has read the first sample of a field, if it reads
// whole planes of the raster and nothing else.
func (d *dataset) noteWorker(field *pixels.Raster, asset catalog.Asset) {
	switch {
	case d.perWorker < 0:
	case !d.kind.Whole, d.sampler.Views != nil, asset.Parts != nil, field.Coloured(), d.resamples():
		d.perWorker = -1
	default:
		d.perWorker = max(d.perWorker, pixels.HeldFor(asset.Index, field.Picked))
	}
}

// lead puts the first raster field that no sample lacks first: its rasters make the windows.
func (d *dataset) lead(columns []int) []int {
	lead := slices.IndexFunc(columns, func(i int) bool { return !d.fields[i].MayLack() })
	if lead <= 0 {
		return columns
	}
	return slices.Concat(columns[lead:lead+1], columns[:lead], columns[lead+1:])
}

// firstAssets returns the assets of the first sample, of the raster fields with these numbers. The first must not lack.
func (d *dataset) firstAssets(ctx context.Context, columns []int, policy string, rs []uint32) ([]catalog.Asset, error) {
	if len(columns) > 0 && d.fields[columns[0]].MayLack() {
		return nil, rows.InField(d.fields[columns[0]].Name, fault.New(fault.Unsupported, "missing", fault.NoOffset,
			"the rasters of one field make the windows, and all fields may lack: give one that each sample has"))
	}
	assets, err := rows.FirstOf(ctx, d.table, d.fields, columns, policy, rs)
	if err != nil {
		return nil, d.notPaths(err, columns)
	}
	return assets, nil
}

// compileFields opens the assets of the first sample, and compiles the fields for them.
func (d *dataset) compileFields(ctx context.Context, policy string, rs []uint32) error {
	var columns []int
	for i, field := range d.fields {
		kind := d.table.Fields[i].Kind
		if err := field.CheckKind(kind); err != nil {
			return fault.WithFile(rows.InField(field.Name, err), d.source.Source)
		}
		if kind != catalog.Raster {
			if err := d.addValue(ctx, field, i, kind); err != nil {
				return rows.InField(field.Name, err)
			}
			continue
		}
		columns = append(columns, i)
	}
	columns = d.lead(columns)
	assets, err := d.firstAssets(ctx, columns, policy, rs)
	if err != nil {
		return err
	}
	var lead *catalog.Asset
	for place, i := range columns {
		compiled, asset := d.fields[i], assets[place]
		if err := rows.CheckTimes(ctx, d.table, i, &compiled, &asset); err != nil {
			return err
		}
		d.remote = d.remote || asset.Remote() ||
			slices.ContainsFunc(asset.Parts, func(p catalog.Asset) bool { return p.Remote() })
		if compiled.BandNames != nil {
			if compiled.Bands, err = d.names.pick(ctx, &compiled, asset); err != nil {
				return rows.InField(compiled.Name, err)
			}
		}
		steps := d.table.Fields[i].Steps
		if err := d.filesAsSteps(&compiled, steps); err != nil {
			return fault.WithFile(err, d.source.Source)
		}
		if d.timeless && compiled.Layout == spec.TimeLayout {
			compiled.Layout = ""
		}
		field, err := pixels.NewRaster(compiled, i, asset.Index)
		if err != nil {
			return asset.Fault(rows.InField(compiled.Name, err))
		}
		d.files = append(d.files, steps)
		d.noteWorker(field, asset)
		field.Expect(&asset)
		field.ReadLegend(ctx, d.opener, asset)
		if err := cmp.Or(d.compileParts(field, &asset, policy), d.setSteps(field, &compiled, steps)); err != nil {
			return rows.InField(compiled.Name, err)
		}
		lead = cmp.Or(lead, &assets[place])
		d.remarks(&compiled, &asset)
		if d.kind.Ground { // each field finds its pixels by its own place
			d.rasters = append(d.rasters, field)
			continue
		}
		if err = d.setRatio(field, lead, &asset, policy); err != nil {
			return asset.Fault(rows.InField(compiled.Name, err))
		}
		// Fields of one file lie together.
		if field.Ground != spec.IgnoreGround && (lead.Place == nil || asset.Place == nil) &&
			asset.Name() != lead.Name() {
			d.placeless = append(d.placeless, field.Name)
		}
		d.rasters = append(d.rasters, field)
	}
	if lead == nil {
		return d.compileSize(nil)
	}
	return d.compileSize(lead.Index)
}

// setSteps makes a sequence of a raster field f whose steps are rows, scenes, or files of a sample.
func (d *dataset) setSteps(field *pixels.Raster, f *Field, files *rows.Steps) error {
	n := 0
	switch {
	case d.kind.Ground && !f.Still(d.fields):
		n = d.sampler.Length
	case d.kind.Ground, d.source.Time != nil && f.Timeless():
	case d.source.Time != nil:
		n = d.source.Time.Length
	case files != nil:
		n = len(files.Fields)
	}
	return field.SetSteps(n)
}

// setRatio sets the ratio of a field by the first assets of the source's first field and of its own. With the policy
// "error" it fails if the two lie at different places.
func (d *dataset) setRatio(field *pixels.Raster, lead, own *catalog.Asset, policy string) (err error) {
	if d.kind.Whole && d.sampler.Views == nil {
		field.Ratio = pixels.WholeRatio(lead.Index, own.Index)
	} else if field.Ratio, err = pixels.NewRatio(lead.Index, own.Index); err != nil {
		return err
	}
	if policy == spec.BadError {
		return field.SameGround(lead, own)
	}
	return nil
}

// compileParts compiles the parts of a field's first stack, and notes those that cover less than it. With the policy
// "error" it fails if a part lies elsewhere.
func (d *dataset) compileParts(field *pixels.Raster, stack *catalog.Asset, policy string) error {
	err := field.CompileParts(stack)
	if err != nil || d.kind.Ground { // where each part finds its pixels by its own place
		return err
	}
	err = field.EachPart(stack, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		if said := partial(part, &stack.Parts[k], l); said != "" {
			d.partial = append(d.partial, said)
		}
		return nil
	})
	if policy != spec.BadError {
		return nil
	}
	return err
}

// filesAsSteps prepares a raster field whose steps of time are files of a sample: the steps that it picks are those
// files.
func (d *dataset) filesAsSteps(f *Field, steps *rows.Steps) error {
	switch {
	case steps == nil:
		return nil
	case d.kind.Ground:
		return d.table.Single(d.fields, "windows on the ground")
	case d.source.Time != nil:
		return d.table.Single(d.fields, "the steps of a sequence of rows")
	}
	f.Times = nil
	return nil
}

// compileSize computes the size of windows in every field. first is the asset of the first raster
// field, or nil without raster fields.
func (d *dataset) compileSize(first *chunk.Index) error {
	d.alignY, d.alignX = 1, 1
	if first == nil {
		if len(d.vectors) > 0 {
			return errors.New("spec: shapes lie in the windows of a raster, and there is none")
		}
		if !d.kind.NoRaster {
			return fmt.Errorf("spec: sampler: kind %q needs a raster", d.sampler.Kind)
		}
		return nil
	}
	d.chip = [2]int{first.Height, first.Width}
	sampler := &d.sampler
	if d.kind.Ground {
		sampler.Height, _ = sampler.Side()
		sampler.Width = sampler.Height
		for _, r := range d.rasters {
			r.SetSize(sampler.Height, sampler.Width)
		}
		return nil
	}
	if sampler.Height == 0 {
		sampler.Height, sampler.Width = first.Height, first.Width
	}
	for _, field := range d.rasters {
		// A coarser field has whole pixels only at some corners of the first one. The least common
		// multiple is the smallest step at which every field has a whole corner (docs/order.md).
		d.alignY, d.alignX = pixels.Lcm(d.alignY, field.Ratio.DenY), pixels.Lcm(d.alignX, field.Ratio.DenX)
	}
	if err := d.setSize(sampler.Height, sampler.Width); err != nil {
		return err
	}
	if d.kind.Tiles && sampler.TileHeight == 0 && sampler.TileWidth == 0 {
		sampler.TileHeight, sampler.TileWidth = rows.RoundUp(first.ChunkH, d.alignY),
			rows.RoundUp(min(first.ChunkW, spec.MaxWindow), d.alignX)
	}
	return nil
}

// setSize sets the size of windows in every field.
func (d *dataset) setSize(height, width int) error {
	sampler := &d.sampler
	sampler.Height, sampler.Width = height, width
	if sampler.Height%d.alignY != 0 || sampler.Width%d.alignX != 0 {
		return fmt.Errorf(
			"spec: sampler: a window of %d by %d pixels has no whole size in every field: "+
				"it must be a multiple of %d by %d",
			sampler.Height, sampler.Width, d.alignY, d.alignX)
	}
	for _, r := range d.rasters {
		w := r.Ratio.Scale(shuffle.Box{H: sampler.Height, W: sampler.Width})
		r.SetSize(w.H, w.W)
	}
	return nil
}

// ofSize returns the dataset for square windows of another side, as a source of a group.
func (d *dataset) ofSize(side int, g *group) (*dataset, error) {
	out := *d
	out.group, out.rasters = g, slices.Clone(d.rasters)
	for i, r := range d.rasters {
		out.rasters[i] = r.Sized(r.H, r.W)
	}
	return &out, out.setSize(side, side)
}

// compileViews makes the datasets of the further windows of a sample, and returns their samplers for package shuffle.
func (d *dataset) compileViews() (planned []shuffle.Sampler, _ error) {
	if len(d.sampler.Views) == 0 {
		return nil, nil
	}
	if len(d.rasters) == 0 {
		return nil, fmt.Errorf("spec: several windows of a sample need a raster")
	}
	if len(d.vectors) > 0 {
		return nil, fmt.Errorf("field %q: shapes are drawn in one window, and a sample has %d", d.vectors[0].Name,
			len(d.sampler.Views)+1)
	}
	d.views = []*dataset{d}
	for i := range d.sampler.Views {
		view, err := d.ofView(d.sampler.Views[i])
		if err != nil {
			return nil, spec.InWindow(i+1, err)
		}
		d.views = append(d.views, view)
		planned = append(planned, view.sampler.Plan(d.alignY, d.alignX))
	}
	counts := map[*dataset]int{}
	for _, view := range d.views {
		size := shuffle.Box{H: view.sampler.Height, W: view.sampler.Width}
		same := func(o *dataset) bool { return o.sampler.Height == size.H && o.sampler.Width == size.W }
		if view.tensor = slices.IndexFunc(d.tensors, same); view.tensor < 0 {
			view.tensor = len(d.tensors)
			d.tensors = append(d.tensors, view)
		}
		lead := d.tensors[view.tensor]
		view.place = counts[lead]
		counts[lead]++
	}
	for _, view := range d.views {
		view.views, view.tensors = d.views, d.tensors
		for _, raster := range view.rasters {
			if err := raster.SetViews(counts[d.tensors[view.tensor]]); err != nil {
				return nil, rows.InField(raster.Name, err)
			}
		}
	}
	return planned, nil
}

// ofView returns the dataset for a further window of each sample.
func (d *dataset) ofView(sampler Sampler) (*dataset, error) {
	out := *d
	out.sampler, out.kind = sampler, sampler.Traits()
	out.boxes, out.weights, out.rasters = nil, nil, slices.Clone(d.rasters)
	for i, r := range d.rasters {
		out.rasters[i] = r.Sized(r.H, r.W)
	}
	if sampler.Height == 0 {
		sampler.Height, sampler.Width = d.chip[0], d.chip[1]
	}
	return &out, out.setSize(sampler.Height, sampler.Width)
}

// compilers check the sampler of a dataset, and finish what package shuffle needs, by the kinds that need it.
var compilers = map[string]func(d *dataset, ctx context.Context, e *Engine, to *shuffle.Sampler) error{
	spec.WeightedWindow: (*dataset).compileWeights,
	spec.GridWindow:     (*dataset).compileGrid,
	spec.TileWindow:     (*dataset).compileTiles,
	spec.RowWindow:      (*dataset).compileBoxes,
	spec.GeoWindow:      (*dataset).compileGround,
}

// compileSampler compiles the sampler for package shuffle.
func (d *dataset) compileSampler(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	*to = d.sampler.Plan(d.alignY, d.alignX)
	if compile := compilers[d.sampler.Kind]; compile != nil {
		return compile(d, ctx, e, to)
	}
	return nil
}

// compileGrid checks the steps of a grid, and measures the assets.
func (d *dataset) compileGrid(ctx context.Context, e *Engine, _ *shuffle.Sampler) error {
	sampler := &d.sampler
	if sampler.Pad && !d.pads() {
		return errors.New("spec: sampler: a grid that pads needs fields that do: set their pad")
	}
	if sampler.StrideY%d.alignY != 0 || sampler.StrideX%d.alignX != 0 {
		return fmt.Errorf("spec: sampler: strides of %d by %d pixels must be multiples of %d by %d",
			sampler.StrideY, sampler.StrideX, d.alignY, d.alignX)
	}
	return d.measure(ctx, e)
}

// compileTiles checks the tiles, chooses how many of them a pool has, and measures the assets if all their tiles are
// visited.
func (d *dataset) compileTiles(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	visits := to.Kind.(*shuffle.Visits)
	if visits.TileH < 1 || visits.TileW < 1 || visits.TileH%visits.AlignY != 0 || visits.TileW%visits.AlignX != 0 {
		return fmt.Errorf("spec: sampler: tiles of %d by %d pixels must be multiples of %d by %d", visits.TileH,
			visits.TileW, visits.AlignY, visits.AlignX)
	}
	if visits.Pool == 0 {
		visits.Pool = visits.PoolWithin(d.sampler.PoolBytes, d.tileBytes())
		d.sampler.Pool = visits.Pool
	}
	if d.sampler.PerAsset == 0 {
		return d.measure(ctx, e)
	}
	return nil
}

// openCoverage opens the counts of valid pixels for Sampler.MaxNoData, and returns the selected rows that have windows.
// A grid keeps its rows: limitGrid leaves windows out.
func (d *dataset) openCoverage(ctx context.Context, e *Engine) ([]uint32, error) {
	if d.source.Time != nil {
		return nil, errors.New("spec: sampler: max_nodata is given, and sequences of rows have several images")
	}
	counts, err := rows.OpenCoverage(ctx, d.sampler.Coverage, e.options, d.table)
	if err != nil {
		return nil, err
	}
	d.hasDigest = true
	_, _ = d.digest.Write(counts.Hash[:])
	if d.kind.DropsWindows {
		d.coverage = counts
		return d.rows, nil
	}
	if d.kind.ByCoverage {
		d.weights = counts // the windows are drawn by it
	}
	planned := d.sampler.Plan(d.alignY, d.alignX)
	n, row := d.selected()
	if d.rows, err = counts.Covered(ctx, &planned, n, row); err != nil {
		return nil, fault.WithFile(err, d.sampler.Coverage)
	}
	d.limited = [2]int64{n, int64(len(d.rows))}
	return d.rows, nil
}

// limitGrid sets the windows of a grid that Sampler.MaxNoData leaves.
func (d *dataset) limitGrid(ctx context.Context, to *shuffle.Sampler, items int64, row func(i int64) int64) error {
	all, err := d.coverage.LimitGrid(ctx, to, items, func(i int64) (int64, int, int) {
		size := d.sizes.of(row(i))
		return row(i), int(size.Height), int(size.Width)
	})
	d.limited[0] += all
	d.limited[1] += int64(len(to.Windows))
	return fault.WithFile(err, d.sampler.Coverage)
}

// tellLimited logs how many windows, or rows, Sampler.MaxNoData leaves out. It is an error if none is left.
func (d *dataset) tellLimited(e *Engine) error {
	d.coverage = nil // it is needed no more
	what, all, left := "samples", d.limited[0], d.limited[1]
	if d.kind.DropsWindows {
		what = "windows"
	}
	switch {
	case all == left:
		return nil
	case left == 0:
		return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset,
			"all %d %s have more nodata than max_nodata, %v, allows", all, what, *d.sampler.MaxNoData), d.source.Source)
	}
	e.options.Logger.Warn(what+" with more nodata than max_nodata are left out", what, all-left, "left", left,
		"max_nodata", *d.sampler.MaxNoData, "dataset", d.source.Source)
	return nil
}

// compileWeights opens the weights of places.
func (d *dataset) compileWeights(ctx context.Context, e *Engine, _ *shuffle.Sampler) (err error) {
	if d.weights, err = rows.OpenWeights(ctx, d.sampler.Weights, e.options, d.table); err != nil {
		return err
	}
	d.hasDigest = true
	_, _ = d.digest.Write(d.weights.Hash[:])
	return nil
}

// maxTileBytes bounds the computed bytes of tiles. 1 PiB is more than the memory of a machine, and
// 8,192 such numbers add up to 2^63, so no sum over the fields or sources overflows.
const maxTileBytes = 1 << 50

// tileBytes returns the decoded bytes of a tile in all fields, from 1 to maxTileBytes.
func (d *dataset) tileBytes() int64 {
	total := int64(0)
	for _, r := range d.rasters {
		w := r.Ratio.Scale(shuffle.Box{H: d.sampler.TileHeight, W: d.sampler.TileWidth})
		total += upTo(maxTileBytes, w.H, w.W, r.Stored, r.Native.Size())
	}
	return min(total, maxTileBytes)
}

// poolBytes returns the decoded bytes of the tiles of all pools that fill at the same time, one for
// each stratum. It is at most maxTileBytes.
func (d *dataset) poolBytes() int64 {
	down, across := d.sampler.Plan(d.alignY, d.alignX).Kind.(*shuffle.Visits).Chunks()
	return upTo(maxTileBytes, down, across, d.sampler.Pool, d.leaves, int(d.tileBytes()))
}

// upTo returns the product of factors, each counted as at least 1, or bound if that is less.
func upTo(bound int64, factors ...int) int64 {
	if n := pixels.BoundedBytes(bound, factors...); n >= 0 {
		return n
	}
	return bound
}

// addValue compiles field number i, whose column holds values of a kind. All lists of numbers must be as long as the
// first one that has any.
func (d *dataset) addValue(ctx context.Context, f Field, i int, kind catalog.Kind) error {
	field := newValueField(f, i, kind)
	field.packs = field.fromSpec && d.name != "" // of a mixture
	if field.holds.IsList() && field.classes == nil {
		count, row := d.selected()
		// Arrow writes empty lists of a fixed size as lists of one null.
		known := func(element catalog.Value) bool { return !element.Null }
		found := false
		for k := int64(0); k < count && !found; k++ {
			value, err := d.table.Fields[i].Value(ctx, row(k))
			if err != nil {
				return err
			}
			found = slices.ContainsFunc(value.List, known)
			field.length = cmp.Or(field.length, len(value.List))
		}
		if !found {
			return fault.WithFile(fault.New(fault.NotFound, "column", fault.NoOffset, "no list has a number"),
				d.source.Source)
		}
	}
	d.values = append(d.values, field)
	return nil
}

// numeric reports whether a column holds numbers, or lists of them.
func numeric(k catalog.Kind) bool { return k.Elem() == catalog.Int || k.Elem() == catalog.Float }

// agrees returns an error if the batches of a source differ from the batches of the first one in shape,
// dtype or kind.
func (d *dataset) agrees(first *dataset) error {
	if d == first {
		return nil
	}
	if !slices.Equal(d.sampler.Sizes, first.sampler.Sizes) {
		return fmt.Errorf("windows have the sizes %v, and in the first source %v: a mixture's batches need one size",
			d.sampler.Sizes, first.sampler.Sizes)
	}
	if err := d.sameViews(first); err != nil {
		return err
	}
	for i, f := range d.fields {
		own, other := d.table.Fields[i].Kind, first.table.Fields[i].Kind
		numbers := numeric(own) && numeric(other) && own.IsList() == other.IsList() && f.Kind != spec.ClassField
		switch {
		case own == other || numbers && f.Traits().Casts && f.DType != "native":
		case numbers:
			return fmt.Errorf("field %q is of kind %s, and in the first source %s: a dtype of the field, such as "+
				`"float32", is for both`, f.Name, own, other)
		default:
			return fmt.Errorf("field %q is of kind %s, and in the first source %s", f.Name, own, other)
		}
	}
	for i, field := range d.values {
		if field.timeless != first.values[i].timeless {
			return fmt.Errorf("field %q: its layout has no axis t in one source, and one in another", field.name)
		}
		if other := first.values[i]; field.width() != other.width() {
			return fmt.Errorf("field %q has lists of %d numbers, and in the first source of %d", field.name,
				field.width(), other.width())
		}
	}
	for i, field := range d.vectors {
		other := first.vectors[i]
		if field.To != other.To {
			return fmt.Errorf("field %q is of %s, and in the first source of %s", field.Name, field.To, other.To)
		}
		if !slices.Equal(field.Columns, other.Columns) || !slices.Equal(field.More, other.More) {
			return fmt.Errorf("field %q has the columns %q of %v, and in the first source %q of %v", field.Name,
				field.Columns, field.More, other.Columns, other.More)
		}
		if (field.Ragged() || other.Ragged()) && field.Vector.Kind != other.Vector.Kind {
			return fmt.Errorf("field %q is of kind %q, and in the first source of kind %q", field.Name,
				field.Vector.Kind, other.Vector.Kind)
		}
	}
	for i, r := range d.rasters {
		field, raster := r.Tensor(), first.rasters[i].Tensor()
		if field.To != raster.To || len(field.Picked) != len(raster.Picked) || field.TimeSteps != raster.TimeSteps ||
			field.Steps != raster.Steps ||
			field.H != raster.H || field.W != raster.W {
			return fmt.Errorf("field %q is %s, and in the first source %s: a mixture's batches need one shape, "+
				"unless its batches are of one source", field.Name, shapeText(field), shapeText(raster))
		}
		if err := r.SameOrder(first.rasters[i]); err != nil {
			return rows.InField(field.Name, err)
		}
	}
	return nil
}

// notPaths explains an error about a file whose name has no extension, if a member of a field makes it a raster: its
// column may hold other texts.
func (d *dataset) notPaths(err error, columns []int) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.NotFound || magic.Named(e.File).Class != 0 {
		return err
	}
	for _, i := range columns {
		field := &d.fields[i]
		if member := field.ForRasters(); member != "" && field.Column != "" {
			err = fault.New(fault.NotFound, "column "+field.Column, fault.NoOffset,
				"%s is given, which is for rasters, and the column names no file: there is no %q; without %s the "+
					"column holds strings, and with kind %q their numbers", member, fault.Short(path.Base(e.File)),
				member, spec.ClassField)
			return fault.WithFile(rows.InField(field.Name, err), d.source.Source)
		}
	}
	return err
}

// remarks notes what the log says of a field and its first asset.
func (d *dataset) remarks(field *Field, first *catalog.Asset) {
	if first.Index.Alpha && field.Bands == nil && field.BandNames == nil {
		d.opaque = append(d.opaque, field.Name)
	}
	if first.TakenForPicture() {
		x := first.Index
		d.pictures = append(d.pictures, fmt.Sprintf("%s (%d, %d, %d)", field.Name, x.Height, x.Width, x.Bands))
	}
	if n := first.Index.Steps(); len(field.Times) > 0 && slices.Max(field.Times) >= n {
		d.lacking = append(d.lacking, fmt.Sprintf("%s (%d of the first file)", field.Name, n))
	}
	if x := first.Index; x.Joint != "" && x.Mask == nil && field.NoData == nil {
		d.joint = append(d.joint, field.Name+" ("+x.Joint+")")
	}
	for _, value := range slices.Concat(field.NoData...) {
		num := first.Index.DType.Num()
		if _, ok := kernel.IntBits(num, float64(value)); first.Index.DType.Integer() && num != kernel.None && !ok {
			d.unheld = append(d.unheld, fmt.Sprintf("%s (%v in %s)", field.Name, float64(value), first.Index.DType))
		}
	}
	if d.unplaced == nil {
		d.unplaced = first.Fault(first.Unplaced("geo needs"))
	}
	if first.Place != nil && first.Place.Boxed {
		d.boxed = append(d.boxed, field.Name)
	}
}

// checkGround compares the places of the rasters of all selected rows, where a catalog knows them. It logs how many
// rows are misplaced. With the policy "error" the first of them is its error, because the run would meet it anyway, but
// hours later. It also logs that the first sample has rasters without a place, which therefore cannot be compared.
func (d *dataset) checkGround(ctx context.Context, e *Engine) error {
	if len(d.placeless) > 0 {
		e.options.Logger.Info("rasters without a place on the ground are paired by their sizes alone", "source",
			d.source.Source, "fields", d.placeless)
	}
	if len(d.opaque) > 0 {
		e.options.Logger.Warn("the last band of the files is alpha: it is their mask, and no band of the tensor "+
			"unless bands picks it, as data", "source", d.source.Source, "fields", d.opaque)
	}
	if len(d.pictures) > 0 {
		e.options.Logger.Warn("arrays of these shapes are taken for pictures (y, x, b): dims of a field says "+
			`otherwise, as dims="b y x"`, "source", d.source.Source, "fields", d.pictures)
	}
	if len(d.partial) > 0 {
		e.warnPartial(d, d.partial...)
	}
	if len(d.unheld) > 0 {
		e.options.Logger.Warn("no pixel equals these values of nodata, which the files' dtype does not have", "source",
			d.source.Source, "fields", d.unheld)
	}
	if e.spec.Geo && d.unplaced != nil {
		e.options.Logger.Warn("members of geo are NaN where the place of a raster is not known", "source",
			d.source.Source, "first", fault.Line(d.unplaced))
	}
	if len(d.joint) > 0 {
		e.options.Logger.Warn("the files have nodata values of all bands together (NODATA_VALUES, or a transparent "+
			"colour): such pixels are read as valid ones; 'gdal_translate -mask mask IN OUT.tif' makes a mask of them",
			"source", d.source.Source, "fields", d.joint)
	}
	if len(d.lacking) > 0 {
		e.options.Logger.Warn("times picks steps that the first file does not have: steps that a file lacks are "+
			"padding, and \"steps\" of a batch is 0 there", "source", d.source.Source, "fields", d.lacking)
	}
	if len(d.boxed) > 0 && (e.spec.Geo || len(d.rasters) > 1 || d.kind.Ground) {
		e.options.Logger.Warn("the catalog has bounds without transforms: rasters are taken to have north up; "+
			"'chaski index' makes a catalog with transforms", "source", d.source.Source, "fields", d.boxed)
	}
	if len(d.rasters) < 2 || d.table.Misplaced == nil || d.kind.Ground {
		return nil
	}
	lead := d.rasters[0]
	for _, field := range d.rasters[1:] {
		if field.Ground == spec.IgnoreGround {
			continue
		}
		count, first := 0, error(nil)
		err := d.table.Misplaced(ctx, lead.TableColumn, field.TableColumn, d.rows, func(_ int64, err error) {
			if count++; first == nil {
				first = err
			}
		})
		if err != nil {
			return err
		}
		if count == 0 {
			continue
		}
		e.options.Logger.Warn("rasters of samples lie at different places on the ground", "source", d.source.Source,
			"field", field.Name, "samples", count, "first", fault.Line(first))
		if e.spec.BadSamples == spec.BadError {
			return rows.InField(field.Name, first)
		}
	}
	return nil
}
