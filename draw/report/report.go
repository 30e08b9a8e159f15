// Package report reads a whole dataset once and writes a report about it as one page of HTML: counts, bands,
// histograms, classes, nodata, a map of footprints, sample chips and warnings.
//
// The page needs nothing else. It contains its style, drawings (SVG) and pictures (PNG), runs no script and
// sends no request, which its content security policy enforces. Text from files is escaped.
//
// # Memory
//
// The memory of a report has fixed limits that do not grow with the dataset: MaxFootprints footprints, MaxKinds
// kinds of anything that is counted, and MaxSamples chips of a few hundred pixels. An asset whose bands decode to
// more than Options.MaxBytes is shown by a window from its middle.
package report

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"log/slog"
	"slices"
	"strings"
	"sync"

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
	// Each footprint needs to open a file, so that a random choice of this many stands for more.
	MaxFootprints = 5000
	MaxKinds      = 64  // different shapes, CRSs or values that are counted one by one
	MaxSamples    = 256 // chips
	MaxBands      = 256 // rows in the table of bands
	maxNamed      = 8   // samples that a warning names
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
	// Bands of the first field to show: one, or three as red, green and blue. Default: the first three,
	// or the first.
	Bands []int
	// Low and High are the percentiles of each chip that are drawn black and white. Default: 2 and 98.
	Low, High float64
	// Side is the longest side of a chip's picture, in pixels. Default 192.
	Side int
	// MaxBytes is the memory for the decoded bands of one chip. Default 64 MiB.
	MaxBytes int64
	// Loader options for reading. Its Logger is not used.
	Loader loader.Options
	// Progress is called as the work goes on, by one goroutine at a time. May be nil.
	Progress func(step string, done, total int64)
}

func (o Options) withDefaults() Options {
	if len(o.Fields) == 0 {
		o.Fields = []loader.Field{{Name: "image"}}
	}
	if o.Title == "" {
		o.Title = o.Source
	}
	if o.Side == 0 {
		o.Side = 192
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	return o
}

func (o *Options) validate() error {
	if o.Samples < 0 || o.Samples > MaxSamples {
		return fmt.Errorf("report: samples is %d: it must be from 0 to %d", o.Samples, MaxSamples)
	}
	if o.Side < 1 || o.MaxBytes < 1 {
		return fmt.Errorf("report: the side is %d and max-bytes %d: both must be at least 1", o.Side, o.MaxBytes)
	}
	if n := len(o.Bands); n != 0 && n != 1 && n != 3 {
		return fmt.Errorf("report: %d bands are selected: it must be one or three", n)
	}
	return nil
}

// Report is what Make found in a dataset.
type Report struct {
	Title, Source, Fingerprint, Generator string

	Samples int64
	Skipped int64 // samples that are not in the statistics
	Seed    uint64
	Fields  []Field
	Map     Map
	Chips   []Chip
	// Warnings are about what may be wrong, Notes about what may be of interest.
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
	BandNames  []string // of the first asset
	Shapes     Tally    // "bands × height × width dtype"
	CRS        Tally
	NoData     Tally
	Codecs     Tally
	Assets     int64 // that could be opened
	Bytes      int64 // of their files; of files whose size is not known, of their pixels
	Stored     int64 // bytes of pixels as they are in the files
	Decoded    int64 // bytes of pixels
	Sizes      Sizes
	Stats      *stats.FieldReport    // nil: not measured
	Classes    []Class               // of an integer field of one band with few values; by value
	colours    map[int64]color.NRGBA // of the classes
	first      *chunk.Index
	firstAsset catalog.Asset

	// Of values:
	Values Values
}

// Class is a value of a mask and the number of pixels that have it.
type Class struct {
	Value int64
	Count uint64
}

// Count is a kind of something and how many of it there are.
type Count struct {
	Name string
	N    int64
}

// Tally counts how often strings occur, MaxKinds strings one by one.
type Tally struct {
	n     map[string]int64
	Other int64 // occurrences of all other strings
}

func (t *Tally) add(name string) {
	if t.n == nil {
		t.n = map[string]int64{}
	}
	if _, known := t.n[name]; !known && len(t.n) >= MaxKinds {
		t.Other++
		return
	}
	t.n[name]++
}

// Kinds returns the number of kinds that were told apart.
func (t *Tally) Kinds() int { return len(t.n) }

// Of returns how many of a kind there are.
func (t *Tally) Of(name string) int64 { return t.n[name] }

// Counts returns the kinds, the most frequent first.
func (t *Tally) Counts() []Count {
	out := make([]Count, 0, len(t.n))
	for name, n := range t.n {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int {
		switch {
		case a.N > b.N:
			return -1
		case a.N < b.N:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
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
	t, err := rows.OpenTable(ctx, loader.Spec{Source: o.Source, Fields: o.Fields}, o.Loader)
	if err != nil {
		return nil, err
	}
	m := &maker{Options: o, table: t, last: -1, bad: map[int64]string{}, Report: &Report{
		Title: o.Title, Source: o.Source, Generator: o.Generator, Seed: o.Seed,
		Fingerprint: t.Fingerprint(), Samples: t.Len(),
	}}
	return m.Report, errors.Join(m.run(ctx), t.Close())
}

func (m *maker) run(ctx context.Context) error {
	for i, f := range m.Options.Fields {
		m.Report.Fields = append(m.Report.Fields, Field{Name: f.Name, Kind: m.table.Kind(i)})
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

// measurable returns the raster fields that package stats measures, as indices.
func (m *maker) measurable() (list []int) {
	for i := range m.Report.Fields {
		if f := &m.Report.Fields[i]; f.Kind == catalog.Raster && f.first != nil {
			if _, err := stats.NewField(f.first.DType, f.first.Bands); err == nil {
				list = append(list, i)
			} else {
				m.note(fmt.Sprintf("Field %q is not measured: its dtype is %s.", f.Name, f.first.DType))
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
	r, err := survey.Stats(ctx, sp, o, progress)
	if fault.KindOf(err) != 0 && sp.BadSamples == spec.BadError {
		sp.BadSamples = spec.BadSkip
		r, err = survey.Stats(ctx, sp, o, progress)
	}
	switch {
	case fault.KindOf(err) != 0: // statistics need one readable sample for shape and dtype
		m.alarm("Nothing was measured, because no sample can be read: "+fault.Line(err), nil)
		return nil
	case err != nil:
		return err
	}
	m.Skipped = r.Skipped
	for _, i := range list {
		f := &m.Report.Fields[i]
		s := r.Fields[f.Name]
		f.Stats = &s
	}
	return nil
}

// mixed reports whether assets of a field differ in number of bands or dtype, which statistics cannot combine.
func (m *maker) mixed(list []int) bool {
	for _, i := range list {
		kinds := map[string]bool{}
		f := &m.Report.Fields[i]
		for _, c := range f.Shapes.Counts() {
			bands, _, _ := strings.Cut(c.Name, " ")
			kinds[bands+c.Name[strings.LastIndexByte(c.Name, ' '):]] = true
		}
		if len(kinds) > 1 || f.Shapes.Other > 0 {
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
func (s *skipped) WithGroup(string) slog.Handler      { return s }

func (m *maker) alarm(text string, items []string) {
	m.Warnings = append(m.Warnings, Warning{text, items})
}

func (m *maker) note(text string, items ...string) {
	m.Notes = append(m.Notes, Warning{text, items})
}

// BandName returns the name of band i, or "band i" if it has none.
func (f *Field) BandName(i int) string {
	if i < len(f.BandNames) && strings.TrimSpace(f.BandNames[i]) != "" {
		return f.BandNames[i]
	}
	return fmt.Sprintf("band %d", i)
}

// Panels returns one panel for each of the first limit bands.
func (f *Field) Panels(limit int) []draw.Panel {
	if f.Stats == nil {
		return nil
	}
	var p []draw.Panel
	for i, b := range f.Stats.Bands[:min(limit, len(f.Stats.Bands))] {
		p = append(p, draw.Panel{Name: f.BandName(i), Integer: integer(f.Stats.DType), Band: b})
	}
	return p
}
