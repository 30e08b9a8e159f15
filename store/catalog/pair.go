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
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// pair makes samples of the files whose paths match the fields' patterns. Without patterns it does nothing. uris are
// the paths of all files.
func (t *Table) pair(ctx context.Context, fields []Source, uris *columns.Column, drop bool) error {
	first := slices.IndexFunc(fields, func(s Source) bool { return s.Pattern != "" })
	if first < 0 {
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
		if rows[i], err = t.matches(ctx, source, uris, len(shared)); err != nil {
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
	t.n, t.order = int64(len(ids)), pickRows(ids, rows[first])
	for i, source := range fields {
		switch {
		case rows[i] != nil:
			t.fields[i].rows = pickRows(ids, rows[i])
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
		if !listing.Outside(*pattern) {
			continue
		}
		if source.IsRemote(l.Base) {
			*pattern = listing.Absolute(l.Base, *pattern)
		}
		before, _, _ := strings.Cut(*pattern, "{id}")
		folder := before[:strings.LastIndexByte(before, '/')+1]
		if added[folder] {
			continue
		}
		added[folder] = true
		pictures := magic.Named(*pattern).Class == magic.Picture
		other, err := listing.List(ctx, listing.Resolve(l.Base, folder), t.roots, t.opener, pictures)
		if err != nil {
			return nil, nil, inPart(err, fmt.Sprintf("field %q", fields[i].Field))
		}
		l = l.With(folder, other)
	}
	return l, fields, nil
}

// pickRows returns the rows of ids.
func pickRows(ids []string, rows map[string]int64) []int64 {
	out := make([]int64, len(ids))
	for k, id := range ids {
		out[k] = rows[id]
	}
	return out
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
		path := string(v.Text)
		if t.table == nil {
			if listing.Outside(path) != listing.Outside(s.Pattern) {
				return nil
			}
		} else if source.Scheme(path) != "" || filepath.IsAbs(path) {
			path = path[min(shared, len(path)):]
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
		return nil, noField(s, fault.NotFound, "no file matches the pattern %q", s.Pattern)
	}
	return rows, nil
}

// missingPartners returns the ids that have no file in some field with a pattern, and the path of the first missing
// file, with the error for it: of the first field that lacks one, and there the first id.
func missingPartners(fields []Source, rows []map[string]int64) (incomplete map[string]bool, first string, _ error) {
	incomplete = map[string]bool{}
	missing, where, which := 0, -1, ""
	for i := range rows {
		for j := range rows {
			if i == j || rows[i] == nil || rows[j] == nil {
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
	return incomplete, first, noField(fields[where], fault.NotFound,
		"no file %s for the id %q; %d files are missing in all", first, which, missing)
}

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	if !IsParquet(src) {
		return nil, nil
	}
	o = o.withDefaults()
	table, err := columns.Open(ctx, o.Opener, src, o.CacheBytes)
	if err == nil {
		names, err = pairedFields(table)
		err = errors.Join(err, table.Close())
	}
	return names, fault.WithFile(err, src)
}
