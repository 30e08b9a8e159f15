package build

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/visible"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// folderTree makes the folders of samples that paths of ids name, in their order.
type folderTree struct {
	top     *Tortilla
	folders map[string]*Tortilla
}

func newTree() *folderTree {
	top := &Tortilla{}
	return &folderTree{top, map[string]*Tortilla{"": top}}
}

// file adds a sample that is a file.
func (t *folderTree) file(path, file string) { t.add(path, Sample{File: file}) }

// add adds a sample to the folder that its path says.
func (t *folderTree) add(path string, s Sample) {
	cut := max(strings.LastIndexByte(path, '/'), 0)
	s.ID = strings.TrimPrefix(path[cut:], "/")
	above := t.folder(path[:cut])
	above.Samples = append(above.Samples, s)
}

// folder returns the folder at a path. It makes the folder if it does not exist yet. A folder is a sample of the one
// above it.
func (t *folderTree) folder(path string) *Tortilla {
	if folder := t.folders[path]; folder != nil {
		return folder
	}
	folder := &Tortilla{}
	t.folders[path] = folder
	t.add(path, Sample{Children: folder})
	return folder
}

// Scan returns the files of a local directory as samples, and its directories as folders of them, each in the order of
// the bytes of their names, which are the ids. Names that begin with "." are left out, and so are empty directories.
// Links are followed.
//
// The files in skip are left out. Callers that write a container into dir name it there, so a second run does not
// pack the container of the first. So are masks, metadata and world files beside rasters (catalog.FilesBeside), since
// none count in a container: Scan returns their paths.
func Scan(ctx context.Context, dir string, skip ...string) (samples *Tortilla, beside []string, err error) {
	opener, files, left := &openers.Files{}, []visible.Entry(nil), map[string]bool{}
	err = visible.Each(ctx, opener, dir, func(found visible.Entry) error {
		switch skipped := slices.ContainsFunc(skip, func(name string) bool { return sameFile(name, found.Path) }); {
		case skipped && found.Dir:
			return fs.SkipDir
		case skipped || found.Dir:
			return nil
		case magic.Named(found.Name).Class.Pixels():
			for _, path := range catalog.FilesBeside(ctx, opener, found.Path) {
				beside, left[filepath.Clean(path)] = append(beside, path), true
			}
		}
		files = append(files, found)
		return nil
	})
	tree := newTree()
	for _, file := range files {
		if !left[filepath.Clean(file.Path)] {
			tree.file(file.Name, file.Path)
		}
	}
	if err == nil && len(tree.top.Samples) == 0 {
		err = fault.New(fault.NotFound, "folder", "has no files")
	}
	return tree.top, beside, fault.WithFile(err, dir)
}

// sameFile reports whether two names are of one file or directory. They need not exist.
func sameFile(a, b string) bool {
	first, err := os.Lstat(a)
	if err != nil {
		return false
	}
	second, err := os.Lstat(b)
	return err == nil && os.SameFile(first, second)
}

// Columns of a table of samples: see Listed.
const (
	ListID   = "id"
	ListPath = "path"
)

// List is the samples of a table, in the order of its rows.
type List struct {
	Samples *Tortilla
	// Declared are columns that Columns also returns of a level where they have no value.
	Declared map[string]Declared

	table *tables.Table
	rows  map[string]int // by the path of ids
}

// Listed reads a table with a row for each sample. The column "id" has the ids from level 0 down, such as
// "tile_00/img.tif", and "path" the file or URI with the bytes, relative to dir; it is null for a folder, which may
// lack a row if it has no columns. The other columns belong to the samples: see List.Columns.
func Listed(ctx context.Context, t *tables.Table, dir string) (*List, error) {
	ids, err := textOf(ctx, t, ListID)
	if err != nil {
		return nil, err
	}
	files, err := textOf(ctx, t, ListPath)
	if err != nil {
		return nil, err
	}
	tree := newTree()
	list := &List{Samples: tree.top, table: t, rows: make(map[string]int, t.Len())}
	for row := range t.Len() {
		if ids.Null(row) {
			return nil, badRow(row, "id is null")
		}
		path, file := ids.Str(row), ""
		if strings.Count(path, "/") >= taco2.MaxLevels {
			return nil, fault.New(fault.Limit, "row "+strconv.Itoa(row), "id has %d levels, at most %d",
				strings.Count(path, "/")+1, taco2.MaxLevels)
		}
		if !files.Null(row) {
			file = source.ResolveFrom(files.Str(row), func(name string) string {
				name = source.LocalPath(name)
				if name != "" && !source.IsRemote(name) && !filepath.IsAbs(name) {
					name = pathname.Join(dir, name)
				}
				return name
			})
		}
		// Otherwise the folder of "/a" would be the top, and its columns lost.
		if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") || path == "" {
			return nil, badRow(row, "id is "+strconv.Quote(path)+": an id in it is empty")
		}
		if _, again := list.rows[path]; again {
			return nil, badRow(row, "id is "+strconv.Quote(path)+", as of row "+strconv.Itoa(list.rows[path]))
		}
		list.rows[path] = row
		if file == "" {
			tree.folder(path)
			continue
		}
		tree.file(path, file)
	}
	// After all rows were read, because the row of a folder may stand before the rows of what is below it.
	for row := range t.Len() {
		path := ids.Str(row)
		folder := tree.folders[path]
		switch {
		case folder != nil && !files.Null(row) && files.Str(row) != "":
			return nil, badRow(row, "sample "+strconv.Quote(path)+" has a path, and samples below it")
		case folder != nil && len(folder.Samples) == 0:
			return nil, badRow(row, "sample "+strconv.Quote(path)+" has neither a path nor samples below it")
		}
	}
	return list, nil
}

// badRow returns an error about a row of a table of samples.
func badRow(row int, what string) error { return unsupported("row "+strconv.Itoa(row), "%s", what) }

// textOf returns a column of text.
func textOf(ctx context.Context, t *tables.Table, name string) (*tables.Vector, error) {
	values, err := t.Column(ctx, name)
	if err == nil && values.Kind() != tables.String && values.Kind() != tables.Null {
		err = unsupported("column "+name, "is of type %v, not text", values.Type())
	}
	return values, err
}

// Columns returns the columns of each level, as Options.More does: the columns of the table that have a value in some
// row of the level, or are declared of it.
func (l *List) Columns(ctx context.Context, levels []Level) ([]*tables.Table, error) {
	out := make([]*tables.Table, len(levels))
	above := []string{}
	for k := range levels {
		paths, rows := make([]string, len(levels[k].Rows)), make([]int, len(levels[k].Rows))
		for i := range rows {
			r := &levels[k].Rows[i]
			if paths[i] = r.ID; k > 0 {
				paths[i] = above[r.Parent] + "/" + r.ID
			}
			rows[i] = -1
			if row, ok := l.rows[paths[i]]; ok {
				rows[i] = row
			}
		}
		above = paths
		found := &Columns{}
		for i, column := range l.table.Columns() {
			if column.Name == ListID || column.Name == ListPath {
				continue
			}
			values, err := l.table.At(ctx, i)
			if err == nil {
				values, err = values.Take(rows)
			}
			if err != nil {
				return nil, fault.WithPart(err, "column "+column.Name, fault.NoOffset)
			}
			if _, keep := l.Declared[keyOf(k, column.Name)]; keep || someValue(values) {
				found.Add(column.Name, values)
			}
		}
		if found.Len() > 0 {
			out[k] = found.Table(len(rows))
		}
	}
	return out, nil
}

// someValue reports whether a value is not null.
func someValue(v *tables.Vector) bool {
	for i := range v.Len() {
		if !v.Null(i) {
			return true
		}
	}
	return false
}
