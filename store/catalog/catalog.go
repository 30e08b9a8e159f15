package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Source says where a field of each sample comes from. At most one of Column and Pattern is set.
type Source struct {
	// Field is the field's name.
	Field string
	// Column is the table's column of raster paths, or of values.
	Column string
	// Kind, Raster or Text, is the kind of a column of strings. If it is not set, the column has rasters if all of its
	// strings end like files that this package reads, strings if all end otherwise, and is Unsupported if some do. In
	// a directory, Text is the path of the file.
	Kind Kind
	// Strings says that a column of Kind Text holds strings alone, also if a CSV file has numbers in it.
	Strings bool
	// Label says that the field has values, not rasters. Of several stores it has the values of one array of each
	// store.
	Label bool
	// Blob is the table's column of index blobs (rumi or chunk) of the rasters.
	Blob string
	// Pattern pairs files by the parts of their paths below the dataset that its names, such as {id}, match: see
	// package listing. Of Zarr stores it may name an array: PATTERN::ARRAY.
	Pattern string
	// Beside says that the files of Pattern are no rasters, and lie beside them. They are listed, also for a catalog,
	// which does not have them, and the value of the field is their path. Optional says that the value may be null: no
	// file is missing then.
	Beside, Optional bool
	// Maybe says that the table may lack Column: the values of the field are null then.
	Maybe bool
	// Axes is what the field says of the axes of its files. With it the header of each file is read, also for a
	// catalog, whose indexes are of what files say alone. Its Dims also apply to arrays in stores.
	Axes chunk.Axes

	array string // of Zarr stores
}

// Options configure Open. The zero value selects the defaults.
type Options struct {
	// Opener opens the dataset's table and the files whose index is not in it. The default opens local files.
	Opener source.Opener
	// MaxChunk limits a decoded chunk in bytes. The default is chunk.DefaultMaxBytes.
	MaxChunk int
	// CacheBytes bounds the memory of decoded pages of a Parquet file and parsed indexes together, half of it for each.
	// The default is 64 MiB.
	CacheBytes int64
	// Roots are the directories (and prefixes of remote URIs) below which every opened file must
	// be, after following symbolic links; other files are NotFound. nil allows all files.
	Roots []string
	// Columns are more columns of a CSV table that Scan will read. It can read any column of a Parquet file.
	Columns []string
	// Texts are the Columns whose values stay strings in a CSV table, unless a field has their numbers, and Codes the
	// columns whose values stay strings if one is a code, such as "0012".
	Texts, Codes []string
	// AllColumns reads all columns of a CSV table, for Data.
	AllColumns bool
	// DropIncomplete leaves out ids for which a field with a pattern has no file. Otherwise they are NotFound.
	DropIncomplete bool
	// Dims names the dimensions of the arrays of Zarr stores.
	Dims string
}

// wants returns how the columns of a text table are read: as fields and conditions need them. Each asset of STAC items
// has two names.
func (o Options) wants(fields []Source, items bool) func(name string) texts.Want {
	names := slices.Clone(o.Columns)
	for _, s := range fields {
		names = append(names, s.columnName(), s.Blob, fileName(s.Field))
	}
	want := map[string]texts.Want{}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	for _, name := range names {
		if want[name] = texts.Values; items {
			want[texts.AssetColumn(name)] = texts.Values
		}
		for i := range len(name) {
			if items && name[i] == '.' {
				want[name[:i+1]] = texts.Values // some member of an object is wanted
			}
		}
	}
	for _, s := range fields {
		if s.Kind == Text {
			want[s.columnName()] = texts.Words
			if s.Strings {
				want[s.columnName()] = texts.Written
			}
		}
	}
	numbers := func(name string) bool { // a field has the numbers of the column
		return slices.ContainsFunc(fields, func(s Source) bool { return s.Kind != Text && s.columnName() == name })
	}
	for _, name := range o.Texts {
		if !numbers(name) {
			want[name] = texts.Written
		}
	}
	for _, name := range o.Codes {
		if !numbers(name) {
			want[name] = max(want[name], texts.Words)
		}
	}
	return func(name string) texts.Want {
		if o.AllColumns && want[name] == texts.Skipped {
			return texts.Typed
		}
		return want[name]
	}
}

// columnName returns the column of a table that a field reads.
func (s *Source) columnName() string { return cmp.Or(s.Column, s.Field) }

func (o Options) withDefaults() Options {
	if o.Opener == nil && o.Roots == nil {
		o.Opener = &openers.Files{}
	}
	o.Opener = openers.Below(o.Opener, o.Roots)
	o.CacheBytes = cmp.Or(o.CacheBytes, 64<<20)
	return o
}

// Table is an open dataset: N samples of some fields. It is safe for concurrent use.
type Table struct {
	location
	Remarks     Remarks
	table       *columns.Table // its rows
	footer      footer
	n           int64
	order       []int64 // the rows of the table that are samples; nil: all
	fields      []fieldColumns
	paths       *paths                     // of the files of a listing or a catalog, else nil
	pathColumns map[string]*columns.Column // columns of these paths
	keys        *columns.Column            // see ScanKeys; nil of a table without paths
	stores      storeRows
	assets      *lru.Cache[assetKey, Asset]
	pages       pagesOfCells
	beside      *tableNames              // of files beside rasters
	listed      map[string]sidecar.Names // of files beside rasters, by the listing of the table
	closer      io.Closer                // the opener, if it is not the one that the caller gave
	noun        string                   // what its patterns match: files, or arrays
	fingerprint string
	marks       string // what Marks returns
}

// location says where the files of a dataset are, and how they are opened.
type location struct {
	src      string
	base     string // directory against which relative URIs are resolved
	roots    *openers.Roots
	opener   source.Opener
	maxChunk int
}

// resolve resolves a path of the dataset.
func (l *location) resolve(path string) string { return listing.Resolve(l.roots, l.base, path) }

// allow resolves a path, and follows its links, which must not lead out of the roots.
func (l *location) allow(path string) (string, error) { return l.roots.Allow(l.resolve(path)) }

// group opens the store of arrays at a path.
func (l *location) group(ctx context.Context, path string) (store.Group, error) {
	uri, err := l.allow(path)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, l.opener, uri, l.maxChunk)
}

// Remarks are what whoever opens a dataset may not expect.
type Remarks struct {
	// Dropped is how many ids were left out because a field has no file for them. Lacking is the path of one such file.
	Dropped int
	Lacking string
	// TwiceField is a field with files that are samples of their own, too. Twice is the path of one such file.
	TwiceField, Twice string
	// PairBy are the patterns of images and masks that would pair the files of a directory, if each is a sample of its
	// own; nil without them.
	PairBy []string
	// PageBytes are the stored bytes of the largest page that rasters in cells share, and PageFile is its file: reading
	// one of them reads all of its page. It is 0 if no rasters share pages, or if the cache holds all of them.
	PageBytes int64
	PageFile  string
}

type assetKey struct {
	field int
	row   int64
}

// Open opens a dataset. Without fields it has the fields of a catalog of pairs, or a single raster field, "image".
// Errors are NotFound (the dataset, a column, a partner of a file), Corrupt, Unsupported or Limit, with the name of the
// table or directory.
func Open(ctx context.Context, src string, fields []Source, o Options) (*Table, error) {
	given := o.Opener
	o = o.withDefaults()
	var closer io.Closer
	// The opener of the caller must not be closed.
	if given == nil || openers.RootsOf(given) != openers.RootsOf(o.Opener) {
		closer, _ = o.Opener.(io.Closer)
	}
	table := &Table{
		location: location{src: src, roots: openers.RootsOf(o.Opener), opener: o.Opener, maxChunk: o.MaxChunk},
		table:    columns.OfFiles(0),
		assets:   lru.New[assetKey, Asset](o.CacheBytes / 2), closer: closer,
		beside: lru.New[string, sidecar.Names](listings.Bound()), stores: storeRows{dims: o.Dims}, noun: "file",
		pages: pagesOfCells{cache: o.CacheBytes - o.CacheBytes/2},
	}
	fields = slices.Clone(fields)
	for i := range fields {
		pattern := withoutDot(fields[i].Pattern)
		fields[i].Pattern, fields[i].array = fileOf(pattern)
		if column.Names(fields[i].array) != nil || strings.Contains(fields[i].array, "*") { // see withArrays
			fields[i].Pattern, fields[i].array = pattern, ""
		}
	}
	err := table.open(ctx, fields, o)
	for i := range table.fields {
		table.fields[i].contents = err == nil && i < len(fields) && fields[i].OfTexts()
	}
	if err == nil {
		err = table.expand(ctx)
	}
	if err == nil {
		err = table.hash(ctx)
	}
	if err != nil {
		_ = table.Close()
		return nil, fault.WithFile(err, src)
	}
	return table, nil
}

// withoutDot returns a pattern without "./", with which shells complete names: listed paths lack it.
func withoutDot(pattern string) string {
	for strings.HasPrefix(pattern, "./") {
		pattern = strings.TrimLeft(pattern[2:], "/")
	}
	return pattern
}

// OfArrays returns the dataset of arrays that the patterns of fields pair by their paths in a store. It opens none of
// them: their values are their paths, and there is no Asset.
func OfArrays(ctx context.Context, src string, paths []string, fields []Source, o Options) (*Table, error) {
	o = o.withDefaults()
	table := &Table{location: location{src: src, roots: openers.RootsOf(o.Opener), opener: o.Opener}, noun: "array"}
	l := &listing.Listing{Roots: table.roots, Paths: paths, Sizes: make([]int64, len(paths))}
	err := table.openListing(ctx, l, fields, o)
	if err == nil {
		err = table.hash(ctx)
	}
	return table, fault.WithFile(err, src)
}

func (t *Table) open(ctx context.Context, fields []Source, o Options) error {
	switch class := magic.Named(source.Name(t.src)).Class; {
	case class == magic.Parquet && t.severalFiles():
	case class == magic.Parquet:
		return t.openParquet(ctx, fields, o)
	case class == magic.Records:
		return t.openRecords(ctx, fields, o)
	case class.Table():
		return t.openHeld(ctx, fields, o)
	}
	src := t.src
	if file, array := fileOf(src); magic.Named(file) == magic.NPZ || listing.IsGlob(file) && !source.IsWeb(file) {
		src, fields = file, t.orOwn(fields)
		for i := range fields {
			if fields[i].Pattern == "" {
				fields[i].array = array
			}
		}
	}
	wanted, patterns := listing.Rasters, []string(nil)
	for _, s := range fields {
		if wanted, patterns = wanted|filesOf(s.Pattern), append(patterns, s.Pattern); s.OfTexts() {
			wanted |= listing.AllFiles
		}
	}
	files, err := listing.List(ctx, src, t.roots, t.opener, wanted, patterns...)
	if err == nil && files.File || err != nil && source.IsRemote(t.src) {
		err = cmp.Or(t.unknown(ctx), err)
	}
	if err != nil {
		return err
	}
	t.base, fields = files.Base, t.orOwn(fields)
	switch {
	case len(files.Metadata) > 0 && (len(files.Paths) == 0 || ofTable(fields, o) ||
		files.OnlyPictures && (len(fields) > 1 || files.HasOwnMetadata())):
		return t.openMetadata(ctx, files, fields, o)
	case len(files.Paths) == 0 && len(files.Shards) > 0:
		return t.openShards(ctx, files.Shards, fields, o)
	}
	return t.openListing(ctx, files, fields, o)
}

// ofTable reports whether fields or conditions name columns, which files of a directory have only in its metadata.
func ofTable(fields []Source, o Options) bool {
	if slices.ContainsFunc(fields, func(s Source) bool { return s.Pattern != "" }) {
		return false
	}
	return len(o.Columns) > 0 || o.AllColumns || slices.ContainsFunc(fields, func(s Source) bool {
		return s.Column != "" && s.Column != FolderColumn
	})
}

// fileName returns the column in which a directory of images, as Hugging Face has it, names the files of a field.
func fileName(field string) string {
	if field == defaultField {
		return columns.FileName
	}
	return field + "_" + columns.FileName
}

// openMetadata opens the metadata of a directory of images or, if it has none in itself, the metadata of its
// folders.
func (t *Table) openMetadata(ctx context.Context, l *listing.Listing, fields []Source, o Options) error {
	tableOf := map[string]string{} // by folder
	for _, name := range l.Metadata {
		folder := path.Dir(name)
		if other := tableOf[folder]; other != "" {
			return fault.New(fault.Unsupported, "metadata", "both %s and %s are there: leave one", other, name)
		}
		tableOf[folder] = name
	}
	if rootTable := tableOf["."]; rootTable != "" || len(tableOf) == 1 {
		t.src = t.resolve(cmp.Or(rootTable, l.Metadata[0]))
		if !IsParquet(t.src) {
			return t.openHeld(ctx, fields, o)
		}
		return t.openParquet(ctx, fields, o)
	}
	wanted := func(s Source) bool { return s.Column == columns.SplitColumn }
	if !slices.Contains(o.Columns, columns.SplitColumn) && !slices.ContainsFunc(fields, wanted) && !o.AllColumns {
		first := path.Dir(l.Metadata[0])
		return fault.New(fault.Unsupported, "metadata", "%s and %s are of several splits: pick one by "+
			"split (Rows(split=%q)), or name its folder", l.Metadata[0], l.Metadata[1], first)
	}
	names, err := t.allowAll(l.Base, l.Metadata)
	if err != nil {
		return err
	}
	folders := make([]string, len(names))
	for i, name := range l.Metadata {
		folders[i] = path.Dir(name)
	}
	tab, err := columns.OpenSplits(ctx, t.opener, names, folders)
	if err != nil {
		return err
	}
	return t.openTable(ctx, tab, fields, "", o)
}

// unknown returns the error for a source with the extension of another format, nil for others. Directories may
// have any name.
func (t *Table) unknown(ctx context.Context) error {
	if p, _ := source.Parse(t.src); p.Part != nil && p.Part.Archive() && p.Part.Member == "" {
		return nil // an archive as a directory
	}
	name, class := magic.OfName(t.src), magic.Named(t.src).Class
	if name == "" || listing.IsGlob(t.src) || class == magic.Picture || class == magic.CSV {
		return nil
	}
	if is, err := IsENVI(ctx, t.opener, t.src); is || err != nil {
		return err
	}
	if class == magic.Store {
		if err := store.Missing(t.src); err != nil {
			return err
		}
	}
	return fault.New(fault.Unsupported, "dataset", "%s", cmp.Or(magic.Refusal(t.src),
		name+" is not read as a dataset: tables (.parquet, .csv, .tsv), rasters (.tif, .tiff, .rumi), directories and "+
			"globs of them, TACO containers and TileDB arrays are"))
}

// defaultField is the field of a dataset without fields of its own.
const defaultField = "image"

// orOwn returns the given fields, or the dataset's own if none is given.
func (t *Table) orOwn(fields []Source) []Source {
	if len(fields) > 0 {
		return fields
	}
	for _, name := range t.footer.fields {
		fields = append(fields, Source{Field: name})
	}
	if fields == nil {
		fields = []Source{{Field: defaultField}}
	}
	return fields
}

// reader opens the table's file.
func (t *Table) reader(ctx context.Context) (source.Reader, error) {
	uri, err := t.roots.Allow(t.src)
	if err != nil {
		return nil, err
	}
	t.base = listing.Folder(t.src)
	return t.opener.Open(ctx, uri)
}

func (t *Table) openListing(ctx context.Context, l *listing.Listing, fields []Source, o Options) error {
	t.marks = l.Marks()
	l, fields, err := t.withOutside(ctx, l, fields)
	if err == nil {
		l, err = t.withArrays(ctx, l, fields)
	}
	if err != nil {
		return err
	}
	for i, s := range fields { // as in tables, a field is the column of its name
		if s.Column == "" && s.Pattern == "" && s.Kind != Raster && named(fields, s.Field) {
			fields[i].Column = s.Field
		}
	}
	t.listed = l.Beside // so that no directory is listed again
	uris, sizes := column.Texts(l.Paths), column.Ints(l.Sizes)
	t.n, t.table, t.paths = uris.Rows, columns.OfFiles(uris.Rows), &paths{Column: uris, listed: true}
	t.stores.columns = map[string]*columns.Column{}
	for _, name := range o.Columns {
		t.stores.columns[name] = nil
	}
	ofArrays := len(l.Paths) > 0 && (IsStore(l.Paths[0]) || magic.Named(l.Paths[0]) == magic.NPZ)
	for _, source := range fields {
		if source.Column == PathColumn && source.Kind != Text {
			source.Column = "" // a path of rasters, as in tables
		}
		f := fieldColumns{name: source.Field}
		if ofArrays {
			if f.labels, err = t.isLabel(ctx, l, &source, fields); err != nil {
				return err
			}
		}
		switch {
		case source.Beside:
			f.kind = Text
		case f.labels != "":
		case isNamed(fields, t.table, source.Column) && source.Kind != Raster && source.Pattern == "": // see nameFields
		case source.Column != "" && !ofArrays, source.Blob != "":
			name, way := cmp.Or(source.Column, source.Blob), ""
			if ext := path.Ext(name); ext != "" {
				way = fmt.Sprintf("; files are named by a pattern, such as %q", path.Join(path.Dir(name), "{id}"+ext))
			}
			return noField(source, fault.NotFound,
				"column %q needs a table (.parquet, .csv or .tsv): listed rasters have no columns but "+
					"%q and the names of patterns%s", name, PathColumns, way)
		default:
			f.kind, f.main, f.array, f.axes = Raster, uris, cmp.Or(source.Column, source.array), source.Axes
			if f.columns = map[string]*columns.Column{layout.Size: sizes}; source.Kind == Text {
				f.kind, f.columns = Text, nil
			}
		}
		t.fields = append(t.fields, f)
	}
	if !slices.ContainsFunc(fields, func(s Source) bool { return s.Pattern != "" || s.Column != "" }) {
		t.Remarks.PairBy = halves(append(slices.Clip(l.Paths), l.Picture))
	}
	return t.pair(ctx, fields, o)
}

// openHeld opens a CSV file or STAC items, or a glob of such files as one table.
func (t *Table) openHeld(ctx context.Context, fields []Source, o Options) error {
	fields = t.orOwn(fields)
	for _, s := range fields { // whose names are columns
		o.Columns = slices.Concat(o.Columns, column.Names(s.Pattern))
		o.Texts = slices.Concat(o.Texts, column.Names(s.Pattern))
	}
	tab, err := t.readText(ctx, o.wants(fields, magic.Named(source.Name(t.src)).Class == magic.Items))
	if err != nil {
		return err
	}
	return t.openTable(ctx, tab, fields, "", o)
}

// openRecords opens a TFRecord file, or a glob of them as one table.
func (t *Table) openRecords(ctx context.Context, fields []Source, o Options) error {
	several := listing.IsGlob(t.src) && t.severalFiles()
	names, base := []string{t.src}, ""
	if t.base = listing.Folder(t.src); several {
		files, err := listing.List(ctx, t.src, t.roots, t.opener, listing.AllFiles)
		if err != nil {
			return err
		}
		names, base, t.base = files.Paths, files.Base, files.Base
	}
	names, err := t.allowAll(base, names)
	if err != nil {
		return err
	}
	tab, err := columns.OpenRecords(ctx, t.opener, names, !several, t.pages.cache)
	if err != nil {
		return err
	}
	return t.openTable(ctx, tab, fields, "", o)
}

// readText reads the columns that want accepts of a text, or of the files of a glob.
func (t *Table) readText(ctx context.Context, want func(name string) texts.Want) (*columns.Table, error) {
	if !listing.IsGlob(t.src) || !t.severalFiles() {
		file, err := t.reader(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		return columns.OpenText(ctx, file, t.src, want)
	}
	pattern, member := t.withoutMember()
	files, err := listing.List(ctx, pattern, t.roots, t.opener, listing.AllFiles)
	if err != nil {
		return nil, err
	}
	names, err := t.allowAll(files.Base, files.Paths)
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] += member
	}
	t.base = files.Base
	return columns.OpenFiles(ctx, t.opener, names, files.Paths, want)
}

func (t *Table) openParquet(ctx context.Context, fields []Source, o Options) error {
	file, err := t.reader(columns.WithSmallFile(ctx, t.pages.cache))
	if err != nil {
		return err
	}
	t.marks = source.Marks(file)
	tab, err := columns.OpenParquet(ctx, file, t.pages.cache)
	if err != nil {
		_ = file.Close()
		return err
	}
	t.table = tab
	assets := ""
	if tab.IsCatalog() {
		if v := tab.Meta(layout.VersionKey); v != "" && v != layout.Version {
			return fault.New(fault.Unsupported, "footer", "catalog version %q; this is version %s", v, layout.Version)
		}
		assets = layout.URI
		if t.footer, err = footerOf(tab); err != nil {
			return err
		}
	}
	return t.openTable(ctx, tab, fields, assets, o)
}

// allowAll allows paths in a directory.
func (l location) allowAll(base string, paths []string) (names []string, err error) {
	l.base, names = base, make([]string, len(paths))
	for i, path := range paths {
		if names[i], err = l.allow(path); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// openShards opens the Parquet files of a directory or glob as one table.
func (t *Table) openShards(ctx context.Context, paths []string, fields []Source, o Options) error {
	names, err := t.allowAll(t.base, paths)
	if err != nil {
		return err
	}
	tab, err := columns.OpenShards(ctx, t.opener, names, t.pages.cache)
	if err != nil {
		return err
	}
	return t.openTable(ctx, tab, fields, "", o)
}

// severalFiles reports whether a name that ends like a Parquet file is a directory or a glob.
func (t *Table) severalFiles() bool {
	src, _ := t.withoutMember()
	if source.IsRemote(src) {
		return listing.MayGlob(src)
	}
	st, err := t.roots.Stat(source.LocalPath(src))
	return err == nil && st.IsDir() || err != nil && listing.IsGlob(src)
}

// withoutMember returns the file, or the glob of files, that has the rows, and "::" with the path of these in each.
func (t *Table) withoutMember() (src, member string) {
	if file, path, ok := source.SplitJSON(t.src); ok {
		return file, source.Separator + path
	}
	return t.src, ""
}

// openTable makes the fields from a table's columns. assets is the column of a catalog's URIs, "" for other tables.
func (t *Table) openTable(ctx context.Context, tab *columns.Table, fields []Source, assets string, o Options) error {
	if err := columns.CheckRows(tab.Rows()); err != nil {
		return err
	}
	t.table, t.n = tab, tab.Rows()
	fields = t.orOwn(fields)
	isNamed := func(name string) bool {
		listedAs := func(pattern string) bool { return slices.Contains(column.Names(pattern), name) }
		return isNamed(fields, tab, name) || slices.ContainsFunc(t.footer.listed.Patterns, listedAs) && !tab.Has(name)
	}
	for _, s := range fields {
		isColumn := s.Column != "" && s.Pattern == "" && s.Kind != Raster
		if assets != "" && isColumn && isNamed(s.Column) {
			t.fields = append(t.fields, fieldColumns{name: s.Field}) // see nameFields
			continue
		}
		if s.Maybe && !t.HasColumn(s.Column) {
			t.fields = append(t.fields, fieldColumns{name: s.Field, kind: Text, main: column.Nulls(t.n)})
			continue
		}
		field, err := t.tableField(ctx, tab, s, assets)
		if err != nil {
			return fault.InPart(err, fmt.Sprintf("field %q", s.Field))
		}
		t.fields = append(t.fields, field)
	}
	if assets == "" {
		return nil
	}
	uris, err := tab.Column(assets)
	if err != nil {
		return err
	}
	shared, err := sharedFolder(ctx, uris)
	if err != nil {
		return err
	}
	root := string(shared)
	if source.Scheme(root) == "" && !filepath.IsAbs(root) {
		root = ""
	}
	t.paths = &paths{Column: uris, root: root}
	return t.pair(ctx, fields, o)
}

// OfImages reports whether its rows are images, so a field without a column and a pattern is the image of the
// row: in a listing, and in a catalog of single rasters.
func (t *Table) OfImages() bool { return t.paths != nil && len(t.footer.fields) == 0 }

// Len returns N, the number of samples.
func (t *Table) Len() int64 { return t.n }

// Fields returns how many fields a sample has.
func (t *Table) Fields() int { return len(t.fields) }

// Kind returns the kind of a field. Open has read all that it needs.
func (t *Table) Kind(field int) Kind { return t.fields[field].kind }

// Fingerprint returns 32 hexadecimal digits that depend on the names and sizes of the samples and on the values of
// metadata columns; see the package comment.
func (t *Table) Fingerprint() string { return t.fingerprint }

// Marks returns what marks the contents of the listed files or, of a Parquet file, of the table: "etag:" or "mtime:"
// and a text that is equal for equal marks; or "".
func (t *Table) Marks() string { return t.marks }

// Close closes the table. Assets that it returned stay valid.
func (t *Table) Close() error {
	err := t.table.Close()
	if t.closer != nil {
		err = errors.Join(err, t.closer.Close())
	}
	return err
}

// values returns the values of a field, with a row for each sample.
func (t *Table) values(field int) *columns.Column {
	return t.fields[field].ofSamples(t.fields[field].main)
}

func (t *Table) checkRow(row int64) {
	if row < 0 || row >= t.n {
		panic(fmt.Sprintf("catalog: row %d of %d", row, t.n))
	}
}

// Value returns a field's value of a sample; of a raster field, its URI as the dataset has it. row must be in 0 …
// Len()-1. A string that is not UTF-8 is Corrupt.
func (t *Table) Value(ctx context.Context, field int, row int64) (Value, error) {
	t.checkRow(row)
	cell, err := t.values(field).Cell(ctx, row)
	if err != nil {
		return Value{}, fault.WithFile(err, t.src)
	}
	texts, kind := []Value{cell}, t.fields[field].kind
	if kind.IsList() {
		texts = cell.List
	}
	invalid := func(c Value) bool { return !utf8.Valid(c.Text) }
	if kind.Elem() == Text && slices.ContainsFunc(texts, invalid) {
		part := fmt.Sprintf("field %q row %d", t.fields[field].name, row)
		if format := magic.Of(cell.Text); format.Class.Pixels() {
			return Value{}, fault.WithFile(fault.New(fault.Unsupported, part, "the cell holds the bytes of a %s file: "+
				"write it to a file, and its path into the table", format.End()), t.src)
		}
		return Value{}, fault.WithFile(fault.New(fault.Corrupt, part, "the string is not UTF-8"), t.src)
	}
	value := cell.Clone()
	if t.fields[field].contents && !value.Null {
		return t.content(ctx, field, row, string(value.Text))
	}
	if !t.fields[field].resolved || value.Null {
		return value, nil
	}
	path := arrayOf(t.resolve(string(value.Text)), t.fields[field].array)
	value.Text = []byte(path)
	if !t.fields[field].optional {
		return value, nil
	}
	file, err := t.opener.Open(ctx, path)
	if fault.KindOf(err) == fault.NotFound {
		return Value{Null: true}, nil
	}
	if err == nil {
		err = file.Close()
	}
	return value, fault.WithFile(err, path)
}

// maxText bounds a file that is the text of a sample, in bytes.
const maxText = 1 << 20

// OfTexts reports whether the field has what files of texts hold. Of rasters a field of kind text has the paths.
func (s *Source) OfTexts() bool {
	file, _ := fileOf(s.Pattern)
	class := magic.Named(file).Class
	if class.Pixels() || class == magic.Store {
		return false
	}
	return s.Kind == Text && s.Pattern != "" && !s.Beside
}

// content returns what a file holds as text.
func (t *Table) content(ctx context.Context, field int, row int64, name string) (v Value, err error) {
	uri, err := t.allow(name)
	if err != nil {
		return v, err
	}
	file, err := t.opener.Open(ctx, uri)
	if err != nil {
		return v, fault.WithFile(err, uri)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	part := fmt.Sprintf("field %q row %d", t.fields[field].name, row)
	if file.Size() > maxText {
		return v, fault.WithFile(fault.New(fault.Limit, part, "a text of %d bytes, at most %d", file.Size(),
			maxText), uri)
	}
	if v.Text, err = source.Read(ctx, file, 0, file.Size()); err == nil && !utf8.Valid(v.Text) {
		err = fault.New(fault.Corrupt, part, "the text is not UTF-8")
	}
	return v, fault.WithFile(err, uri)
}

// ID returns the name of a sample in errors and reports: the URI of its first raster, as the dataset has it, or "row
// N".
func (t *Table) ID(ctx context.Context, row int64) (string, error) {
	for i := range t.fields {
		if t.fields[i].kind == Raster {
			v, err := t.Value(ctx, i, row)
			if err == nil && !v.Null {
				return t.named(string(v.Text), row), nil
			}
			if err != nil {
				return "", err
			}
		}
	}
	t.checkRow(row)
	return rowName(row), nil
}

// Asset returns the file of a sample's raster field. Its index comes from the table's blob or, if it has none, from the
// file itself. row must be in 0 … Len()-1. A null path is NotFound.
func (t *Table) Asset(ctx context.Context, field int, row int64) (Asset, error) {
	t.checkRow(row)
	asset, err := t.file(ctx, field, row)
	if err != nil {
		return Asset{}, err
	}
	return t.image(asset, row)
}

// file is Asset; of a Zarr store it is the first image.
func (t *Table) file(ctx context.Context, field int, row int64) (Asset, error) {
	f := &t.fields[field]
	if f.kind != Raster {
		return Asset{}, errNoRaster
	}
	if a, ok := t.standIn(ctx, field, row); ok {
		return a, nil
	}
	key := assetKey{field, f.tableRow(row)}
	if f.same != nil {
		key.row = f.tableRow(int64(f.same[row]))
	}
	if a, ok := t.assets.Get(key); ok {
		return a, nil
	}
	asset, err := t.asset(ctx, f, row)
	if err != nil {
		return Asset{}, err
	}
	t.assets.Add(key, asset, asset.Cost())
	return asset, nil
}

// footer is what the footer of a catalog says of its samples.
type footer struct {
	fields []string      // the names of the fields of a catalog of pairs
	listed layout.Listed // what its samples were called in the directory that it was made of
}

func footerOf(tab *columns.Table) (f footer, err error) {
	if text := tab.Meta(layout.FieldsKey); text != "" {
		err := json.Unmarshal([]byte(text), &f.fields)
		if err != nil || len(f.fields) == 0 || len(f.fields) > layout.MaxFields {
			return f, fault.New(fault.Corrupt, "footer", "%s are not the names of fields", layout.FieldsKey)
		}
	}
	text := tab.Meta(layout.ListedKey)
	if text != "" && json.Unmarshal([]byte(text), &f.listed) != nil {
		err = fault.New(fault.Corrupt, "footer", "%s is not valid", layout.ListedKey)
	}
	return f, err
}

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) ([]string, error) {
	if !IsParquet(src) {
		return nil, nil
	}
	o = o.withDefaults()
	table, err := columns.Open(ctx, o.Opener, src, o.CacheBytes/2)
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	footer, err := footerOf(table)
	return footer.fields, fault.WithFile(errors.Join(err, table.Close()), src)
}

// Share returns a context in which Open lists each directory or glob once. It is for the datasets of one run, opened
// with one opener: a mixture may name a directory many times.
func Share(ctx context.Context) context.Context { return listing.Share(ctx) }

// Glob returns the raster files that a pattern matches, sorted, as Open reads them. It returns pattern itself if it
// lacks the characters of a pattern, if it names a file, or if nothing matches: members of archives may have such
// names.
func Glob(ctx context.Context, o source.Opener, pattern string) (paths []string, err error) {
	if !listing.MayGlob(pattern) {
		return []string{pattern}, nil
	}
	files, err := listing.List(ctx, pattern, nil, o, listing.Rasters)
	if fault.KindOf(err) == fault.NotFound || err == nil && len(files.Paths) == 0 {
		return []string{pattern}, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range files.Paths {
		paths = append(paths, files.Path(i))
	}
	return paths, nil
}

// Announce says that the raster of a field in a row is read soon, after those that were announced before, until the
// caller calls over. Rasters in cells that share large pages are copied then when their page is read for another one.
func (t *Table) Announce(field int, row int64) (over func()) {
	f := &t.fields[field]
	if !f.cells.paged() || !t.Announces() {
		return func() {}
	}
	return f.cells.stored.Announce(f.tableRow(row))
}

// Extent returns where the raster of a field in a row lies, if an object holds several rasters: the bytes of the page
// that has its cell. It is nil for fields whose rasters are files.
func (t *Table) Extent(field int) func(ctx context.Context, row int64) (at source.Extent, ok bool) {
	f := &t.fields[field]
	if !f.cells.paged() {
		return nil
	}
	return func(ctx context.Context, row int64) (at source.Extent, ok bool) {
		at.URI, at.Range, ok = f.cells.stored.Extent(ctx, f.tableRow(row))
		at.URI = cmp.Or(at.URI, t.src)
		return at, ok
	}
}

// Announces reports whether Announce changes any reads: if some page takes so much of the cache that its cells are
// copied.
func (t *Table) Announces() bool { return t.pages.heavy }

// pagesOfCells are the pages of a Parquet file that rasters in cells share.
type pagesOfCells struct {
	cache int64 // bytes of decoded pages that are kept
	heavy bool  // some page takes so much of the cache that its cells are copied
}

// notePages notes the largest page of rasters in cells, unless the table's cache holds all of the column.
func (t *Table) notePages(ctx context.Context, c *cellRasters) error {
	if c.size() <= t.pages.cache {
		return nil
	}
	pageBytes, err := c.stored.PageBytes(ctx)
	if pageBytes > t.Remarks.PageBytes {
		t.Remarks.PageBytes, t.pages.heavy = pageBytes, c.table.IsHeavy(pageBytes)
		t.Remarks.PageFile, _ = t.cell(c, 0) // whose first row group stands for all
	}
	return err
}
