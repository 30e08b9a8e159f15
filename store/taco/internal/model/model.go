// Package model has what all containers share: levels of rows, a tree of samples over them, and the
// place of each sample's bytes. A format fills in a Container and reads its levels; package taco
// builds paths, filters and datasets of several containers on it.
package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
)

// Kind says whether a sample has bytes or other samples.
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

// Whole is the offset and the size of an entry that is a whole file.
const Whole = -1

// Entry is one sample: its name, and where its bytes are.
type Entry struct {
	// ID is unique among siblings. Path has the ids from level 0 down, joined by "/".
	ID, Path string
	Kind     Kind
	// Padding marks a placeholder without content that fills up its folder.
	Padding bool
	// URI is the object with the bytes: Size bytes from Offset on, or the whole object if both are
	// Whole. For a folder it may be its own table of children, or empty.
	URI          string
	Offset, Size int64
	// Object has the size and tag of the object if the container's tables were read from it, so opening it
	// needs no request. It is zero for other files.
	Object source.Known
	// Level and Row are the place of the sample's row in the tables of the container or dataset.
	Level, Row int
	// Of is the sample that a chunk belongs to, nil if this is not a chunk, and Number the number
	// of the chunk in the sample's chunk index.
	Of     *Entry
	Number int
}

// Subfile returns the path under which GDAL opens the bytes of an entry, whose object it opens by path.
func Subfile(e Entry, path string) string {
	if e.Offset == Whole {
		return path
	}
	return source.SubfileName(path, e.Offset, e.Size)
}

// Named describes a container whose tables have names, such as "children/before". A level of the model joins the tables
// of a depth.
type Named struct {
	// Names are the names of the tables, those above first.
	Names []string
	// Rows returns a table as it is stored, and the level and the row in it at which its rows begin.
	Rows func(ctx context.Context, name string) (t *tables.Table, level, first int, err error)
	// Files are the paths of files that every sample has.
	Files []string
	// Sequence returns the sequence of files that a name means, with rows of this container, or nil.
	Sequence func(ctx context.Context, name string) (*Sequence, error)
	// Wide returns a table with a row for each sample: its number counted from first, its columns, and where its files
	// are: see Subfile. path returns the path under which GDAL opens an object.
	Wide func(ctx context.Context, first int, path func(uri string) string) (*tables.Table, error)
}

// Sequence says where the files of a sequence lie. Each sample has some, which are numbered from 0.
type Sequence struct {
	// Most is how many files a sample may have.
	Most int
	// Level is the level of the files.
	Level int
	// Rows are the rows of that level for each sample, in the order of their numbers. The rows of a sample are nil if
	// it has more files than Most, or other numbers than 0, 1, 2 and so on.
	Rows [][]int
}

// Chunks describes a container whose samples have named chunks.
type Chunks struct {
	// Of returns a chunk by its name below a sample ("10" of "roi_0::10"), or fault.NotFound.
	// The bytes of the entry are the compressed chunk.
	Of func(ctx context.Context, level, row int, name string) (Entry, error)
	// Named returns the chunk that the container stores under a root and an id ("roi_0/t0" and
	// "lrf::3"), or fault.NotFound.
	Named func(ctx context.Context, root, id string) (Entry, error)
	// Table is the table of all chunks, and Samples returns its rows that are not of histograms, where there are any.
	Table   *tables.Table
	Samples func() []int
}

// Report has the counts of Verify.
type Report struct {
	Rows   int64    // of all levels
	Files  int64    // samples whose bytes exist
	Bytes  int64    // of the samples
	Absent []string // URIs of missing source files of a catalog
	// Notes describe violations that can be read anyway.
	Notes []string
}

// Note adds a note. There are at most a hundred, because a container may have a million of the same.
func (r *Report) Note(format string, args ...any) {
	if len(r.Notes) < 100 {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}

// CutLast is strings.Cut at the last separator.
func CutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
