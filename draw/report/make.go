package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Make reads a dataset: the header of every asset, every pixel (with loader.Stats) and a few chips. Samples that
// cannot be read become warnings. It returns an error if the dataset cannot be opened, if an option is wrong, or if
// ctx is done.
func Make(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Loader.Opener == nil {
		files := &source.Files{}
		defer files.Close()
		o.Loader.Opener = files
	}
	if o.Loader.MaxChunkBytes == 0 {
		o.Loader.MaxChunkBytes = resources.DefaultMaxChunkBytes
	}
	table, err := rows.OpenTable(ctx, loader.Spec{Source: o.Source, Fields: o.Fields}, o.Loader)
	if err != nil {
		return nil, err
	}
	m := &maker{Options: o, table: table, last: -1, bad: map[int64]string{}, Report: &Report{
		Title: o.Title, Source: o.Source, Generator: o.Generator, Seed: o.Seed,
		Fingerprint: table.Fingerprint(), Samples: table.Len(), Notes: slices.Clone(o.Remarks),
	}}
	return m.Report, errors.Join(m.run(ctx), table.Close())
}

func (m *maker) run(ctx context.Context) error {
	for i, f := range m.Options.Fields {
		m.Report.Fields = append(m.Report.Fields, Field{Name: f.Name, Kind: m.table.Kind(i)})
		if rows.StepsOf(m.table, i) != nil {
			m.note(fmt.Sprintf("Samples have several files of field %q: its statistics are of all, and all else is of "+
				"the first of each sample.", f.Name))
		}
	}
	if m.Report.Samples == 0 {
		return nil
	}
	for _, step := range []func(context.Context) error{m.headers, m.measure, m.classes, m.chips} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	m.warn()
	return nil
}

// measurable returns the raster fields that package stats measures, as indices.
func (m *maker) measurable() (list []int) {
	for i := range m.Report.Fields {
		if field := &m.Report.Fields[i]; field.Kind == catalog.Raster && field.first != nil {
			if _, err := stats.NewField(field.first.DType, field.first.Bands); err == nil {
				list = append(list, i)
			} else {
				m.note(fmt.Sprintf("Field %q is not measured: its dtype is %s.", field.Name, field.first.DType))
			}
		}
	}
	return list
}

// measure computes the statistics with survey.Stats, without samples that cannot be read. If headers show no bad
// sample, it tries without skipping first: samples are decoded twice only if there is one after all.
func (m *maker) measure(ctx context.Context) error {
	list := m.measurable()
	if len(list) == 0 {
		return nil
	}
	if r := m.Statistics; r != nil {
		m.take(r, list)
		return nil
	}
	sp := loader.Spec{Source: m.Options.Source, BatchSize: 1, BadSamples: spec.BadError}
	for _, i := range list {
		sp.Fields = append(sp.Fields, m.Options.Fields[i])
	}
	if m.nBad > 0 {
		sp.BadSamples = spec.BadSkip
	}
	o := m.Loader
	o.Logger = slog.New(slog.DiscardHandler) // the page names the samples
	progress := func(done, total int64) { m.Progress("measuring", done, total) }
	part, err := survey.StatsPart(ctx, sp, o, nil, progress)
	if fault.KindOf(err) != 0 && sp.BadSamples == spec.BadError {
		sp.BadSamples = spec.BadSkip
		part, err = survey.StatsPart(ctx, sp, o, nil, progress)
	}
	switch {
	case fault.KindOf(err) != 0: // statistics need one readable sample for shape and dtype
		m.alarm("Nothing was measured, because no sample can be read: "+fault.Line(err), nil)
		return nil
	case err != nil:
		return err
	}
	m.Skipped = part.Skipped
	for row, err := range part.Bad {
		if _, known := m.bad[row]; !known && len(m.bad) < maxNamed {
			m.bad[row] = fault.Line(err)
		}
	}
	m.take(part.Report(sp.Fields), list)
	return nil
}

// take gives fields their statistics.
func (m *maker) take(r *stats.Report, list []int) {
	for _, i := range list {
		f := &m.Report.Fields[i]
		if s, ok := r.Fields[f.Name]; ok {
			f.Stats = &s
		}
	}
}
