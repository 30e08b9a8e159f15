// Package report reads a whole dataset once and writes a report about it as one page of HTML: counts, bands,
// histograms, classes, nodata, sample chips and warnings.
//
// The page needs nothing else. It contains its style, drawings (SVG) and pictures (PNG), runs no script and
// sends no request, which its content security policy enforces. Text from files is escaped.
//
// The memory of a report has fixed limits that do not grow with the dataset: MaxKinds kinds of anything that is
// counted, and MaxSamples chips of a few hundred pixels. An asset whose bands decode to more than Options.MaxBytes is
// shown by a window from its middle.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/draw"
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

// Limits of a report.
const (
	MaxKinds   = 64  // different shapes, CRSs or values that are counted one by one
	MaxSamples = 256 // chips
	MaxBands   = 256 // rows in the table of bands
	maxNamed   = 8   // samples that a warning names
)

// Options of Make.
type Options struct {
	// Source and Fields describe the dataset as in loader.Spec. Default: one raster "image".
	Source string
	Fields []loader.Field
	// Seed of the order. The first samples in this order are shown.
	Seed uint64
	// Title of the page. Default: Source.
	Title string
	// Generator names the program that made the page, in its footer. Empty for none.
	Generator string
	// Samples to show, at most MaxSamples. Default 18, or 16 if a sample has several rasters.
	Samples int
	// Bands of the first field to show: one, or three as red, green and blue. Default: those named so, else the first
	// three, or the first.
	Bands []int
	// Side is the longest side of a chip's picture, in pixels. Default 192.
	Side int
	// MaxBytes is the memory for the decoded bands of one chip. Default 64 MiB.
	MaxBytes int64
	// Remarks are notes before those about the dataset.
	Remarks []Warning
	// Loader options for reading. Its Logger is not used.
	Loader loader.Options
	// Progress is called as the work goes on, by one goroutine at a time. May be nil.
	Progress func(step string, done, total int64)
}

func (o *Options) withDefaults() {
	if len(o.Fields) == 0 {
		o.Fields = []loader.Field{{Name: "image"}}
	}
	o.Title, o.Side, o.MaxBytes = cmp.Or(o.Title, o.Source), cmp.Or(o.Side, 192), cmp.Or(o.MaxBytes, 64<<20)
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
}

// Report is what Make found in a dataset.
type Report struct {
	Title, Source, Fingerprint, Generator string

	Samples int64
	Skipped int64 // samples that are not in the statistics
	Seed    uint64
	Fields  []Field
	Chips   []Chip
	// Warnings are possible errors of the dataset, Notes are facts about it.
	Warnings, Notes []Warning
}

// Warning is a sentence and the list that it is about.
type Warning struct {
	Text  string
	Items []string
}

// Field is one field of the samples.
type Field struct {
	Name string
	Kind catalog.Kind

	// Of a raster:
	BandNames []string // of the first asset
	Shapes    Tally    // "bands × height × width dtype"
	CRS       Tally
	NoData    Tally
	Codecs    Tally
	Assets    int64              // that could be opened
	Bytes     int64              // of their files; of files whose size is not known, of their pixels
	Stored    int64              // bytes of pixels as they are in the files
	Decoded   int64              // bytes of pixels
	Stats     *stats.FieldReport // nil: not measured
	Mask      bool               // of integers with few values, which are drawn in a colour each
	first     *chunk.Index

	// Of values:
	Values  Tally
	Missing int64
	Min     float64 // of numbers that are not NaN; above Max without one
	Max     float64
}

// BandName returns the name of band i, or "band i" if it has none.
func (f *Field) BandName(i int) string {
	if i < len(f.BandNames) && f.BandNames[i] != "" {
		return f.BandNames[i]
	}
	return fmt.Sprintf("band %d", i)
}

// Tally counts how often strings occur, MaxKinds strings one by one.
type Tally struct {
	counts map[string]int64
	Other  int64 // occurrences of all other strings
}

// Count is a kind of something and how many of it there are.
type Count struct {
	Name string
	N    int64
}

func (t *Tally) add(name string) {
	if t.counts == nil {
		t.counts = map[string]int64{}
	}
	if _, known := t.counts[name]; !known && len(t.counts) >= MaxKinds {
		t.Other++
		return
	}
	t.counts[name]++
}

// Counts returns the kinds, the most frequent first.
func (t *Tally) Counts() []Count {
	out := make([]Count, 0, len(t.counts))
	for name, n := range t.counts {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return out
}

// maker makes a report.
type maker struct {
	Options
	*Report
	table rows.Table
	bad   map[int64]string // the first samples that cannot be read, and why
	nBad  int64
	last  int64 // the last sample that was counted as bad
	// Pairs of a sample's first raster and another one: at different places, the first of these, and without a place.
	misplaced int64
	elsewhere []string
	unplaced  int64
}

// Make reads a dataset: the header of every asset, every pixel (with loader.Stats) and a few chips. Samples that
// cannot be read become warnings. It returns an error if the dataset cannot be opened, or if ctx is done.
func Make(ctx context.Context, o Options) (*Report, error) {
	o.withDefaults()
	if o.Loader.Opener == nil {
		files := &source.Files{}
		defer files.Close()
		o.Loader.Opener = files
	}
	o.Loader.MaxChunkBytes = cmp.Or(o.Loader.MaxChunkBytes, resources.DefaultMaxChunkBytes)
	sp, options := loader.Spec{Source: o.Source, Fields: o.Fields}, o.Loader
	table, err := rows.OpenTable(ctx, &sp, &options)
	defer options.CloseOpener()
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
		m.Report.Fields = append(m.Report.Fields,
			Field{Name: f.Name, Kind: m.table.Kind(i), Min: math.Inf(1), Max: math.Inf(-1)})
		if rows.StepsOf(m.table, i) != nil {
			m.note(fmt.Sprintf("Samples have several files of field %q: its statistics are of all, and all else is of "+
				"the first of each sample.", f.Name))
		}
	}
	if m.Report.Samples == 0 {
		return nil
	}
	for _, step := range []func(context.Context) error{m.headers, m.measure, m.chips} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	m.warn()
	return nil
}

// isBad records a sample that cannot be read. It returns errors that are not faults of a file, because they end
// the report.
func (m *maker) isBad(row int64, err error) error {
	if err == nil {
		return nil
	}
	if fault.KindOf(err) == 0 {
		return err
	}
	// A sample may fail in several fields and again in its footprint, but it must be counted once.
	if row == m.last {
		return nil
	}
	m.last = row
	m.nBad++
	if len(m.bad) < maxNamed {
		m.bad[row] = fault.Line(err)
	}
	return nil
}

func (m *maker) alarm(text string, items []string) {
	m.Warnings = append(m.Warnings, Warning{text, items})
}

func (m *maker) note(text string) { m.Notes = append(m.Notes, Warning{Text: text}) }

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

// take gives fields their statistics, and finds the masks among them.
func (m *maker) take(r *stats.Report, list []int) {
	for _, i := range list {
		field := &m.Report.Fields[i]
		measured, ok := r.Fields[field.Name]
		if !ok {
			continue
		}
		field.Stats = &measured
		if len(measured.Bands) != 1 || measured.Bands[0].Histogram == nil || !measured.DType.Integer() {
			continue
		}
		kinds := 0
		for _, n := range measured.Bands[0].Histogram.Counts {
			kinds += int(min(n, 1))
		}
		field.Mask = kinds <= draw.MaxCategories
	}
}

// classes returns the number of pixels of each value of a mask. It returns nil if the values lie 100 or more apart:
// some of the 100 bins of the histogram then hold several integers.
func (f *Field) classes() (out []Count) {
	if !f.Mask {
		return nil
	}
	h := f.Stats.Bands[0].Histogram
	if h.Edges[len(h.Edges)-1]-h.Edges[0] >= float64(len(h.Counts)) {
		return nil
	}
	for i, n := range h.Counts {
		if n > 0 {
			value := math.Ceil(h.Edges[i]) // the one integer of the bin
			out = append(out, Count{fmt.Sprint(int64(value)), int64(min(n, math.MaxInt64))})
		}
	}
	return out
}

// warn adds the warnings and notes about the dataset.
func (m *maker) warn() {
	if n := max(m.nBad, m.Skipped); n > 0 {
		text := plural(n, "sample", "samples") + " cannot be read"
		if slices.ContainsFunc(m.Report.Fields, func(f Field) bool { return f.Stats != nil }) {
			text += ", or not together with the first, and count in no statistics"
		}
		var items []string
		for _, row := range slices.Sorted(maps.Keys(m.bad)) {
			items = append(items, fmt.Sprintf("sample %d: %s", row, m.bad[row]))
		}
		m.alarm(text+".", withMore(items, n))
	}
	for i := range m.Report.Fields {
		if field := &m.Report.Fields[i]; field.Kind == catalog.Raster {
			m.warnRaster(field)
		} else if field.Missing > 0 {
			m.note(fmt.Sprintf("Field %q has no value in %s.", field.Name, plural(field.Missing, "sample", "samples")))
		}
	}
	if m.misplaced > 0 {
		m.alarm(plural(m.misplaced, "raster lies", "rasters lie")+
			" at another place on the ground than the first raster of the sample.", withMore(m.elsewhere, m.misplaced))
	}
	if m.unplaced > 0 {
		m.note("Rasters without a place on the ground are paired by their sizes.")
	}
}

func (m *maker) warnRaster(f *Field) {
	for _, mixed := range []struct {
		what  string
		tally *Tally
	}{{"shapes", &f.Shapes}, {"CRSs", &f.CRS}, {"nodata values", &f.NoData}} {
		counts := mixed.tally.Counts()
		if len(counts) < 2 {
			continue
		}
		var items []string
		for _, c := range counts[:min(len(counts), maxNamed)] {
			items = append(items, fmt.Sprintf("%s: %s", c.Name, plural(c.N, "asset", "assets")))
		}
		m.alarm(fmt.Sprintf("Field %q has assets of different %s.", f.Name, mixed.what),
			withMore(items, int64(len(counts))))
	}
	if f.Assets > 0 && f.NoData.counts[none] == f.Assets && !f.Mask {
		m.note(fmt.Sprintf("Field %q declares no nodata value: a fill value would count as data.", f.Name))
	}
}

// withMore adds to the first of n items how many more there are.
func withMore(first []string, n int64) []string {
	if hidden := n - int64(len(first)); hidden > 0 && len(first) > 0 {
		return append(first, fmt.Sprintf("and %s more", thousands(hidden)))
	}
	return first
}
