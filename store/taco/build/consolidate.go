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
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
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
	x := indexOf(form)
	if err := gather(ctx, names, path, x, o); err != nil {
		return nil, err
	}
	return x.counts(), writeIndex(ctx, x, path, form)
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

// contents is the content of several ZIPs of one generation.
type contents interface {
	// add adds a ZIP, which has a name in the index.
	add(ctx context.Context, d *taco.Dataset, name string) error
	// encoded returns the files of an index of a form: tables, and COLLECTION.json at the end.
	encoded(ctx context.Context, form Form) ([]entry, error)
	counts() *Result
}

// indexOf returns what joins ZIPs for an index of a form.
func indexOf(form Form) contents {
	if form == CozipCatalog {
		return &cozips{ids: map[string]string{}}
	}
	return &index{}
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
func gather(ctx context.Context, zips []string, path string, x contents, o Options) error {
	defer o.open()()
	if len(zips) == 0 {
		return fault.WithFile(fault.New(fault.NotFound, "index", fault.NoOffset, "is of no ZIP"), path)
	}
	var taken []string
	for i, zip := range zips {
		name, err := zipName(pathname.Dir(path), zip, taken)
		if err == nil {
			err = addZIP(ctx, x, o.Opener, zip, name)
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

// addZIP opens a ZIP and adds it.
func addZIP(ctx context.Context, x contents, o source.Opener, zip, name string) (err error) {
	dataset, err := taco.Open(ctx, o, []string{zip}, taco.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	return x.add(ctx, dataset, name)
}

// index is the joined content of several ZIPs of TACO 2.
type index struct {
	result Result
	ids    map[string]string // of level 0, with the ZIP of each; nil if they may repeat
	// repeats says that some of the ids repeat.
	repeats bool
	first   string // the ZIP that says what columns and what tree there are

	collection Collection // of the first
	pit        *model.Tree
	sources    sources
	levels     [][]*tables.Table // by level, the tables of each ZIP
}

// sources is taco:sources: which files there are, and what place and time each is about.
type sources struct {
	Count   int            `json:"count"`
	IDs     []string       `json:"ids"`
	Files   []string       `json:"files"`
	Extents []taco2.Extent `json:"extents"`
}

// add implements contents.
func (x *index) add(ctx context.Context, dataset *taco.Dataset, name string) error {
	if parts := dataset.Parts(); len(parts) != 1 || dataset.Form() != ZIP {
		return unsupported("file", "is a %s: an index is of ZIPs", dataset.Form())
	}
	collection, err := CollectionOf(dataset)
	if err != nil {
		return err
	}
	w := &writer{collection: *collection}
	if w.levels, err = wholeLevels(ctx, dataset); err != nil {
		return err
	}
	return x.join(ctx, w, name)
}

// join adds the levels of a ZIP, which has a name in the index.
func (x *index) join(ctx context.Context, w *writer, name string) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	tree := pit(w.levels)
	if x.pit == nil {
		x.first, x.levels = name, make([][]*tables.Table, len(w.levels))
	}
	if len(w.levels) != len(x.levels) {
		return unsupported("pit_schema", "it has %d levels, and %q has %d", len(w.levels), x.first, len(x.levels))
	}
	for k, level := range w.levels {
		level.takePlaces()
		for i := range level.Rows {
			if !level.Rows[i].Folder {
				x.result.Files++
				x.result.Bytes += level.spans[i].Size
			}
		}
		n, source := len(level.Rows), func(int) string { return name }
		table := tables.Join(w.consolidated(k), new(columns).add(taco.SourceColumn, Texts(n, source)).table(n))
		if len(x.levels[k]) > 0 {
			if err := sameColumns(x.levels[k][0], table, levelName(k), x.first); err != nil {
				return err
			}
		}
		x.levels[k] = append(x.levels[k], table)
	}
	if err := x.count(tree); err != nil {
		return err
	}
	for i := range w.levels[0].Rows {
		if w.levels[0].Rows[i].Padding {
			continue
		}
		x.result.Samples++
		if err := unique(x.ids, w.levels[0].Rows[i].ID, name); err != nil && !x.repeats {
			return err
		}
	}
	return x.describe(ctx, w, name)
}

// unique adds the id of a sample of level 0, and refuses it if another ZIP has it. ids is nil if they may repeat.
func unique(ids map[string]string, id, zip string) error {
	if ids == nil {
		return nil
	}
	if in, found := ids[id]; found {
		return unsupported("sample "+strconv.Quote(id), "%q has one of this id", in)
	}
	ids[id] = zip
	return nil
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
func (x *index) count(tree *model.Tree) error {
	if x.pit == nil {
		x.pit = tree
		return nil
	}
	if !x.pit.Same(tree) {
		return unsupported("pit_schema", "the tree of its samples differs from the tree of %q", x.first)
	}
	x.pit.Root.N += tree.Root.N
	for level, folders := range x.pit.Hierarchy {
		for i := range folders {
			folders[i].N += tree.Hierarchy[level][i].N
		}
	}
	return nil
}

// describe adds the description of a ZIP.
func (x *index) describe(ctx context.Context, w *writer, name string) error {
	if err := w.collection.Check(); err != nil {
		return err
	}
	if err := w.located(ctx, world()); err != nil {
		return err
	}
	extent, id := *w.collection.Extent, w.collection.ID
	if len(x.sources.Files) == 0 {
		x.collection = w.collection
		x.collection.Extent = &Extent{Spatial: extent.Spatial, Temporal: extent.Temporal}
	} else {
		x.collection.Extent.cover(&extent)
	}
	sources := &x.sources
	sources.Count++
	sources.IDs, sources.Files = append(sources.IDs, id), append(sources.Files, name)
	sources.Extents = append(sources.Extents,
		taco2.Extent{File: name, ID: id, Spatial: extent.Spatial, Temporal: extent.Temporal})
	return nil
}

// document returns the COLLECTION.json of all ZIPs.
func (x *index) document(form Form) ([]byte, error) {
	levels := make([]*tables.Table, len(x.levels))
	for k, parts := range x.levels {
		levels[k] = parts[0].Without(taco.SourceColumn)
	}
	members := append(x.collection.ofTables(x.pit, levels), member{sourcesMember, x.sources})
	if form == TacocatFile {
		members = append(members, member{tacocatMember, map[string]any{"version": 1, "num_datasets": x.sources.Count,
			"dataset_sources": x.sources.Files}})
	}
	return x.collection.document(members...)
}

// counts implements contents.
func (x *index) counts() *Result { return &x.result }

// writeIndex writes an index of a form.
func writeIndex(ctx context.Context, x contents, path string, form Form) (err error) {
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
func (x *index) encoded(ctx context.Context, form Form) (out []entry, err error) {
	doc, err := x.document(form)
	if err != nil || form == Tacollection {
		return []entry{{collName, doc}}, err
	}
	for k, parts := range x.levels {
		table, err := tables.Concat(parts, tables.Strict)
		if err != nil {
			return nil, fault.WithPart(err, levelName(k), fault.NoOffset)
		}
		data, err := encoded(ctx, table, false)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{levelName(k) + ".parquet", data})
	}
	return append(out, entry{collName, doc}), nil
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
		if _, err := os.Lstat(pathname.Join(path, collName)); err != nil {
			return unsupported("folder", "exists and is not an index: it has no %s", collName)
		}
	}
	return durable.ReplaceFolder(path, func(folder string) error {
		_, err := putAll(ctx, localFolder(folder), "", files)
		return err
	})
}

// ZIPsIn returns the paths of the files *.tacozip in a folder that are not hidden, or without any those of the files
// *.zip, which TACO 3 has, in the order of their bytes.
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
	doc := entries[len(entries)-1].data
	if form == Tacollection {
		return doc
	}
	var lengths []int
	var contents [][]byte
	for _, e := range entries {
		lengths, contents = append(lengths, len(e.data)), append(contents, e.data)
	}
	return slices.Concat(taco2.TacocatHeader(lengths[:len(entries)-1], len(doc)), slices.Concat(contents...))
}
