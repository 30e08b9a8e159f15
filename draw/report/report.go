// Package report reads a whole dataset once and writes a report about it as one page of HTML: counts, bands,
// histograms, classes, nodata, sample chips and warnings.
//
// The page needs nothing else. It contains its style, drawings (SVG) and pictures (PNG), runs no script and
// sends no request, which its content security policy enforces. Text from files is escaped.
//
// # Memory
//
// The memory of a report has fixed limits that do not grow with the dataset: MaxKinds kinds of anything that is
// counted, and MaxSamples chips of a few hundred pixels. An asset whose bands decode to more than Options.MaxBytes is
// shown by a window from its middle.
package report

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader"
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
	// Low and High are the percentiles of each chip that are drawn black and white. Default: 2 and 98.
	Low, High float64
	// Side is the longest side of a chip's picture, in pixels. Default 192.
	Side int
	// MaxBytes is the memory for the decoded bands of one chip. Default 64 MiB.
	MaxBytes int64
	// Statistics of all samples, if they are known: pixels are then read for sample chips only.
	Statistics *stats.Report
	// Remarks are notes before those about the dataset.
	Remarks []Warning
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
	Assets    int64 // that could be opened
	Bytes     int64 // of their files; of files whose size is not known, of their pixels
	Stored    int64 // bytes of pixels as they are in the files
	Decoded   int64 // bytes of pixels
	Smallest  int64 // bytes of an asset
	Largest   int64
	Stats     *stats.FieldReport    // nil: not measured
	Classes   []Class               // of an integer field of one band with few values; by value
	colours   map[int64]color.NRGBA // of the classes
	first     *chunk.Index

	// Of values:
	Values Values
}

// Class is a value of a mask and the number of pixels that have it.
type Class struct {
	Value int64
	Count uint64
}

// Chip is one sample that is shown.
type Chip struct {
	ID       string
	Row      int64
	Pictures []Picture // of the first raster fields
	Values   []Value   // of the other fields
	Error    string    // why it cannot be shown
}

// Value is the value of a field without pixels, as text.
type Value struct{ Field, Text string }

// Picture is a raster of a chip.
type Picture struct {
	Field         string
	PNG           []byte
	Width, Height int // of the PNG
	Mask          bool
	Window        string // "" or the part of the asset that is shown
	Bands         string
}

// BandName returns the name of band i, or "band i" if it has none.
func (f *Field) BandName(i int) string {
	if i < len(f.BandNames) && strings.TrimSpace(f.BandNames[i]) != "" {
		return f.BandNames[i]
	}
	return fmt.Sprintf("band %d", i)
}
