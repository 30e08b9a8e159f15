// Package model has what all containers share: levels of rows, a tree of samples over them, and the
// place of each sample's bytes. A format fills in a Container and reads its levels; package taco
// builds paths, filters and datasets of several containers on it.
package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store"
)

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
	Sequence func(ctx context.Context, name string) (*store.Sequence, error)
	// Wide returns a table with a row for each sample: its number counted from first, its columns, and where its files
	// are: see Subfile. path returns the path under which GDAL opens an object.
	Wide func(ctx context.Context, first int, path func(uri string) string) (*tables.Table, error)
}

// Chunks describes a container whose samples have named chunks.
type Chunks struct {
	// Of returns a chunk by its name below a sample ("10" of "roi_0::10"), or fault.NotFound.
	// The bytes of the entry are the compressed chunk.
	Of func(ctx context.Context, level, row int, name string) (store.Entry, error)
	// Named returns the chunk that the container stores under a root and an id ("roi_0/t0" and
	// "lrf::3"), or fault.NotFound.
	Named func(ctx context.Context, root, id string) (store.Entry, error)
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
