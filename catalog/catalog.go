package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
)

// Source says where a field's part of each sample is found. At most one of Column and Pattern is set.
type Source struct {
	// Field is the field's name.
	Field string
	// Column of the table that holds the raster's path, or the value that rides along.
	Column string
	// Blob is the column of the table that holds the raster's index blob (rumi or chunk).
	Blob string
	// Pattern pairs files by what {id} stands for in their paths below the dataset.
	Pattern string
}

// Options of Open. The zero value is ready.
type Options struct {
	// Opener opens the dataset's table and the files whose index is not in it. Default: local files.
	Opener source.Opener
	// MaxChunk is the limit of a decoded chunk in bytes. Default tiff.DefaultMaxChunk.
	MaxChunk int
	// CacheBytes bounds the memory of decoded pages of a Parquet file and parsed indexes together.
	// Default 64 MiB.
	CacheBytes int64
	// Roots are the folders (and prefixes of remote URIs) below which everything that is opened must
	// lie, symbolic links followed; anything else is NotFound. nil: anywhere.
	Roots []string
	// Columns are further columns of a CSV table that Scan will read; of a Parquet file it reads any.
	Columns []string
	// AllColumns reads all columns of a CSV table, for Data.
	AllColumns bool
}

func (o Options) withDefaults() Options {
	if o.Opener == nil {
		o.Opener = &source.Files{}
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	return o
}

// Table is an open dataset: N samples of some fields. It is safe for concurrent use.
type Table struct {
	src         string
	base        string // folder that relative URIs are resolved against
	n           int64
	fields      []field
	roots       *roots
	opener      source.Opener
	maxChunk    int
	assets      *lru.Cache[assetKey, Asset]
	table       table     // nil: a listing
	own         io.Closer // the opener, where the caller gave none
	fingerprint string
	order       []int64 // rows of the table that are the samples; nil: all of them
}

type field struct {
	name  string
	kind  Kind
	main  column   // of a raster its URI
	blobs []column // of a raster; the first that is not null counts
	size  column   // of a raster's file in bytes, or nil
	mtime column   // of a raster's file, RFC 3339, or nil

	height, width column // of a raster in pixels, or nil
	etag          column // of a raster's object, or nil

	offset, length column // of a raster in a container, or nil
}

type assetKey struct {
	field int
	row   int64
}

// Open opens a dataset. Without fields it has one, the raster "image". Errors are NotFound (the
// dataset, a column, a partner of a file), Corrupt, Unsupported or Limit, with the table's or
// the folder's name.
func Open(ctx context.Context, src string, fields []Source, o Options) (*Table, error) {
	var own io.Closer
	if o.Opener == nil {
		files := &source.Files{}
		o.Opener, own = files, files
	}
	o = o.withDefaults()
	if len(fields) == 0 {
		fields = []Source{{Field: "image"}}
	}
	t := &Table{
		src: src, roots: newRoots(o.Roots), opener: o.Opener, maxChunk: o.MaxChunk,
		assets: lru.New[assetKey, Asset](o.CacheBytes / 2), own: own,
	}
	err := t.open(ctx, fields, o)
	if err == nil {
		err = t.hash(ctx)
	}
	if err != nil {
		_ = t.Close()
		return nil, fault.WithFile(err, src)
	}
	return t, nil
}

func (t *Table) open(ctx context.Context, fields []Source, o Options) error {
	switch ext := extension(t.src); {
	case ext == ".parquet" || ext == ".pq" || ext == ".geoparquet":
		return t.openParquet(ctx, fields, o)
	case (ext == ".csv" || ext == ".tsv") && (isURL(t.src) || !hasMeta(t.src)):
		return t.openCSV(ctx, fields, ext == ".tsv", o)
	}
	l, err := listFiles(ctx, t.src, t.roots, t.opener)
	if err != nil {
		return err
	}
	t.base, t.n = l.base, int64(len(l.paths))
	return t.openListing(ctx, l, fields)
}

// reader opens the table itself.
func (t *Table) reader(ctx context.Context) (source.Reader, error) {
	uri, err := t.roots.allow(t.src)
	if err != nil {
		return nil, err
	}
	t.base = folder(t.src)
	return t.opener.Open(ctx, uri)
}

func (t *Table) openListing(ctx context.Context, l *listing, fields []Source) error {
	uris, sizes := paths(l.paths), ints{v: l.sizes}
	for _, s := range fields {
		if s.Column != "" || s.Blob != "" {
			return noField(s, fault.NotFound, "a folder has no columns")
		}
		t.fields = append(t.fields, field{name: s.Field, kind: Raster, main: uris, size: sizes})
	}
	return t.pair(ctx, fields, uris)
}

// inField says which field an error is of, and keeps its offset if it has one.
func inField(err error, name string) error {
	base := int64(fault.NoOffset)
	var e *fault.Error
	if errors.As(err, &e) && e.Off >= 0 {
		base = 0
	}
	return fault.WithPart(err, fmt.Sprintf("field %q", name), base)
}

func noField(s Source, k fault.Kind, format string, args ...any) error {
	return fault.New(k, fmt.Sprintf("field %q", s.Field), fault.NoOffset, format, args...)
}

func (t *Table) openCSV(ctx context.Context, fields []Source, tabs bool, o Options) error {
	r, err := t.reader(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	want := slices.Clone(o.Columns)
	for _, s := range fields {
		if s.Column == "" {
			s.Column = s.Field
		}
		want = append(want, s.Column, s.Blob)
	}
	if o.AllColumns {
		want = nil
	}
	comma := ','
	if tabs {
		comma = '\t'
	}
	tab, err := openCSV(ctx, r, comma, want)
	if err != nil {
		return err
	}
	return t.openTable(ctx, tab, fields, "")
}

func (t *Table) openParquet(ctx context.Context, fields []Source, o Options) error {
	r, err := t.reader(ctx)
	if err != nil {
		return err
	}
	tab, err := openParquet(ctx, r, o.CacheBytes-o.CacheBytes/2)
	if err != nil {
		_ = r.Close()
		return err
	}
	t.table = tab
	assets := ""
	if tab.f.Meta[metaVersion] != "" || tab.has(colURI) && (tab.has(colIndex) || tab.has(colHeader)) {
		if v := tab.f.Meta[metaVersion]; v != "" && v != version {
			return fault.New(fault.Unsupported, "footer", fault.NoOffset, "catalog version %q; this is version %s", v, version)
		}
		assets = colURI
	}
	return t.openTable(ctx, tab, fields, assets)
}

// openTable makes the fields from a table's columns. assets is the column of a catalog's URIs, or
// empty.
func (t *Table) openTable(ctx context.Context, tab table, fields []Source, assets string) error {
	if err := checkRows(tab.rows()); err != nil {
		return err
	}
	t.table, t.n = tab, tab.rows()
	for _, s := range fields {
		f, err := t.tableField(ctx, tab, s, assets)
		if err != nil {
			return inField(err, s.Field)
		}
		t.fields = append(t.fields, f)
	}
	if assets == "" {
		return nil
	}
	uris, err := tab.column(assets)
	if err != nil {
		return err
	}
	return t.pair(ctx, fields, uris)
}

func (t *Table) tableField(ctx context.Context, tab table, s Source, assets string) (field, error) {
	f := field{name: s.Field}
	name := s.Column
	if name == "" {
		if name = assets; name == "" {
			name = s.Field
		}
	}
	if s.Pattern != "" && assets == "" {
		return f, fault.New(fault.Unsupported, "", fault.NoOffset, "patterns pair the files of folders and catalogs; a table has columns")
	}
	c, err := tab.column(name)
	if err != nil {
		return f, err
	}
	f.main, f.kind = c, c.kind()
	var blobs []string
	if s.Blob != "" {
		blobs = []string{s.Blob}
	} else if name == assets {
		blobs = []string{colIndex, colHeader}
	}
	for _, b := range blobs {
		bc, err := tab.column(b)
		if err != nil && s.Blob == "" {
			continue // a catalog of one format has one of the two
		}
		if err == nil && bc.kind() != Text {
			err = fault.New(fault.Unsupported, "column "+b, fault.NoOffset, "holds %ss, not blobs", bc.kind())
		}
		if err != nil {
			return f, err
		}
		f.blobs = append(f.blobs, bc)
	}
	if s.Blob != "" && f.kind != Text {
		return f, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds %ss, not paths", f.kind)
	}
	raster := len(f.blobs) > 0 || name == assets
	if !raster && f.kind == Text {
		if raster, err = looksLikePaths(ctx, c); err != nil {
			return f, err
		}
	}
	if pc, ok := c.(*pqColumn); ok && !raster && pc.opaque {
		return f, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds bytes that are no text")
	}
	if raster {
		f.kind = Raster
		if name == assets {
			if f.size, err = tab.column(colSize); err != nil || f.size.kind() != Int {
				f.size = nil
			}
			if f.mtime, err = tab.column(colMTime); err != nil || f.mtime.kind() != Text {
				f.mtime = nil
			}
			f.height, f.width = intColumn(tab, colHeight), intColumn(tab, colWidth)
			if f.offset, f.length = intColumn(tab, colOffset), intColumn(tab, colLength); f.length == nil {
				f.offset = nil
			}
			if f.etag, err = tab.column(colETag); err != nil || f.etag.kind() != Text {
				f.etag = nil
			}
		}
	}
	return f, nil
}

// intColumn returns a column of integers, or nil if there is none of this name.
func intColumn(tab table, name string) column {
	c, err := tab.column(name)
	if err != nil || c.kind() != Int {
		return nil
	}
	return c
}

// errStop ends a scan.
var errStop = fmt.Errorf("catalog: stop")

// looksLikePaths reports whether the first text of a column names a raster file.
func looksLikePaths(ctx context.Context, c column) (yes bool, err error) {
	err = c.scan(ctx, func(_ int64, v cell) error {
		if v.null || len(v.text) == 0 {
			return nil
		}
		yes = isRaster(string(v.text))
		return errStop
	})
	if err == errStop {
		err = nil
	}
	return yes, err
}

// pair puts samples together from files whose paths match the fields' patterns. Without patterns it
// does nothing. uris are the paths of all files.
func (t *Table) pair(ctx context.Context, fields []Source, uris column) error {
	if !slices.ContainsFunc(fields, func(s Source) bool { return s.Pattern != "" }) {
		return nil
	}
	type entry struct {
		id  string
		row int64
	}
	// An absolute URI's path below the dataset is what follows the folder that all share.
	shared, err := sharedFolder(ctx, uris)
	if err != nil {
		return err
	}
	relative := func(uri string) string {
		if scheme(uri) != "" || filepath.IsAbs(uri) {
			return uri[min(shared, len(uri)):]
		}
		return uri
	}
	first := -1
	var order []entry
	rows := make([]map[string]int64, len(fields)) // by id
	for i, s := range fields {
		if s.Pattern == "" {
			continue
		}
		p, err := parsePattern(s.Pattern)
		if err != nil {
			return inField(err, s.Field)
		}
		rows[i] = map[string]int64{}
		err = uris.scan(ctx, func(row int64, v cell) error {
			id, ok := p.match(relative(string(v.text)))
			if !ok || v.null {
				return nil
			}
			if _, twice := rows[i][id]; twice {
				return noField(s, fault.Corrupt, "the id %q stands twice", id)
			}
			rows[i][id] = row
			if first < 0 || first == i {
				first = i
				order = append(order, entry{id, row})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(rows[i]) == 0 {
			return noField(s, fault.NotFound, "no file matches the pattern %q", s.Pattern)
		}
	}
	pattern, _ := parsePattern(fields[first].Pattern)
	slices.SortFunc(order, func(a, b entry) int { return strings.Compare(pattern.path(a.id), pattern.path(b.id)) })
	if err := missingPartners(fields, rows); err != nil {
		return err
	}
	t.n, t.order = int64(len(order)), make([]int64, len(order))
	for k, e := range order {
		t.order[k] = e.row
	}
	for i, s := range fields {
		at := make([]int64, len(order))
		for k, e := range order {
			at[k] = e.row // a column of a catalog: the row of the first field
			if rows[i] != nil {
				at[k] = rows[i][e.id]
			}
		}
		if rows[i] == nil && t.table == nil {
			return noField(s, fault.NotFound, "needs a pattern, as the other fields of this folder have one")
		}
		t.fields[i].pick(at)
	}
	return nil
}

func (f *field) pick(at []int64) {
	f.main = picked{f.main, at}
	for i := range f.blobs {
		f.blobs[i] = picked{f.blobs[i], at}
	}
	if f.size != nil {
		f.size = picked{f.size, at}
	}
	if f.mtime != nil {
		f.mtime = picked{f.mtime, at}
	}
	if f.height != nil && f.width != nil {
		f.height, f.width = picked{f.height, at}, picked{f.width, at}
	}
	if f.etag != nil {
		f.etag = picked{f.etag, at}
	}
	if f.offset != nil {
		f.offset, f.length = picked{f.offset, at}, picked{f.length, at}
	}
}

// missingPartners checks that every id has a file in every field with a pattern.
func missingPartners(fields []Source, rows []map[string]int64) error {
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
				if where < 0 || j < where || j == where && id < which {
					where, which = j, id
				}
			}
		}
	}
	if missing == 0 {
		return nil
	}
	p, _ := parsePattern(fields[where].Pattern)
	return noField(fields[where], fault.NotFound, "no file %s for the id %q; %d files are missing in all", p.path(which), which, missing)
}

// Len returns N, the number of samples.
func (t *Table) Len() int64 { return t.n }

// Kind returns what a field is. It is known without reading more than Open did.
func (t *Table) Kind(field int) Kind { return t.fields[field].kind }

// Fingerprint returns 32 hexadecimal digits that depend on what the samples are called, how large
// they are, and the values that ride along; see the package comment.
func (t *Table) Fingerprint() string { return t.fingerprint }

// Close closes the table. Assets that it gave stay valid.
func (t *Table) Close() error {
	var errs []error
	if t.table != nil {
		errs = append(errs, t.table.close())
	}
	if t.own != nil {
		errs = append(errs, t.own.Close())
	}
	return errors.Join(errs...)
}

func (t *Table) checkRow(row int64) {
	if row < 0 || row >= t.n {
		panic("catalog: row " + strconv.FormatInt(row, 10) + " of " + strconv.FormatInt(t.n, 10))
	}
}

// Value returns a field's value of a sample; of a raster field its URI as the dataset has it. row must
// be in 0 … Len()-1. A text that is not UTF-8 is Corrupt.
func (t *Table) Value(ctx context.Context, field int, row int64) (Value, error) {
	t.checkRow(row)
	c, err := t.fields[field].main.cell(ctx, row)
	if err != nil {
		return Value{}, fault.WithFile(err, t.src)
	}
	if t.fields[field].kind == Text && !utf8.Valid(c.text) {
		part := fmt.Sprintf("field %q row %d", t.fields[field].name, row)
		return Value{}, fault.WithFile(fault.New(fault.Corrupt, part, fault.NoOffset, "the text is not UTF-8"), t.src)
	}
	return c.value(), nil
}

// ID returns what names a sample in errors and reports: the URI of its first raster, as the dataset
// has it, or "row N".
func (t *Table) ID(ctx context.Context, row int64) (string, error) {
	for i := range t.fields {
		if t.fields[i].kind == Raster {
			v, err := t.Value(ctx, i, row)
			if err == nil && !v.Null {
				return v.Text, nil
			}
			if err != nil {
				return "", err
			}
		}
	}
	t.checkRow(row)
	return "row " + strconv.FormatInt(row, 10), nil
}

// Asset returns the file of a sample's raster field. Its index comes from the table's blob or, where
// there is none, from the file itself. row must be in 0 … Len()-1. A null path is NotFound.
func (t *Table) Asset(ctx context.Context, field int, row int64) (Asset, error) {
	t.checkRow(row)
	f := &t.fields[field]
	if f.kind != Raster {
		return Asset{}, errNoRaster
	}
	key := assetKey{field, row}
	if a, ok := t.assets.Get(key); ok {
		return a, nil
	}
	a, err := t.asset(ctx, f, row)
	if err != nil {
		return Asset{}, err
	}
	t.assets.Add(key, a, indexCost(a))
	return a, nil
}

func (t *Table) asset(ctx context.Context, f *field, row int64) (Asset, error) {
	c, err := f.main.cell(ctx, row)
	if err != nil {
		return Asset{}, fault.WithFile(err, t.src)
	}
	if c.null || len(c.text) == 0 {
		return Asset{}, fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("field %q row %d", f.name, row), fault.NoOffset, "no path"), t.src)
	}
	text, member, err := t.member(ctx, f, row, string(c.text))
	if err != nil {
		return Asset{}, fault.WithFile(err, t.src)
	}
	uri, err := t.roots.allow(resolve(t.base, text))
	if err != nil {
		return Asset{}, err
	}
	for _, b := range f.blobs {
		c, err := b.cell(ctx, row)
		if err != nil {
			return Asset{}, fault.WithFile(err, t.src)
		}
		if c.null || len(c.text) == 0 {
			continue
		}
		x, err := ParseIndex(c.text, t.maxChunk)
		if err != nil {
			return Asset{}, fault.WithFile(fault.WithPart(err, fmt.Sprintf("field %q row %d", f.name, row), fault.NoOffset), t.src)
		}
		a := Asset{URI: uri, Index: x}
		if f.size != nil {
			c, err := f.size.cell(ctx, row)
			if err != nil {
				return Asset{}, fault.WithFile(err, t.src)
			}
			a.Size = max(c.int, 0)
		}
		if f.mtime != nil {
			c, err := f.mtime.cell(ctx, row)
			if err != nil {
				return Asset{}, fault.WithFile(err, t.src)
			}
			if at, err := time.Parse(time.RFC3339Nano, string(c.text)); err == nil { // else it is not known
				a.MTime = at
			}
		}
		if f.etag != nil {
			c, err := f.etag.cell(ctx, row)
			if err != nil {
				return Asset{}, fault.WithFile(err, t.src)
			}
			a.ETag = string(c.text)
		}
		if member == nil {
			return a, nil
		}
		return member.asset(a, t.maxChunk)
	}
	if member != nil {
		return Asset{}, fault.WithFile(fault.New(fault.Corrupt, fmt.Sprintf("field %q row %d", f.name, row), fault.NoOffset, "a member of a container without an index"), t.src)
	}
	a, _, err := OpenAsset(ctx, t.opener, uri, t.maxChunk)
	return a, err
}
