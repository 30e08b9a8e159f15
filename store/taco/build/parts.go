package build

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
)

// partName is the name of part i of a container in several.
func partName(i int) string { return fmt.Sprintf("part%04d.tacozip", i) }

// parts writes the container in parts into a new folder, with an index of them unless they are Tortillas.
func (w *writer) parts(ctx context.Context, path string) (_ *Result, err error) {
	groups, err := w.cuts(ctx)
	if err == nil {
		err = w.allColumns(ctx)
	}
	if err != nil {
		return nil, err
	}
	var sum Result
	err = w.onto(ctx, path, func(ctx context.Context, t folderSink) error {
		var zips []string
		for i, tops := range groups {
			part := &writer{o: w.o, collection: w.collection, levels: picked(w.levels, tops), partitions: len(groups)}
			part.files = part.copyFiles
			name := partName(i)
			switch w.o.Form {
			case Cozip:
				name = strings.TrimSuffix(name, ".tacozip") + ".zip"
			case TortillaFile:
				name = tortilla.PartName(filepath.Base(path)+".tortilla", i)
			}
			w.partOf(part, tops)
			if err := part.measure(ctx); err != nil {
				return err
			}
			archive, err := part.archived(ctx)
			if err == nil {
				_, err = t.put(ctx, name, archive)
			}
			if err != nil {
				return err
			}
			zips = append(zips, t.path(name))
			sum.add(&part.result)
		}
		if w.o.Form == TortillaFile {
			return nil
		}
		files, err := w.partIndex(ctx, zips, t.path(tacocatName))
		if err != nil {
			return err
		}
		_, err = putAll(ctx, t, tacocatName+"/", files)
		return err
	})
	return &sum, err
}

// allColumns makes the structure and the columns of all parts of a TACO 3.
func (w *writer) allColumns(ctx context.Context) error {
	if w.o.Form != Cozip {
		return nil
	}
	if err := w.name(ctx); err != nil {
		return err
	}
	byName := map[string]*tables.Table{}
	for _, level := range w.named.levels {
		columns, err := w.columnsOf(ctx, level)
		if err != nil {
			return fault.WithPart(err, level.Name, fault.NoOffset)
		}
		byName[level.Name] = columns
	}
	w.columns = byName
	return nil
}

// partOf gives a part of a TACO 3, which has some rows of level 0, its structure and columns.
func (w *writer) partOf(part *writer, tops []int) {
	if w.named == nil {
		return
	}
	part.collection.structure, part.columns = w.named.paths, map[string]*tables.Table{}
	number := make(map[int]int32, len(w.named.levels[0].rows)) // of the sample in a row of level 0
	for i, row := range w.named.levels[0].rows {
		number[int(row)] = int32(i)
	}
	for _, level := range w.named.levels {
		first, list := model.Group(level.samples, len(w.named.levels[0].rows))
		var rows []int
		for _, top := range tops {
			if i, ok := number[top]; ok { // padding has no number
				for _, row := range list[first[i]:first[i+1]] {
					rows = append(rows, int(row))
				}
			}
		}
		part.columns[level.Name] = w.columns[level.Name].Take(rows)
	}
}

// cuts returns the samples of level 0 of each part.
func (w *writer) cuts(ctx context.Context) (groups [][]int, err error) {
	sizes, err := w.sizes(ctx)
	if err != nil {
		return nil, err
	}
	size, part := int64(0), []int(nil)
	for row, bytes := range sizes {
		if size > 0 && bytes > w.o.PartBytes-size {
			groups = append(groups, part)
			part, size = nil, 0
		}
		part, size = append(part, row), size+bytes
	}
	return append(groups, part), nil
}

// sizes returns the size of the files of each row of level 0. It opens files whose size only their store knows.
func (w *writer) sizes(ctx context.Context) ([]int64, error) {
	sizes := make([]int64, len(w.levels[0].Rows))
	return sizes, each.Of(ctx, int64(len(sizes)), w.o.Workers, func(ctx context.Context, row int64) error {
		for _, p := range w.leaves(nil, place{0, int(row), ""}) {
			r := w.row(p)
			n, known := r.size()
			if !known {
				file, err := w.o.Opener.Open(ctx, r.uri())
				if err != nil {
					return fault.WithFile(err, r.uri())
				}
				if n, err = file.Size(), file.Close(); err != nil {
					return err
				}
			}
			sizes[row] += n
		}
		return nil
	})
}

// partIndex returns the index of the parts of a container.
func (w *writer) partIndex(ctx context.Context, zips []string, path string) ([]entry, error) {
	var o Options
	// Local parts need an opener of their own, since the one of the options may see other folders only.
	if w.o.Store != nil {
		if o.Opener = w.o.stored; o.Opener == nil {
			o.Opener = w.o.Opener
		}
	}
	form := Tacocat
	if w.o.Form == Cozip {
		form = CozipCatalog
	}
	x := indexOf(form)
	if err := gather(ctx, zips, path, x, o); err != nil {
		return nil, err
	}
	return x.encoded(ctx, form)
}

// picked returns rows of level 0 with all that is below them.
func picked(levels []*Level, rows []int) (out []*Level) {
	parents := model.UpTo[int32](len(rows))
	for _, l := range levels {
		p := &Level{Table: l.Table.Take(slices.Clone(rows))}
		out = append(out, p)
		var below []int
		var up []int32
		for i, row := range rows {
			r := l.Rows[row]
			r.Parent = parents[i]
			p.Rows = append(p.Rows, r)
			if l.first == nil {
				continue
			}
			p.first = append(p.first, int32(len(below)))
			for c := l.first[row]; c < l.first[row+1]; c++ {
				below, up = append(below, int(c)), append(up, int32(i))
			}
		}
		if l.first == nil {
			break
		}
		p.first = append(p.first, int32(len(below)))
		rows, parents = below, up
	}
	return out
}
