// Package report looks at a whole dataset once and writes what it found as one page of HTML: counts,
// bands, histograms, classes, nodata, a map of footprints, sample chips and what is odd.
//
// The page stands alone: its style, drawings (SVG) and pictures (PNG) are in it, it runs no script and
// asks nothing of any host, which a content security policy in it makes sure of. Text from files is
// escaped.
//
// # Memory
//
// What is kept does not grow with the dataset past fixed limits: MaxFootprints footprints, MaxKinds
// kinds of anything that is counted, MaxSamples chips brought down to a few hundred pixels. An asset
// whose shown bands decode to more than Options.MaxBytes is shown by a window from its middle.
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
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Limits of a report.
const (
	MaxFootprints = 5000 // assets whose georeferencing is looked at; of more, a random choice
	MaxKinds      = 64   // different shapes, CRSs, values … that are told apart
	MaxSamples    = 256  // chips
	MaxBands      = 256  // rows in the table of bands
	maxNamed      = 8    // samples that a warning names
)

// Options of Make.
type Options struct {
	// Source and Fields say what the dataset is, as in loader.Spec. Default: one raster "image".
	Source string
	Fields []loader.Field
	// Seed of the order whose first samples are shown.
	Seed uint64
	// Title of the page. Default: Source.
	Title string
	// Generator is what the page says it was made by; empty for nothing.
	Generator string
	// Samples to show, at most MaxSamples. Default 18, or 16 where a sample has several rasters.
	Samples int
	// Bands of the first field to show: one, or three as red, green and blue. Default: the first three,
	// or the first.
	Bands []int
	// Low and High are the percentiles of each chip that become black and white. Default: 2 and 98.
	Low, High float64
	// Side is the longer side of a chip's picture in pixels, at most. Default 192.
	Side int
	// MaxBytes bounds the decoded bands of one chip. Default 64 MiB.
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
		return fmt.Errorf("report: %d samples to show, where at most %d are", o.Samples, MaxSamples)
	}
	if o.Side < 1 || o.MaxBytes < 1 {
		return fmt.Errorf("report: chips of at most %d pixels a side and %d bytes", o.Side, o.MaxBytes)
	}
	if n := len(o.Bands); n != 0 && n != 1 && n != 3 {
		return fmt.Errorf("report: %d bands, where one or three make a picture", n)
	}
	return nil
}

// Report is what was found.
type Report struct {
	Title, Source, Fingerprint, Generator string

	Samples int64
	Skipped int64 // samples that are not in the statistics
	Seed    uint64
	Fields  []Field
	Map     Map
	Chips   []Chip
	// Warnings are what may be wrong; Notes what one may want to know.
	Warnings, Notes []Warning
}

// Warning is a sentence, and what it is about.
type Warning struct {
	Text  string
	Items []string
}

// Field is one member of the samples.
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

// Class is a value of a mask and the number of samples that have it.
type Class struct {
	Value int64
	Count uint64
}

// Count is a kind of something and how many of it there are.
type Count struct {
	Name string
	N    int64
}

// Tally counts kinds of something, up to MaxKinds apart.
type Tally struct {
	n     map[string]int64
	Other int64 // of further kinds
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
	table loader.Table
	bad   map[int64]string // the first samples that cannot be read, and why
	nBad  int64
	last  int64 // the last sample that was counted as bad
}

// Make looks at a dataset: the header of every asset, every pixel (loader.Stats), and a few chips. Samples
// that cannot be read become warnings. Errors are those of catalog.Open, of options that make no sense,
// and of ctx.
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
		o.Loader.MaxChunkBytes = loader.DefaultMaxChunkBytes
	}
	t, err := loader.OpenTable(ctx, loader.Spec{Source: o.Source, Fields: o.Fields}, o.Loader)
	if err != nil {
		return nil, err
	}
	m := &maker{Options: o, table: t, last: -1, bad: map[int64]string{}, Report: &Report{
		Title: o.Title, Source: o.Source, Generator: o.Generator, Seed: o.Seed, Fingerprint: t.Fingerprint(), Samples: t.Len(),
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

// isBad notes a sample that cannot be read. Errors that are not of a file are returned.
func (m *maker) isBad(row int64, err error) error {
	if err == nil {
		return nil
	}
	if fault.KindOf(err) == 0 {
		return err
	}
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
				m.note(fmt.Sprintf("Field %q is not measured: its samples are %s.", f.Name, f.first.DType))
			}
		}
	}
	return list
}

// measure runs loader.Stats. Samples that cannot be read are left out; only if there are some is a
// sample decoded twice.
func (m *maker) measure(ctx context.Context) error {
	list := m.measurable()
	if len(list) == 0 {
		return nil
	}
	spec := loader.Spec{Source: m.Options.Source, BatchSize: 1, BadSamples: loader.BadError}
	for _, i := range list {
		spec.Fields = append(spec.Fields, m.Options.Fields[i])
	}
	o := m.Loader
	skipped := &skipped{m: m}
	o.Logger = slog.New(skipped)
	if m.nBad > 0 || m.mixed(list) {
		spec.BadSamples = loader.BadSkip
	}
	progress := func(done, total int64) { m.Progress("measuring", done, total) }
	r, err := loader.Stats(ctx, spec, o, progress)
	if fault.KindOf(err) != 0 && spec.BadSamples == loader.BadError {
		spec.BadSamples = loader.BadSkip
		r, err = loader.Stats(ctx, spec, o, progress)
	}
	switch {
	case fault.KindOf(err) != 0: // one that can be read says what the others have to be like
		m.alarm("Nothing was measured, as no sample can be read: "+fault.Line(err), nil)
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

// mixed reports whether assets of a field differ in what statistics need to agree.
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

// skipped is a slog.Handler that notes the samples which loader.Stats leaves out.
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

// BandName returns what band i of a field is called.
func (f *Field) BandName(i int) string {
	if i < len(f.BandNames) && strings.TrimSpace(f.BandNames[i]) != "" {
		return f.BandNames[i]
	}
	return fmt.Sprintf("band %d", i)
}

// Panels returns a panel a band, of at most limit bands.
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
