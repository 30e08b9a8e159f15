package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco"
)

// tortillaPart is the name of part i of a Tortilla. Parts are numbered from 0, as writers do.
func tortillaPart(whole string, i int) string { return fmt.Sprintf("%s.%04d.part.tortilla", whole, i) }

// partName is the name of part i of a container in several.
func partName(i int) string { return fmt.Sprintf("part%04d.tacozip", i) }

// split reports whether the container is to be written in parts.
func (o *Options) split() bool { return o.PartBytes > 0 || o.PartCount > 0 }

// parts writes the container in parts into a new folder, with an index of them unless they are Tortillas.
func (w *writer) parts(ctx context.Context, path string) (_ *Result, err error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"exists: a container in parts is a folder of them, which needs a new name"), path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ends, err := w.cuts(ctx)
	if err != nil {
		return nil, err
	}
	f, err := durable.NewFolder(path)
	if err != nil {
		return nil, err
	}
	var sum Result
	var zips []string
	for i, lo := 0, 0; err == nil && i < len(ends); i++ {
		part := &writer{o: w.o, collection: w.collection, levels: sliced(w.levels, lo, ends[i])}
		lo = ends[i]
		part.partitions = len(ends)
		part.files = part.copyFiles
		if err = part.measure(ctx); err == nil {
			name, write := partName(i), part.zip
			if w.o.Form == TortillaFile {
				name, write = tortillaPart(filepath.Base(path), i), part.tortilla
			}
			zips = append(zips, pathname.Join(f.Path, name))
			err = durable.WriteFile(zips[i], func(f *os.File) error { return write(ctx, disk(f)) })
		}
		sum.Samples, sum.Files = sum.Samples+part.result.Samples, sum.Files+part.result.Files
		sum.Folders, sum.Bytes = sum.Folders+part.result.Folders, sum.Bytes+part.result.Bytes
	}
	if err == nil && w.o.Form != TortillaFile {
		_, err = consolidate(ctx, zips, pathname.Join(f.Path, tacocatName), Options{Form: Tacocat})
	}
	if err == nil {
		err = f.Place(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return &sum, nil
}

// cuts returns, for each part, the row of level 0 behind its last.
func (w *writer) cuts(ctx context.Context) (ends []int, err error) {
	n := len(w.levels[0].ids)
	if count := w.o.PartCount; count > 0 {
		if count > n {
			return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"has %d samples at the top, which cannot be divided into %d parts", n, count)
		}
		for i := range count {
			ends = append(ends, (i+1)*n/count)
		}
		return ends, nil
	}
	size := int64(0)
	for row := range n {
		bytes, err := w.bytesOf(ctx, 0, row)
		if err != nil {
			return nil, err
		}
		if size > 0 && bytes > w.o.PartBytes-size {
			ends, size = append(ends, row), 0
		}
		size += bytes
	}
	return append(ends, n), nil
}

// bytesOf returns the size of the files of a row and of all below it.
func (w *writer) bytesOf(ctx context.Context, k, row int) (size int64, err error) {
	l := w.levels[k]
	if l.folders[row] {
		for c := l.first[row]; c < l.first[row+1]; c++ {
			n, err := w.bytesOf(ctx, k+1, int(c))
			if err != nil {
				return 0, err
			}
			size += n
		}
		return size, nil
	}
	c := &l.content[row]
	switch {
	case c.bytes != nil:
		return int64(len(c.bytes)), nil
	case c.entry != nil && c.entry.Size != taco.Whole:
		return int64(len(c.entry.Head)) + c.entry.Size, nil
	}
	uri := c.file
	if c.entry != nil {
		uri = c.entry.URI
	}
	r, err := w.o.Opener.Open(ctx, uri)
	if err != nil {
		return 0, fault.WithFile(err, uri)
	}
	return r.Size(), r.Close()
}

// sliced returns rows lo to hi of level 0 with all that is below them. Rows of a level are in the order of their
// parents, so that they are a range at every level.
func sliced(levels []*level, lo, hi int) (out []*level) {
	up := 0
	for k, l := range levels {
		s := &level{ids: l.ids[lo:hi], folders: l.folders[lo:hi], content: l.content[lo:hi]}
		rows := make([]int, hi-lo)
		for i := range rows {
			rows[i] = lo + i
			s.parents = append(s.parents, l.parents[lo+i]-int32(up))
		}
		if k == 0 {
			for i := range s.parents {
				s.parents[i] = int32(i)
			}
		}
		s.columns = l.columns.Take(rows)
		out = append(out, s)
		if l.first == nil {
			break
		}
		next, end := l.first[lo], l.first[hi]
		for _, c := range l.first[lo : hi+1] {
			s.first = append(s.first, c-next)
		}
		up, lo, hi = lo, int(next), int(end)
	}
	return out
}
