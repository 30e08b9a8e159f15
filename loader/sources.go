package loader

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/lru"
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
	set := &dataset{name: name, number: len(e.sets), source: *src, windowing: windowing{sampler: e.spec.Sampler},
		timing: timing{timeless: e.spec.Batches == spec.OneSource && e.spec.SequenceOf(src) == nil},
		fields: e.spec.FieldsOf(src), overviews: lru.New[overviewKey, pixels.Levels](overviewBytes),
		opener: e.options.Opener, population: population{digest: digest.New()}}
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
	set.names.table = set.table
	if set.table.N == 0 {
		return shuffle.Source{}, fault.WithFile(fault.New(fault.NotFound, "dataset", "no samples"),
			src.Source)
	}
	if !set.kind.Ground {
		if err := set.table.NoteSame(ctx); err != nil {
			return shuffle.Source{}, err
		}
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
	if set.blockSpec != nil {
		e.spec.Blocks = set.blockSpec
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
