package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// pair makes samples of the files whose paths match the fields' patterns. Without patterns it does nothing. uris are
// the paths of all rasters.
func (t *Table) pair(ctx context.Context, fields []Source, uris *columns.Column, drop bool) error {
	first := slices.IndexFunc(fields, func(s Source) bool { return s.Pattern != "" && !s.Beside })
	if first < 0 {
		if i := slices.IndexFunc(fields, func(s Source) bool { return s.Beside }); i >= 0 {
			return noField(fields[i], fault.NotFound, "{id} of its pattern %q is from a raster field's pattern, "+
				"and there is none: give the image one, such as \"{id}.tif\"", fields[i].Pattern)
		}
		return nil
	}
	// The path of an absolute URI below the dataset is the part after the directory that all share.
	shared, err := sharedFolder(ctx, uris)
	if err != nil {
		return err
	}
	rows := make([]map[string]int64, len(fields)) // by id; nil for a field without a pattern
	for i, source := range fields {
		if source.Pattern == "" {
			continue
		}
		if source.Beside {
			rows[i], err = t.listBeside(ctx, i, source, string(shared))
		} else {
			rows[i], err = t.matches(ctx, source, uris, len(shared))
		}
		if err != nil {
			return err
		}
	}
	incomplete, example, missing := missingPartners(fields, rows)
	switch {
	case len(incomplete) > 0 && !drop:
		return missing
	case len(incomplete) > 0:
		t.dropped, t.example = len(incomplete), example
		for id := range incomplete {
			delete(rows[first], id)
		}
		if len(rows[first]) == 0 {
			return fault.New(fault.NotFound, "dataset", fault.NoOffset,
				"none of %d samples has a file for every field", t.dropped)
		}
	}
	pattern, _ := listing.ParsePattern(fields[first].Pattern)
	ids := slices.SortedFunc(maps.Keys(rows[first]), func(a, b string) int {
		return strings.Compare(pattern.Path(a), pattern.Path(b))
	})
	t.n = int64(len(ids))
	t.order, _ = pickRows(ids, rows[first])
	t.keys = t.idsOf(uris, pattern.Match, len(shared))
	for i, source := range fields {
		switch {
		case rows[i] != nil:
			found := 0
			if t.fields[i].rows, found = pickRows(ids, rows[i]); found == 0 {
				return noField(source, fault.NotFound, "none of %d samples has a file %q", len(ids), source.Pattern)
			}
		case t.table != nil || source.Column == FolderColumn: // a column has the value of the first field's row
			t.fields[i].rows = t.order
		default:
			return noField(source, fault.NotFound, "needs a pattern, because another field of this directory has one")
		}
	}
	return nil
}

// withOutside returns a listing that has the files of other folders, too, to which patterns lead, by the names that
// these give them, and the fields.
func (t *Table) withOutside(ctx context.Context, l *listing.Listing, fields []Source) (*listing.Listing, []Source,
	error) {
	fields, added := slices.Clone(fields), map[string]bool{}
	for i := range fields {
		pattern := &fields[i].Pattern
		if fields[i].Beside || !listing.Outside(*pattern) {
			continue
		}
		var folder string
		*pattern, folder = folderOfPattern(l.Base, *pattern)
		if added[folder] {
			continue
		}
		added[folder] = true
		other, err := listing.List(ctx, listing.Resolve(l.Base, folder), t.roots, t.opener, listing.FilesOf(*pattern))
		if err != nil {
			return nil, nil, inPart(err, fmt.Sprintf("field %q", fields[i].Field))
		}
		l = l.With(folder, other)
	}
	return l, fields, nil
}

// folderOfPattern returns the folder of the files of a pattern, "" for base, and the pattern: relative to a remote base
// with "../", it becomes a URI.
func folderOfPattern(base, pattern string) (_, folder string) {
	if source.IsRemote(base) {
		pattern = listing.Absolute(base, pattern)
	}
	before, _, _ := strings.Cut(pattern, "{id}")
	return pattern, before[:strings.LastIndexByte(before, '/')+1]
}

// listBeside makes field i of the files beside rasters that its pattern matches, and returns their rows by id. The last
// row, with which samples without a file end, is null. shared is the directory that all absolute paths of rasters
// share.
func (t *Table) listBeside(ctx context.Context, i int, s Source, shared string) (map[string]int64, error) {
	base := t.base
	if t.table != nil && (source.Scheme(shared) != "" || filepath.IsAbs(shared)) {
		base = strings.TrimSuffix(shared, "/")
	}
	text, folder := folderOfPattern(base, s.Pattern)
	pattern, err := listing.ParsePattern(text)
	if err != nil {
		return nil, inPart(err, fmt.Sprintf("field %q", s.Field))
	}
	found, err := listing.List(ctx, listing.Resolve(base, folder), t.roots, t.opener, listing.AllFiles)
	if err != nil {
		return nil, inPart(err, fmt.Sprintf("field %q", s.Field))
	}
	rows := map[string]int64{}
	var paths []string
	var sizes []int64
	for k, name := range found.Paths {
		if id, ok := pattern.Match(folder + name); ok {
			rows[id] = int64(len(paths))
			paths, sizes = append(paths, found.Path(k)), append(sizes, found.Sizes[k])
		}
	}
	if len(paths) == 0 {
		return nil, noField(s, fault.NotFound, "no file matches the pattern %q", s.Pattern)
	}
	t.fields[i].main = columns.Map(columns.Paths(append(paths, "")), func(_ int64, c columns.Cell) columns.Cell {
		c.Null = len(c.Text) == 0
		return c
	})
	t.fields[i].columns = map[string]*columns.Column{layout.Size: columns.InMemory(
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, append(sizes, 0), nil))}
	return rows, nil
}

// pickRows returns the rows of ids, which is the one behind all rows if an id has none, and how many ids have one.
func pickRows(ids []string, rows map[string]int64) (out []int64, found int) {
	out = make([]int64, len(ids))
	for k, id := range ids {
		row, ok := rows[id]
		if out[k] = row; ok {
			found++
		} else {
			out[k] = int64(len(rows))
		}
	}
	return out, found
}

// matches returns the row of each id that a field's pattern matches. shared is the length of the directory that all
// absolute paths share.
func (t *Table) matches(ctx context.Context, s Source, uris *columns.Column, shared int) (map[string]int64, error) {
	pattern, err := listing.ParsePattern(s.Pattern)
	if err != nil {
		return nil, inPart(err, fmt.Sprintf("field %q", s.Field))
	}
	rows := map[string]int64{}
	err = uris.Scan(ctx, func(row int64, v columns.Cell) error {
		path := t.below(string(v.Text), shared)
		if t.table == nil && listing.Outside(path) != listing.Outside(s.Pattern) {
			return nil
		}
		id, ok := pattern.Match(path)
		if !ok || v.Null {
			return nil
		}
		if _, twice := rows[id]; twice {
			return noField(s, fault.Corrupt, "two files have the id %q", id)
		}
		rows[id] = row
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		if magic.Way(s.Pattern) != "" {
			return nil, listing.NotRead(s.Pattern)
		}
		way := ""
		if strings.Contains(s.Pattern, "*") {
			way = ": {id} stands for any text, and * for itself"
		}
		return nil, noField(s, fault.NotFound, "no file matches the pattern %q%s", s.Pattern, way)
	}
	return rows, nil
}

// idsOf returns the column of the ids that a pattern finds in the paths of a column. shared is the length of the
// directory that all absolute paths share.
func (t *Table) idsOf(uris *columns.Column, matches func(path string) (id string, ok bool),
	shared int) *columns.Column {
	return columns.Map(uris, func(_ int64, c columns.Cell) columns.Cell {
		id, ok := matches(t.below(string(c.Text), shared))
		return columns.Cell{Text: []byte(id), Null: c.Null || !ok}
	})
}

// below returns the part of a path that patterns match: of an absolute one in a table without the directory that all
// of these share, whose length is shared.
func (t *Table) below(path string, shared int) string {
	if t.table != nil && (source.Scheme(path) != "" || filepath.IsAbs(path)) {
		return path[min(shared, len(path)):]
	}
	return path
}

// missingPartners returns the ids that have no file in some field with a pattern, and the path of the first missing
// file, with the error for it: of the first field that lacks one, and there the first id. Files beside rasters have no
// ids of their own.
func missingPartners(fields []Source, rows []map[string]int64) (incomplete map[string]bool, first string, _ error) {
	incomplete = map[string]bool{}
	missing, where, which := 0, -1, ""
	for i := range rows {
		for j := range rows {
			if i == j || rows[i] == nil || rows[j] == nil || fields[i].Beside || fields[j].Optional {
				continue
			}
			for id := range rows[i] {
				if _, ok := rows[j][id]; ok {
					continue
				}
				missing++
				incomplete[id] = true
				if where < 0 || j < where || j == where && id < which {
					where, which = j, id
				}
			}
		}
	}
	if missing == 0 {
		return nil, "", nil
	}
	p, _ := listing.ParsePattern(fields[where].Pattern)
	first = p.Path(which)
	way := `: missing "drop" leaves out the samples that lack one`
	if fields[where].Beside {
		way = `: missing "empty" takes samples without a file as samples without shapes`
	}
	return incomplete, first, noField(fields[where], fault.NotFound,
		"no file %s for the id %q; %d files are missing in all%s", first, which, missing, way)
}

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	if !IsParquet(src) {
		return nil, nil
	}
	o = o.withDefaults()
	table, err := columns.Open(ctx, o.Opener, src, o.CacheBytes/2)
	if err == nil {
		names, err = pairedFields(table)
		err = errors.Join(err, table.Close())
	}
	return names, fault.WithFile(err, src)
}
