package build

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
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
	// PartBytes and PartCount divide the container into several ZIPs in a new folder, with an index of them
	// (Tacocat), or into several Tortillas, which have the name of the folder and a number: of at most PartBytes
	// of files each, or with one sample of level 0 if that has more; or PartCount of them with as many samples
	// each. PartBy divides it into a ZIP for each value of a column of level 0, of strings or integers, which has the
	// value as its name. At most one of the three is set. Stream ignores them.
	PartBytes int64
	PartCount int
	PartBy    string
	// Shards say how MDS shards and tar files are written. Other forms ignore them.
	Shards Shards
	// More returns further columns: for each level a table with a row for each of its samples, or nil. They replace
	// columns of the same name. Create and Export call it once, after the samples are checked and before anything is
	// written.
	More func(ctx context.Context, levels []Level) ([]*tables.Table, error)
	// Inspect returns what makes further columns of the bytes of files, after More, whose columns levels have. They
	// replace columns of the same name. Create and Export of a ZIP or a folder that is not in parts read each file
	// once, for this and for the copy. Otherwise all files are read for it before anything is written.
	Inspect func(levels []Level) Inspection
	// Histograms returns the files of the folder "histogram" of a streaming TACO, which has the folders of the samples.
	// Its levels have the columns of More and Inspect. Other forms do not call it.
	Histograms func(ctx context.Context, levels []Level) ([]Histogram, error)
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)

	unique bool   // gather refuses a sample of level 0 whose id another has
	kept   string // the index whose columns of level 0 an append keeps; empty for none
}

// split reports whether the container is to be written in parts.
func (o *Options) split() bool { return o.PartBytes > 0 || o.PartCount > 0 || o.PartBy != "" }

// Shards say how MDS shards and tar files are written. The zero value selects the defaults.
//
// A file below a sample is a column of MDS shards, or a member of the tar, with the ids of its path joined by dots. The
// columns of level 0 are columns of MDS, or the member "json". Columns of the levels below are left out.
type Shards struct {
	// Bytes is the largest size of a shard. Default ShardBytes. A shard is in memory until it is complete.
	Bytes int64
	// Level is the level of zstd, 1 to 22, for MDS shards; 0 is no compression.
	Level int
	// BySplit divides the samples by the column "split" into folders of shards.
	BySplit bool
	// Name is the file name of a sample that is itself a file. Default "image" for rasters, "file" otherwise.
	Name string
	// Array decodes a raster. Without it, rasters are written as the files they are.
	Array func(ctx context.Context, o source.Opener, row *Row) (*Array, error) `json:"-"`
}

// ShardBytes is the default of Shards.Bytes; MosaicML Streaming has the same.
const ShardBytes = 64 << 20

// Array is a decoded raster: little-endian, in C order.
type Array struct {
	DType chunk.DType
	Shape []int
	Data  []byte
	// Release ends the use of Data, and may be nil.
	Release func()
}

// Histogram is a raster with the histograms of the rasters at one path below the samples.
type Histogram struct {
	Path  string
	Bytes []byte
}

// Result has the counts of a written container.
type Result struct {
	Samples int   // of level 0, without padding
	Files   int   // with bytes, padding included
	Folders int   // with a table of their own
	Bytes   int64 // of the files
}

func (r *Result) add(o *Result) {
	r.Samples, r.Files, r.Folders, r.Bytes = r.Samples+o.Samples, r.Files+o.Files, r.Folders+o.Folders, r.Bytes+o.Bytes
}
