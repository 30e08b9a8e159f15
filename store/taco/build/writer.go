package build

import (
	"context"

	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
)

// writer writes one container.
type writer struct {
	o          Options
	collection Collection
	levels     []*level
	result     Result
	partitions int  // files that a Tortilla is divided into; 0 is 1
	histograms bool // the last sample of level 0 has histograms
	// files hands the bytes of all files to put, in the order in which they are written. Afterwards levels and
	// collection are complete.
	files   func(ctx context.Context, put putter) error
	settled bool  // settle was called already
	work    *work // of a run that can be continued, else nil
}

// putter writes the bytes of a file.
type putter func(p place, l *loaded) error

// place is a row of a level.
type place struct {
	level, row int
	path       string
}

// order returns the files in the order in which they are written: those of a sample of level 0 one after the other, so
// that reading a sample is one request.
func (w *writer) order() []place {
	var all []place
	for i, id := range w.levels[0].ids {
		all = w.leaves(all, place{0, i, id})
		if !isPadding(id) {
			w.result.Samples++
		}
	}
	if w.histograms {
		w.result.Samples--
	}
	return all
}

// leaves appends the files of a row.
func (w *writer) leaves(all []place, p place) []place {
	l := w.levels[p.level]
	if !l.folders[p.row] {
		return append(all, p)
	}
	for c := l.first[p.row]; c < l.first[p.row+1]; c++ {
		all = w.leaves(all, place{p.level + 1, int(c), p.path + "/" + w.levels[p.level+1].ids[c]})
	}
	return all
}

// copyFiles loads the files in order and hands each to put.
func (w *writer) copyFiles(ctx context.Context, put putter) error {
	files := w.order()
	return inorder.Do(ctx, len(files), w.o.Workers,
		func(ctx context.Context, i int) (*loaded, error) {
			return load(ctx, w.o.Opener, &w.levels[files[i].level].content[files[i].row])
		},
		func(i int, l *loaded) error {
			err := put(files[i], l)
			if cerr := l.close(); err == nil {
				err = cerr
			}
			w.result.Files++
			w.result.Bytes += l.size
			if err == nil && w.o.Progress != nil {
				w.o.Progress(i+1, len(files))
			}
			return err
		},
		func(l *loaded) { _ = l.close() })
}

// folderRows returns the folders of a level.
func (w *writer) folderRows(k int) (rows []int) {
	for i, folder := range w.levels[k].folders {
		if folder {
			rows = append(rows, i)
		}
	}
	return rows
}

// Names in a container.
const (
	dataFolder = "DATA/"
	metaSuffix = "/" + taco2.MetaName
)

// typed gives the columns the types that the description declares.
func (w *writer) typed(ctx context.Context) error {
	levels := make([]*tables.Table, len(w.levels))
	for k, l := range w.levels {
		levels[k] = l.columns
	}
	if err := typed(ctx, w.collection.Columns, levels); err != nil {
		return err
	}
	for k, l := range w.levels {
		l.columns = levels[k]
	}
	return nil
}

// measure replaces the extent of the description by that of the samples, as far as they have one.
func (w *writer) measure(ctx context.Context) error {
	e, err := extentOf(ctx, w.levels)
	if err != nil || e == nil {
		return err
	}
	if e.Temporal == nil && w.collection.Extent != nil {
		e.Temporal = w.collection.Extent.Temporal
	}
	w.collection.Extent = e
	return nil
}
