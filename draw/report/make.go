package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

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

// measure computes the statistics with loader.Stats, without samples that cannot be read. If headers show no
// bad sample, it tries without skipping first: samples are decoded twice only if there is one after all.
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
	o := m.Loader
	skipped := &skipped{m: m}
	o.Logger = slog.New(skipped)
	if m.nBad > 0 || m.mixed(list) {
		sp.BadSamples = spec.BadSkip
	}
	progress := func(done, total int64) { m.Progress("measuring", done, total) }
	report, err := survey.Stats(ctx, sp, o, progress)
	if fault.KindOf(err) != 0 && sp.BadSamples == spec.BadError {
		sp.BadSamples = spec.BadSkip
		report, err = survey.Stats(ctx, sp, o, progress)
	}
	switch {
	case fault.KindOf(err) != 0: // statistics need one readable sample for shape and dtype
		m.alarm("Nothing was measured, because no sample can be read: "+fault.Line(err), nil)
		return nil
	case err != nil:
		return err
	}
	m.Skipped = report.Skipped
	m.take(report, list)
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

// mixed reports whether assets of a field differ in number of bands or dtype, which statistics cannot combine.
func (m *maker) mixed(list []int) bool {
	for _, i := range list {
		kinds := map[string]bool{}
		field := &m.Report.Fields[i]
		for _, c := range field.Shapes.Counts() {
			bands, _, _ := strings.Cut(c.Name, " ")
			kinds[bands+c.Name[strings.LastIndexByte(c.Name, ' '):]] = true
		}
		if len(kinds) > 1 || field.Shapes.Other > 0 {
			return true
		}
	}
	return false
}

// skipped is a slog.Handler that records the samples that loader.Stats leaves out: it only logs them.
type skipped struct {
	m  *maker
	mu sync.Mutex
}

func (*skipped) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (s *skipped) Handle(_ context.Context, r slog.Record) error {
	row, text := int64(-1), ""
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "sample" && a.Value.Kind() == slog.KindInt64:
			row = a.Value.Int64()
		case a.Key == "error":
			text = a.Value.String()
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.m.bad[row]; row >= 0 && !known && len(s.m.bad) < maxNamed {
		s.m.bad[row] = text
	}
	return nil
}

func (s *skipped) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *skipped) WithGroup(string) slog.Handler { return s }
