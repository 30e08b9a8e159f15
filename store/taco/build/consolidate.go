package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// Consolidate writes an index of one or several ZIPs to path: their tables with the place of every sample in its ZIP
// (Tacocat, TacocatFile), or their joined descriptions (Tacollection). It replaces an existing index. It names the
// ZIPs by their path below its own folder, and so they must lie there.
//
// The ZIPs must have the same tree and, at each level, columns of the same names and types. Columns are in the order of
// the first ZIP, rows in the order of the ZIPs. Places come from the tables of folders, because METADATA of some
// writers has wrong ones. The options' opener must open local files.
//
// A folder among zips stands for the ZIPs in it: see ZIPsIn. Two runs that write indexes of a folder exclude
// each other.
func Consolidate(ctx context.Context, zips []string, path string, o Options) (_ *Result, err error) {
	unlock, err := lockIndexes(pathname.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	names, err := ZIPs(zips)
	if err != nil {
		return nil, err
	}
	form, err := indexForm(path, o.Form)
	if err != nil {
		return nil, err
	}
	defer o.open()()
	if form, err = newest(ctx, o.Opener, names, form); err != nil {
		return nil, err
	}
	x := &joinedIndex{generation: &treeIndex{}, of: ZIP, rule: "an index is of ZIPs"}
	if form == CozipCatalog {
		x = &joinedIndex{generation: &namedIndex{ids: map[string]string{}}, of: Cozip,
			rule: "an index of TACO 3 is of ZIPs of TACO 3"}
	}
	if err := x.gather(ctx, names, path, o); err != nil {
		return nil, err
	}
	return &x.result, x.write(ctx, path, form)
}

// ZIPs returns the paths among which folders stand for the ZIPs in them: see ZIPsIn.
func ZIPs(paths []string) (zips []string, err error) {
	for _, path := range paths {
		found := []string{path}
		if st, serr := os.Stat(path); serr == nil && st.IsDir() {
			found, err = ZIPsIn(path)
		}
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		if len(found) == 0 {
			// A container that is a folder needs to be refused by its name.
			found = []string{path}
		}
		zips = append(zips, found...)
	}
	return zips, nil
}

// joinedIndex is the joined content of several ZIPs of one generation of TACO.
type joinedIndex struct {
	generation
	of     Form   // of the ZIPs
	rule   string // the sentence about a file of another form
	result Result
	names  []string          // of the tables
	parts  [][]*tables.Table // by table, those of each ZIP
}

// generation is what differs between ZIPs of TACO 2 and of TACO 3.
type generation interface {
	// add adds the tables and the counts of a ZIP, which has a name in the index, to x.
	add(ctx context.Context, x *joinedIndex, d *taco.Dataset, name string) error
	// document returns the COLLECTION.json of an index of a form.
	document(x *joinedIndex, form Form) ([]byte, error)
}

// newest returns CozipCatalog for an index .tacocat of ZIPs of TACO 3, as the first one says, and form for all others.
func newest(ctx context.Context, o source.Opener, zips []string, form Form) (Form, error) {
	if form != Tacocat || len(zips) == 0 {
		return form, nil
	}
	dataset, err := taco.Open(ctx, o, zips[:1], taco.Options{})
	if err != nil {
		return 0, fault.WithFile(err, zips[0])
	}
	if dataset.Form() == Cozip {
		form = CozipCatalog
	}
	return form, fault.WithFile(dataset.Close(), zips[0])
}

// indexForm returns the form of an index. Auto stands for the form that its name says.
func indexForm(path string, form Form) (Form, error) {
	if form == Auto {
		form = FormOf(path)
	}
	if !form.Indexes() || form == CozipCatalog && filepath.Base(path) != tacocatName {
		return 0, fault.WithFile(unsupported("file",
			"is not an index: it must be called %s, %s or %s", tacocatName, tacocatFileName, tacollectionName), path)
	}
	return form, nil
}

// gather adds ZIPs to an index that will be in the folder of path.
func (x *joinedIndex) gather(ctx context.Context, zips []string, path string, o Options) error {
	if len(zips) == 0 {
		return fault.WithFile(fault.New(fault.NotFound, "index", "is of no ZIP"), path)
	}
	var taken []string
	for i, zip := range zips {
		name, err := zipName(pathname.Dir(path), zip, taken)
		if err == nil {
			err = x.open(ctx, o.Opener, zip, name)
		}
		if err != nil {
			return fault.WithFile(err, zip)
		}
		if taken = append(taken, name); o.Progress != nil {
			o.Progress(i+1, len(zips))
		}
	}
	return nil
}

// open opens a ZIP and adds it.
func (x *joinedIndex) open(ctx context.Context, o source.Opener, zip, name string) (err error) {
	dataset, err := taco.Open(ctx, o, []string{zip}, taco.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	if dataset.Form() != x.of || len(dataset.Parts()) != 1 {
		return unsupported("file", "is a %s: %s", dataset.Form(), x.rule)
	}
	return x.add(ctx, x, dataset, name)
}

// treeIndex joins the descriptions of ZIPs of TACO 2. The first one says what columns and what tree there are.
type treeIndex struct {
	collection Collection // of the first
	pit        *model.Tree
	sources    sourceList
}

// sourceList is taco:sources: which files there are, and what place and time each is about.
type sourceList struct {
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
	taco2.Sources
}

// add implements generation.
func (g *treeIndex) add(ctx context.Context, x *joinedIndex, dataset *taco.Dataset, name string) error {
	collection, err := CollectionOf(dataset)
	if err != nil {
		return err
	}
	w := &containerWriter{collection: *collection}
	if w.levels, err = wholeLevels(ctx, dataset); err != nil {
		return err
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	if g.pit == nil {
		x.parts = make([][]*tables.Table, len(w.levels))
		for k := range w.levels {
			x.names = append(x.names, model.LevelName(k))
		}
	}
	if len(w.levels) != len(x.parts) {
		return unsupported("pit_schema", "it has %d levels, and %q has %d", len(w.levels), g.sources.Files[0],
			len(x.parts))
	}
	for k, level := range w.levels {
		level.takePlaces()
		for i := range level.Rows {
			if !level.Rows[i].Folder {
				x.result.Files++
				x.result.Bytes += level.spans[i].Size
			}
			if k == 0 && !level.Rows[i].Padding {
				x.result.Samples++
			}
		}
		n, source := len(level.Rows), func(int) string { return name }
		table := tables.Join(w.consolidated(k), new(Columns).Add(taco.SourceColumn, Texts(n, source)).Table(n))
		if len(x.parts[k]) > 0 {
			if err := sameColumns(x.parts[k][0], table, model.LevelName(k), g.sources.Files[0]); err != nil {
				return err
			}
		}
		x.parts[k] = append(x.parts[k], table)
	}
	if err := g.count(pit(w.levels)); err != nil {
		return err
	}
	return g.describe(ctx, w, name)
}

// sameColumns checks that a table has the columns of the first, which is of the file name. Their order may differ.
func sameColumns(first, t *tables.Table, part, name string) error {
	bad := func(format string, args ...any) error { return unsupported(part, format, args...) }
	for _, column := range t.Columns() {
		i := first.Index(column.Name)
		if i < 0 {
			return bad("has a column %q, which %q has not", column.Name, name)
		}
		if was := first.Columns()[i].Type; was.Kind != tables.Null && column.Type.Kind != tables.Null &&
			!was.Equal(column.Type) {
			return bad("column %q has type %v, and %v in %q", column.Name, column.Type, was, name)
		}
	}
	for _, c := range first.Columns() {
		if t.Index(c.Name) < 0 {
			return bad("has no column %q, which %q has", c.Name, name)
		}
	}
	return nil
}

// count adds the numbers of samples of a tree, which must equal the tree of the first ZIP.
func (g *treeIndex) count(tree *model.Tree) error {
	if g.pit == nil {
		g.pit = tree
		return nil
	}
	if !g.pit.Same(tree) {
		return unsupported("pit_schema", "the tree of its samples differs from the tree of %q", g.sources.Files[0])
	}
	g.pit.Root.N += tree.Root.N
	for level, folders := range g.pit.Hierarchy {
		for i := range folders {
			folders[i].N += tree.Hierarchy[level][i].N
		}
	}
	return nil
}

// describe adds the description of a ZIP.
func (g *treeIndex) describe(ctx context.Context, w *containerWriter, name string) error {
	if err := w.collection.Check(); err != nil {
		return err
	}
	if err := w.located(ctx, world()); err != nil {
		return err
	}
	extent, id := *w.collection.Extent, w.collection.ID
	if len(g.sources.Files) == 0 {
		g.collection = w.collection
		g.collection.Extent = &Extent{Spatial: extent.Spatial, Temporal: extent.Temporal}
	} else {
		g.collection.Extent.cover(&extent)
	}
	sources := &g.sources
	sources.Count++
	sources.IDs, sources.Files = append(sources.IDs, id), append(sources.Files, name)
	sources.Extents = append(sources.Extents,
		taco2.Extent{File: name, ID: id, Spatial: extent.Spatial, Temporal: extent.Temporal})
	return nil
}

// document implements generation.
func (g *treeIndex) document(x *joinedIndex, form Form) ([]byte, error) {
	levels := make([]*tables.Table, len(x.parts))
	for k, parts := range x.parts {
		levels[k] = parts[0].Without(taco.SourceColumn)
	}
	members := append(g.collection.ofTables(g.pit, levels), jsonMember{sourcesMember, g.sources})
	if form == TacocatFile {
		members = append(members, jsonMember{tacocatMember, map[string]any{"version": 1,
			"num_datasets":    g.sources.Count,
			"dataset_sources": g.sources.Files}})
	}
	return g.collection.document(members...)
}

// write writes an index of a form.
func (x *joinedIndex) write(ctx context.Context, path string, form Form) (err error) {
	defer func() { err = fault.WithFile(err, path) }()
	files, err := x.encoded(ctx, form)
	switch {
	case err != nil:
		return err
	case form == Tacocat || form == CozipCatalog:
		return writeTacocat(ctx, path, files)
	}
	return replaceFile(path, oneFile(form, files))
}

// encoded returns the tables of an index, none for Tacollection, and its COLLECTION.json.
func (x *joinedIndex) encoded(ctx context.Context, form Form) (out []entry, err error) {
	doc, err := x.document(x, form)
	if err != nil || form == Tacollection {
		return []entry{{model.CollectionName, doc}}, err
	}
	for i, name := range x.names {
		table, err := tables.Concat(x.parts[i], column.Strict)
		if err != nil {
			return nil, fault.WithPart(err, name, fault.NoOffset)
		}
		var data []byte
		if form == CozipCatalog {
			// Concat leaves out what taco:metadata says of the types, so they are set again.
			first := x.parts[i][0].Columns()
			table = table.Retype(func(k int, _ tables.Column) tables.Type { return first[k].Type })
			data, err = encodedNamed(ctx, name, table)
		} else {
			data, err = encoded(ctx, table, false)
		}
		if err != nil {
			return nil, fault.WithPart(err, name, fault.NoOffset)
		}
		out = append(out, entry{taco3.TableName(name), data})
	}
	return append(out, entry{model.CollectionName, doc}), nil
}

// replaceFile writes a file, which may replace one.
func replaceFile(path string, content []byte) error {
	if err := replaceable(path); err != nil {
		return err
	}
	return durable.WriteFile(path, func(f *os.File) error {
		_, err := disk(f).Write(content)
		return err
	})
}

// writeTacocat writes the folder .tacocat, in exchange for an existing one.
func writeTacocat(ctx context.Context, path string, files []entry) error {
	if st, err := os.Lstat(path); err == nil && !st.IsDir() {
		return unsupported("folder", "exists and is not a folder")
	} else if err == nil {
		if _, err := os.Lstat(pathname.Join(path, model.CollectionName)); err != nil {
			return unsupported("folder", "exists and is not an index: it has no %s", model.CollectionName)
		}
	}
	return durable.ReplaceFolder(path, func(folder string) error {
		_, err := putAll(ctx, localFolder(folder), "", files)
		return err
	})
}

// ZIPsIn returns the paths of the files *.tacozip in a folder that are not hidden, in the order of their bytes. If
// there are no such files it returns the files *.zip, which TACO 3 has.
func ZIPsIn(folder string) (zips []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, ending := range []string{".tacozip", ".zip"} {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ending) && !strings.HasPrefix(e.Name(), ".") {
				zips = append(zips, pathname.Join(folder, e.Name()))
			}
		}
		if zips != nil {
			break
		}
	}
	return zips, err
}

// lockIndexes keeps other runs from the indexes of a folder until unlock is called. The path may be a link.
func lockIndexes(path string) (unlock func() error, err error) {
	target, err := realPath(path)
	if err != nil {
		return nil, err
	}
	lock, err := durable.Lock(target)
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, fault.WithFile(unsupported("container", "another run writes an index"), path)
	case errors.Is(err, errors.ErrUnsupported):
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	}
	return lock.Close, nil
}

// zipName returns the name of a ZIP in an index that is in a folder, which must not be one of taken.
func zipName(folder, zip string, taken []string) (string, error) {
	base, err := realPath(folder)
	if err != nil {
		return "", err
	}
	file, err := realPath(zip)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(base, file)
	name = filepath.ToSlash(name)
	what := ""
	switch {
	case err != nil || !filepath.IsLocal(name):
		what = "does not lie in the folder of the index, " + strconv.Quote(folder) + ", or below it"
	case slices.Contains(taken, name):
		what = "is named twice"
	default:
		return name, nil
	}
	return "", unsupported("file", "%s", what)
}

// realPath returns a path from the root, without links.
func realPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return pathname.Abs(path)
}

// oneFile returns an index that is one file, of its tables and its description.
func oneFile(form Form, entries []entry) []byte {
	if form == Tacollection {
		return entries[len(entries)-1].data
	}
	var lengths []int
	var contents [][]byte
	for _, e := range entries {
		lengths, contents = append(lengths, len(e.data)), append(contents, e.data)
	}
	return slices.Concat(taco2.TacocatHeader(lengths...), slices.Concat(contents...))
}
