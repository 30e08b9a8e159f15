package store

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/source"
)

// Counts are the numbers of what was checked.
type Counts struct {
	Files  int64 `json:"files"`            // an array counts as one
	Arrays int64 `json:"arrays,omitempty"` // of TileDB and Zarr
	Rows   int64 `json:"rows"`             // of catalogs and containers
	Chunks int64 `json:"chunks"`           // decoded tiles, strips and frames, and tiles of arrays
	Bytes  int64 `json:"bytes"`            // decoded; for containers, bytes of their samples
	// Containers counts containers, and Samples their samples with bytes. Absent counts missing source files of
	// containers' catalogs.
	Containers int64 `json:"containers,omitempty"`
	Samples    int64 `json:"samples,omitempty"`
	Absent     int64 `json:"absent,omitempty"`
	// AbsentChunks counts the chunks of Zarr arrays that were not written, whose cells have the fill value.
	AbsentChunks int64 `json:"absent_chunks,omitempty"`
}

// Add adds the counts of another check.
func (c *Counts) Add(o Counts) {
	c.Files += o.Files
	c.Arrays += o.Arrays
	c.Rows += o.Rows
	c.Chunks += o.Chunks
	c.Bytes += o.Bytes
	c.Containers += o.Containers
	c.Samples += o.Samples
	c.Absent += o.Absent
	c.AbsentChunks += o.AbsentChunks
}

// Check is the check of every byte of one path. A Verifier takes the options from it and adds what it finds. Counts
// begin with one file.
type Check struct {
	// Opener opens the files. Key is the key of encrypted arrays, or nil. MaxChunk is the largest decoded chunk, in
	// bytes. Workers is how many chunks to decode at the same time, by a kind that holds Busy meanwhile. Pixels is set
	// if rasters are to be decoded that have checksums, too.
	Opener            source.Opener
	Key               []byte
	MaxChunk, Workers int
	Pixels            bool
	// Busy is held by the one check that uses all workers.
	Busy sync.Locker
	// Fault takes a fault of a row that does not end the check.
	Fault func(row int64, err error)
	// Guard calls f, and makes a panic of f an error about name.
	Guard func(name string, f func() error) error
	// Raster decodes every chunk of a sample, if it is a raster. o opens uri as the sample alone.
	Raster func(ctx context.Context, o source.Opener, row int64, sample, uri string) error

	Counts
	Notes []string // what is against a specification but can be read correctly
}
