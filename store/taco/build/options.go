package build

import (
	"context"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables"
)

// Options configure Create. The zero value selects the defaults.
type Options struct {
	// Form is the form of the container.
	Form Form
	// Opener opens the files of samples. The default opens local files.
	Opener source.Opener
	// Store is where the container is written, whose path is then a URI. The default is the local disk.
	Store Store
	// Bytes is about how many bytes the files of a Stream have, 0 if that is not known: a Store asks for it.
	Bytes int64
	// Workers is how many files are read at a time, and how many tables are written. The default is the number
	// of processors, at least 4. The container does not depend on it.
	Workers int
	// PartBytes, if it is not 0, divides the container into several ZIPs in a new folder, with an index of them
	// (Tacocat), or into several Tortillas, which have the name of the folder and a number: of at most PartBytes
	// of files each, or with one sample of level 0 if that has more. Stream ignores it.
	PartBytes int64
	// More returns further columns. Create and Export call it once, after the samples are checked and before anything
	// is written.
	More More
	// Inspect returns what makes further columns of the bytes of files, after More, whose columns levels have. They
	// replace columns of the same name. Create and Export of a ZIP or a folder that is not in parts read each file
	// once, for this and for the copy. Otherwise all files are read for it before anything is written.
	Inspect func(levels []Level) Inspection
	// Histograms returns the files of the folder "histogram" of a streaming TACO, which has the folders of the samples.
	// Its levels have the columns of More and Inspect. Other forms do not call it.
	Histograms func(ctx context.Context, levels []Level) ([]Histogram, error)
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// open fills in the opener, and returns what ends the use of it.
func (o *Options) open() (done func()) {
	if o.Opener != nil {
		return func() {}
	}
	files := &source.Files{}
	o.Opener = files
	return func() { _ = files.Close() } // they were only read
}

// split reports whether the container is to be written in parts.
func (o *Options) split() bool { return o.PartBytes > 0 }

// Histogram is a raster with the histograms of the rasters at one path below the samples.
type Histogram struct {
	Path  string
	Bytes []byte
}

// Result has the counts of a written container.
type Result struct {
	Samples int   // of level 0, without padding
	Files   int   // with bytes, padding included
	Bytes   int64 // of the files
}

func (r *Result) add(o *Result) {
	r.Samples, r.Files, r.Bytes = r.Samples+o.Samples, r.Files+o.Files, r.Bytes+o.Bytes
}

// More returns further columns of samples: for each level a table with a row for each of its samples, or nil. They
// replace columns of the same name.
type More func(ctx context.Context, levels []Level) ([]*tables.Table, error)

// Inspection computes columns from the bytes of files: see Options.Inspect.
type Inspection struct {
	// File is called once for each file, without padding, by several goroutines. r reads the bytes of the row of
	// Level.Rows with that number; File does not close it, and does not use it after it returns. File is nil if no
	// column needs the bytes.
	File func(ctx context.Context, level, row int, r source.Reader) error
	// Columns returns for each level a table with a row for each of its samples, or nil. It is called once, after
	// File was called for all files.
	Columns func(ctx context.Context) ([]*tables.Table, error)
}

// adds reports whether the options add columns.
func (o *Options) adds() bool { return o.More != nil || o.Inspect != nil }
