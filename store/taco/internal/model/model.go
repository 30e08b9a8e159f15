// Package model is what the containers have in common: levels of rows, a tree of samples over them,
// and for each sample the place of its bytes. Every format implements Container; package taco builds
// paths, filters and lists of several files on it.
package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables"
)

// Kind says whether a sample holds bytes or other samples.
type Kind uint8

const (
	// File is a sample with bytes.
	File Kind = iota
	// Folder is a sample with children.
	Folder
)

// String returns "FILE" or "FOLDER".
func (k Kind) String() string {
	if k == Folder {
		return "FOLDER"
	}
	return "FILE"
}

// Whole is the offset (and the size) of an entry that is a file of its own.
const Whole = -1

// Entry is one sample: what it is called, and where its bytes are.
type Entry struct {
	// ID is unique among the siblings; Path is the ids from level 0 down, joined by "/".
	ID, Path string
	Kind     Kind
	// Padding: the sample is a placeholder that fills up its folder, and holds nothing.
	Padding bool
	// URI is the object that holds the bytes: Size bytes from Offset on, or all of it where both are Whole.
	// Of a folder it may be its own table of children, or empty.
	URI          string
	Offset, Size int64
	// Object is what is known of the object, to open it by: it is the one that the container's tables were read
	// from. Zero for another file.
	Object source.Known
	// Part is the number of the container in a dataset of several; Level and Row are the place of the
	// sample's row in that container's tables.
	Part, Level, Row int
	// Of is the sample that a chunk is of, nil for what is no chunk, and Number the chunk's number in the
	// order of the sample's own index.
	Of     *Entry
	Number int
}

// Container is one opened container. Rows of a level are counted from 0 in the order they are stored,
// padding included. It is safe for concurrent use; what is asked for first is read then.
type Container interface {
	// URI is what the container was opened by.
	URI() string
	// Format is a short name of the format and its kind, such as "TACO 2 (ZIP)".
	Format() string
	// Collection is the JSON document about the whole dataset, or nil.
	Collection() json.RawMessage
	// Levels is the number of levels, at least 1.
	Levels() int
	// Table returns the rows of a level with the columns that are stored.
	Table(ctx context.Context, level int) (*tables.Table, error)
	// IDColumn names the column of the ids.
	IDColumn() string
	// Parents returns for each row of a level the row of the level above that it belongs to. At level 0
	// it is nil.
	Parents(ctx context.Context, level int) ([]int32, error)
	// Children returns the rows of the next level that belong to a row, in order. It is empty for a file.
	Children(ctx context.Context, level, row int) ([]int32, error)
	// Entry returns a sample; Path is empty, since only who walked down knows it.
	Entry(ctx context.Context, level, row int) (Entry, error)
	// Padding reports whether a row is a placeholder.
	Padding(ctx context.Context, level, row int) (bool, error)
	// Verify checks everything, and tells what it found.
	Verify(ctx context.Context, r *Report) error
	// Close releases what is held open.
	Close() error
}

// Sized is a container that knows about how much memory its tables take: what was loaded of them, and while nobody
// else loads more.
type Sized interface{ Bytes() int64 }

// Chunker is a container whose samples have chunks that can be named.
type Chunker interface {
	// Chunk returns the chunk of a name below a sample ("10" of "roi_0::10"), or fault.NotFound. The
	// entry's bytes are the compressed chunk.
	Chunk(ctx context.Context, level, row int, name string) (Entry, error)
	// NamedChunk returns the chunk that the container stores under a root and an id ("roi_0/t0" and
	// "lrf::3"), or fault.NotFound.
	NamedChunk(ctx context.Context, root, id string) (Entry, error)
	// Chunks returns the table of the chunks; those of histograms (Histogrammed) are left out unless stored.
	Chunks(ctx context.Context, stored bool) (*tables.Table, error)
}

// Histogrammed is a container that may hold histograms of its samples in a row of level 0 among them. That row, and what
// lies below it, is found by its path, but is no sample.
type Histogrammed interface {
	// HistogramRow returns the row of level 0 that holds the histograms, -1 if none does.
	HistogramRow() int
}

// HistogramRow returns the row of level 0 of a container that holds histograms of the samples, -1 if none does.
func HistogramRow(c Container) int {
	if h, ok := c.(Histogrammed); ok {
		return h.HistogramRow()
	}
	return -1
}

// Lazy is a container that reads the children of one sample without those of the others. The rows that
// its Children returns may then be provisional: they are good for calls of this container alone.
type Lazy interface {
	// ID returns the id of a row, provisional or not.
	ID(ctx context.Context, level, row int) ([]byte, error)
	// Settled returns the row of the level's table for a provisional one.
	Settled(ctx context.Context, level, row int) (int, error)
	// Deepen finds out how many levels there are, if that is not known. Levels may grow.
	Deepen(ctx context.Context) error
}

// Limits bound what one container may cost.
type Limits struct {
	// Table bounds what the tables take.
	Table tables.Options
}

// Report counts what Verify checked.
type Report struct {
	Rows    int64 // of all levels
	Files   int64 // samples with bytes that are there
	Folders int64 // tables of children that were read
	Bytes   int64 // of the samples
	Absent  int64 // source files of a TACOCAT that are not there
	// Notes are what is wrong but can be read right all the same.
	Notes []string
}

// Note adds a note, but no more than a hundred.
func (r *Report) Note(format string, args ...any) {
	if len(r.Notes) < 100 {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}
