package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Listing is the list of the rows of a catalog, before their files are read.
type Listing struct {
	o        Options
	paths    []string
	files    [][]namedFile   // by field, and then by sample; of one field, unless it is a catalog of pairs
	columns  rowio.Columns   // behind those of the first field
	own      map[string]bool // the names of all columns
	opened   *openers.Files  // the default opener, or nil
	previous []*previousRows

	table     *columns.Table // whose columns the catalog has, or nil
	tableName string
	added     []*columns.Column // of the table
	rows      []int64           // the table's row of each sample, or -1

	reusable map[string]rowio.Row // reusable rows of the files of the current block
	reused   atomic.Int64
	first    int           // the first sample of the current block
	more     [][]rowio.Row // of each sample of the block, the rows of the fields after the first
}

// List lists what Write writes. It opens the tables that Write opens. Close the list after use.
func List(ctx context.Context, paths []string, o Options) (_ *Listing, err error) {
	o.Counts = cmp.Or(o.Counts, &Counts{})
	*o.Counts = Counts{}
	listing := &Listing{o: o, paths: paths, own: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, listing.Close())
		}
	}()
	listing.o.beside = map[string]sidecar.Names{}
	if o.Opener == nil {
		listing.opened = &openers.Files{}
		listing.o.Opener = listing.opened
	}
	for _, column := range rowio.Fields() {
		listing.own[column.Name()] = true
	}
	if err := listing.list(ctx); err != nil {
		return nil, err
	}
	if len(listing.files[0]) == 0 {
		return nil, noRasters(paths)
	}
	listing.o.Workers = listing.o.workers(listing.files[0])
	if o.Join != nil {
		if err := listing.join(ctx); err != nil {
			return nil, fault.WithFile(err, o.Join.Table)
		}
	}
	return listing, listing.openPrevious(ctx)
}

// list finds the files.
func (l *Listing) list(ctx context.Context) (err error) {
	if len(l.o.Fields) == 0 {
		l.files = make([][]namedFile, 1)
		if l.files[0], err = expand(ctx, l.paths, l.o); err != nil || len(l.files[0]) == 0 {
			return err
		}
		root := l.files[0][0].listed // "" if they were listed in several, such as two that the user named
		if slices.ContainsFunc(l.files[0], func(f namedFile) bool { return f.listed != root }) {
			root = ""
		}
		return l.noteListed(root)
	}
	if len(l.paths) != 1 {
		return fault.New(fault.Unsupported, "dataset",
			"a catalog of pairs takes one directory, glob or table, not %d paths", len(l.paths))
	}
	if err := l.fieldColumns(); err != nil {
		return err
	}
	dir, err := homeOf(l.o.Base)
	if err != nil {
		return err
	}
	l.files = make([][]namedFile, len(l.o.Fields))
	if catalog.IsTable(l.paths[0]) {
		return fault.WithFile(l.listTable(ctx, l.paths[0], dir), l.paths[0])
	}
	return l.listPairs(ctx, l.paths[0], dir)
}

// listPairs finds the files that the patterns pair.
func (l *Listing) listPairs(ctx context.Context, name string, dir home) error {
	for _, s := range l.o.Fields {
		if s.Pattern == "" {
			return badField(s, "has no pattern: a catalog of pairs needs one for every field")
		}
	}
	table, err := catalog.Open(ctx, name, l.o.Fields, catalog.Options{Opener: l.o.Opener,
		DropIncomplete: l.o.DropIncomplete})
	if err != nil {
		return err
	}
	defer func() { _ = table.Close() }()
	if !table.Listed() {
		return fault.WithFile(fault.New(fault.Unsupported, "dataset", "is not a directory, glob or table"), name)
	}
	l.o.Counts.Incomplete = table.Remarks.Dropped
	maps.Copy(l.o.beside, table.Beside())
	for i := range l.files {
		paths, err := table.Paths(ctx, i)
		if err != nil {
			return err
		}
		_, shared, _ := source.Split(l.o.Fields[i].Pattern) // of stores
		for _, path := range paths {
			path, array, inner := source.Split(path)
			if !inner {
				array = shared
			}
			file := namedFile{path: path, field: l.o.Fields[i].Field}
			if err := file.name(dir, l.o.Absolute); err != nil {
				return err
			}
			if array != "" {
				file.uri += source.Separator + array
			}
			l.files[i] = append(l.files[i], file)
		}
	}
	return l.noteListed(table.Base())
}

// noteListed keeps how samples are called in the directory that was listed, "" for none: for their parts of splits and
// for the columns of paths and of names.
func (l *Listing) noteListed(root string) error {
	if root == "" {
		return nil
	}
	dir, err := homeOf(l.o.Base)
	if err != nil {
		return err
	}
	folder := namedFile{path: strings.TrimRight(root, "/")}
	if err := folder.name(dir, l.o.Absolute); err != nil {
		return err
	}
	var listed layout.Listed
	if folder.uri != "." {
		listed.Root = folder.uri + "/"
	}
	for _, source := range l.o.Fields {
		listed.Patterns = append(listed.Patterns, source.Pattern)
	}
	outside := func(f namedFile) bool { return !strings.HasPrefix(f.uri, listed.Root) }
	if slices.ContainsFunc(l.files[0], outside) || listed.Root == "" && listed.Patterns == nil {
		return nil
	}
	text, err := json.Marshal(listed)
	l.columns.Meta = append(l.columns.Meta, parquet.KeyValueMetadata(layout.ListedKey, string(text)))
	return err
}

// badField is the error for a field that a catalog of pairs cannot have.
func badField(s catalog.Source, format string, args ...any) error {
	return fault.New(fault.Unsupported, fmt.Sprintf("field %q", s.Field), format, args...)
}

// fieldColumns makes the columns of the fields after the first, and the metadata that names the fields.
func (l *Listing) fieldColumns() error {
	if len(l.o.Fields) > layout.MaxFields {
		return fault.New(fault.Limit, "catalog", "%d fields, at most %d", len(l.o.Fields), layout.MaxFields)
	}
	var names []string
	for k, source := range l.o.Fields {
		if err := columnName(source.Field); err != nil {
			return err
		}
		names = append(names, source.Field)
		if k == 0 {
			continue
		}
		prefix := source.Field + layout.FieldSeparator
		for _, column := range rowio.Fields() {
			name := prefix + column.Name()
			if column.Name() == layout.URI {
				name = source.Field
			}
			if l.own[name] || source.Field == names[0] {
				return badField(source, "%q is a column of the catalog already", name)
			}
			l.own[name] = true
			l.columns.Fields = append(l.columns.Fields, encode.Field(name, column))
		}
		l.columns.Meta = append(l.columns.Meta,
			parquet.SkipPageBounds(prefix+layout.Index), parquet.SkipPageBounds(prefix+layout.Header))
	}
	text, err := json.Marshal(names)
	l.columns.Meta = append(l.columns.Meta, parquet.KeyValueMetadata(layout.FieldsKey, string(text)))
	return err
}

// openPrevious opens the earlier catalogs.
func (l *Listing) openPrevious(ctx context.Context) error {
	if len(l.o.Fields) > 0 {
		return nil
	}
	for _, name := range l.o.Previous {
		previous, err := openPrevious(ctx, name)
		if err != nil {
			return fault.WithFile(err, name)
		}
		if previous != nil {
			l.previous = append(l.previous, previous)
		}
	}
	return nil
}

// Close closes what List has opened.
func (l *Listing) Close() (err error) {
	for _, p := range l.previous {
		err = errors.Join(err, p.f.Close())
	}
	if l.table != nil {
		err = errors.Join(err, l.table.Close())
	}
	if l.opened != nil {
		err = errors.Join(err, l.opened.Close())
	}
	return err
}

// Len returns the number of files or, of a catalog of pairs, samples.
func (l *Listing) Len() int { return len(l.files[0]) }

// Files returns the paths of the files of a sample, and the entity tags that listing them told, or "".
func (l *Listing) Files(sample int) iter.Seq2[string, string] {
	return func(yield func(path, etag string) bool) {
		for _, files := range l.files {
			if file := &files[sample]; !yield(file.path, file.etag) {
				return
			}
		}
	}
}

// Hash returns a hash of the names of all files, with the sizes and tags that listing them told.
func (l *Listing) Hash() string {
	sum := sha256.New()
	lines := json.NewEncoder(sum)
	for _, files := range l.files {
		for i := range files {
			file := &files[i]
			line := []any{[]byte(file.uri), file.bytes, file.size, file.etag}
			if file.member != nil {
				line = append(line, file.member.Offset, file.member.Length)
			}
			_ = lines.Encode(line) // a hash takes all bytes, and such values always marshal
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// write writes the catalog. It reads the files, or takes their rows from parts if that is not nil.
func (l *Listing) write(ctx context.Context, w io.Writer, parts *merging) (n int, err error) {
	rowOf, begin := l.row, l.begin
	if parts != nil {
		rowOf, begin = parts.row, parts.begin
	}
	src := rowio.Source{
		Begin: func(first, n int) error {
			l.first, l.more = first, make([][]rowio.Row, n)
			return begin(ctx, first, n)
		},
		Make: func(ctx context.Context, i int) (row rowio.Row, err error) {
			rows := make([]rowio.Row, len(l.files))
			for field := range rows {
				if rows[field], err = rowOf(ctx, i, field); err != nil {
					return row, err
				}
			}
			l.more[i-l.first] = rows[1:]
			return rows[0], nil
		},
	}
	if len(l.columns.Meta) > 0 || l.table != nil {
		l.columns.Append, src.Columns = l.append, &l.columns
	}
	options := rowio.RowOptions{Workers: l.o.Workers, Partial: l.o.Partial, Progress: l.o.Progress,
		Folders: l.folders()}
	if l.o.Skipped != nil {
		options.Skipped = func(i int, err error) {
			l.o.Counts.Skipped++
			l.o.Skipped(l.files[0][i].path, err)
		}
	}
	n, err = rowio.Write(ctx, w, l.Len(), options, src)
	l.o.Counts.Rows, l.o.Counts.Reused = n, int(l.reused.Load())
	if n == 0 && err == nil {
		err = noRasters(l.paths)
	}
	return n, err
}

// folders returns the folder that the URIs of each field share, by the name of their column, and whether some of them
// are equal.
func (l *Listing) folders() map[string]rowio.Folder {
	made := map[string]rowio.Folder{}
	for k, files := range l.files {
		name := layout.URI
		if k > 0 {
			name = l.o.Fields[k].Field
		}
		shared := pathname.Folder([]byte(files[0].uri))
		var sums []xxh3.Uint128
		for i := range files {
			shared = pathname.Shared(shared, []byte(files[i].uri))
			if len(files) <= catalog.SameRows {
				sums = append(sums, xxh3.HashString128(files[i].uri))
			}
		}
		made[name] = rowio.Folder{Path: string(shared), Repeats: digest.First(sums) != nil}
	}
	return made
}

// append appends the values of sample i in the other fields and in the table, behind the first field.
func (l *Listing) append(row parquet.Row, i int) (_ parquet.Row, size int, err error) {
	first := len(rowio.Fields())
	for k := range l.more[i-l.first] {
		file := &l.more[i-l.first][k]
		row = file.Append(row, first)
		size += file.Bytes()
		first += len(rowio.Fields())
	}
	if l.table == nil {
		return row, size, nil
	}
	row, added, err := l.appendAdded(row, first, l.rows[i])
	return row, size + added, err
}

// begin looks up the previous rows of a block of files.
func (l *Listing) begin(ctx context.Context, first, n int) error {
	l.reusable = map[string]rowio.Row{}
	for _, p := range l.previous {
		if err := p.find(ctx, l.files[0][first:first+n], l.reusable); err != nil {
			return fault.WithFile(err, p.name)
		}
	}
	return nil
}

// row makes the row of a file of sample i, unless an earlier catalog has it.
func (l *Listing) row(ctx context.Context, i, field int) (rowio.Row, error) {
	ctx = catalog.WithBeside(ctx, l.o.beside)
	file := &l.files[field][i]
	if r, ok := l.reusable[file.uri]; ok && file.unchanged(&r, mtimeOf(file.path)) && l.sound(&r) &&
		(file.member != nil || file.beside(ctx, &r, l.o.Opener)) {
		l.reused.Add(1)
		return r, nil
	}
	return rowOf(ctx, file, l.o)
}
