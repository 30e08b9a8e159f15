package taco3

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Verify implements model.Reader. It checks all that taco-eo's validate does: the rows of each level against
// taco:structure, their columns against taco:metadata, the entries of the ZIP against the rows, the files of a
// directory; and the CRC-32 of every entry.
func (c *reader) Verify(ctx context.Context, r *model.Report) error {
	if err := c.read(ctx, len(c.byDepth)-1); err != nil {
		return err
	}
	for _, level := range c.levels {
		if err := c.verifySchema(level); err != nil {
			return fault.WithFile(fault.WithPart(err, level.name, 0), c.container.URI)
		}
	}
	if err := c.verifySources(ctx); err != nil {
		return fault.WithFile(err, c.container.URI)
	}
	if err := c.verifyRows(ctx); err != nil {
		return err
	}
	switch c.container.Form {
	case model.Cozip:
		file, err := c.container.File(ctx, c.container.URI)
		if err != nil {
			return err
		}
		return c.verifyArchive(ctx, file, "", r)
	case model.CozipFolder:
		return c.verifyFiles(ctx, r)
	}
	return c.verifyParts(ctx, r)
}

// verifySchema compares the columns of a level with taco:metadata.
func (c *reader) verifySchema(l *levelTable) error {
	if name, _ := l.tbl.Meta("taco:level"); name != l.name {
		return corrupt("taco:level", "is %.80q", name)
	}
	want := map[string]string{model.ColumnCurrent: "uint64", model.ColumnRelative: "string"}
	switch {
	case l.above == nil:
		want[model.ColumnID] = "string"
	case c.container.Form == model.CozipFolder:
		want[model.ColumnParent] = "uint64"
	default:
		want[model.ColumnParent], want[model.ColumnOffset], want[model.ColumnSize] = "uint64", "uint64", "uint64"
	}
	if c.container.Form == model.CozipCatalog {
		want[model.ColumnSource] = "string"
	}
	for name, d := range c.coll.metadata[l.name] {
		want[name] = typeName(d.Type)
	}
	for _, col := range l.tbl.Columns() {
		switch have := storedName(col.Type); want[col.Name] {
		case have:
		case "":
			return corrupt("column "+col.Name, "is not declared")
		default:
			return corrupt("column "+col.Name, "has type %s, declared is %s", have,
				want[col.Name])
		}
		delete(want, col.Name)
	}
	for name := range want {
		return corrupt("column "+name, "is missing")
	}
	return nil
}

// sourceRows are the rows of one source in the level of samples, and how many of each level belong to it.
type sourceRows struct {
	file string
	rows int
}

// verifySources compares taco:sources with the rows of a catalog.
func (c *reader) verifySources(ctx context.Context) error {
	declared := c.coll.sources
	if c.container.Form != model.CozipCatalog {
		if declared != nil {
			return collectionFault("has taco:sources, which only a catalog has")
		}
		return nil
	}
	if declared == nil || declared.Samples == nil {
		return collectionFault("has no taco:sources with the number of samples")
	}
	var stored []sourceRows
	samples := c.levels[0]
	for i := range samples.tbl.Len() {
		if name := samples.Sources.Str(i); len(stored) == 0 || stored[len(stored)-1].file != name {
			stored = append(stored, sourceRows{file: name})
		}
		stored[len(stored)-1].rows++
	}
	total := 0
	for k, p := range declared.Partitions {
		if k >= len(stored) || stored[k].file != p.File || int64(stored[k].rows) != p.Samples {
			return collectionFault("taco:sources says that %.80q has %d samples: the rows disagree", p.File, p.Samples)
		}
		total += stored[k].rows
	}
	if len(stored) != len(declared.Partitions) || int64(total) != *declared.Samples {
		return collectionFault("taco:sources says %d samples in %d files: the rows have %d in %d", *declared.Samples,
			len(declared.Partitions), total, len(stored))
	}
	return ctx.Err()
}

// verifyRows compares the rows of all levels with taco:structure, and their paths and places.
func (c *reader) verifyRows(ctx context.Context) error {
	if c.levels[0].tbl.Len() == 0 {
		return fault.WithFile(corrupt(c.levels[0].name, "there are no samples"), c.container.URI)
	}
	for _, level := range c.levels {
		var current *tables.Vector
		err := model.Columns(ctx, level.tbl, model.Want{To: &current, Name: model.ColumnCurrent, Kind: tables.Uint64},
			model.Want{To: &level.paths, Name: model.ColumnRelative, Kind: tables.String})
		if err != nil {
			return fault.WithFile(fault.WithPart(err, level.name, 0), c.container.URI)
		}
		for i := range level.tbl.Len() {
			if current.Null(i) || current.Int(i) != int64(i) {
				return c.inRow(level, i, "%s is not the number of the row", model.ColumnCurrent)
			}
		}
		if level.above == nil {
			err = c.verifySamples(level)
		} else {
			err = c.verifyBelow(ctx, level)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifySamples checks the rows of the level of samples.
func (c *reader) verifySamples(level *levelTable) error {
	seen := make(map[string]bool, level.tbl.Len())
	number := 0 // of the sample in its own ZIP
	for i := range level.tbl.Len() {
		if level.Sources != nil && i > 0 && level.Sources.Str(i) != level.Sources.Str(i-1) {
			number = 0
		}
		id := level.names.Str(i)
		switch {
		case level.names.Null(i) || strings.TrimSpace(id) == "":
			return c.inRow(level, i, "the id is empty")
		case seen[id]:
			return c.inRow(level, i, "another sample has the id %.80q, too", id)
		case level.paths.Null(i) || level.paths.Str(i) != strconv.Itoa(number):
			return c.inRow(level, i, "%s is %.80q: it must be %d", model.ColumnRelative, level.paths.Str(i), number)
		}
		seen[id] = true
		number++
	}
	return nil
}

// verifyBelow checks the rows of a level below the samples.
func (c *reader) verifyBelow(ctx context.Context, level *levelTable) error {
	above := level.above
	for i, parent := range level.parents {
		p := int(parent)
		placed := level.Offsets != nil && !(level.Offsets.Null(i) && level.Sizes.Null(i))
		switch {
		case i > 0 && parent < level.parents[i-1]: // readers find rows by the parent alone, but go on in order
			return c.inRow(level, i, "its parent is %d: it follows a row of %d", parent, level.parents[i-1])
		case level.paths.Str(i) != above.paths.Str(p)+"/"+level.ids[i]:
			return c.inRow(level, i, "%s is %.80q: its parent's is %.80q", model.ColumnRelative, level.paths.Str(i),
				above.paths.Str(p))
		case level.Sources != nil && (level.Sources.Null(i) || level.Sources.Str(i) != above.Sources.Str(p)):
			return c.inRow(level, i, "%s is another than its parent's", model.ColumnSource)
		case placed && c.folder(level, i):
			return c.inRow(level, i, "a folder has %s or %s", model.ColumnOffset, model.ColumnSize)
		}
	}
	first, rows := model.Group(level.parents, above.tbl.Len())
	for p := range above.tbl.Len() {
		if p%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.verifyChildren(level, p, rows[first[p]:first[p+1]]); err != nil {
			return err
		}
	}
	return nil
}

// verifyChildren checks the rows below row p of the level above l.
func (c *reader) verifyChildren(l *levelTable, p int, rows []int32) error {
	above := l.above
	if above.above != nil && strings.TrimPrefix(above.folder+"/"+above.ids[p], "/") != l.folder {
		if len(rows) > 0 {
			return c.inRow(l, int(rows[0]), "its parent %d is not the folder %s", p, l.folder)
		}
		return nil
	}
	names := num.Pick(l.ids, rows)
	order, wrong := c.coll.structure.Order(l.folder, names)
	for i := range names {
		if wrong == names[i] || wrong == "" && order[i] != i {
			return c.inRow(l, int(rows[i]), "%s %.80q is not in taco:structure, or not in its place",
				model.ColumnRelative, l.paths.Str(int(rows[i])))
		}
	}
	if wrong != "" {
		return c.inRow(above, p, "lacks %s", strings.TrimPrefix(l.folder+"/"+wrong, "/"))
	}
	return nil
}

// verifyFiles checks that DATA of a directory has the files of the rows, and no others.
func (c *reader) verifyFiles(ctx context.Context, r *model.Report) error {
	named := map[string]bool{}
	err := c.container.EachObject(ctx, r, func(_ context.Context, e store.Entry, file source.Reader) error {
		if file.Size() == 0 {
			return fault.WithFile(corrupt("file", "has no bytes"), e.URI)
		}
		level, i := c.tableRow(e.Level, e.Row)
		named[level.paths.Str(i)] = true
		r.Files++
		r.Bytes += file.Size()
		return nil
	})
	if err != nil {
		return err
	}
	return c.verifyListing(ctx, named)
}

// verifyListing looks for files that no row names, where the directory can be listed.
func (c *reader) verifyListing(ctx context.Context, named map[string]bool) error {
	if source.IsRemote(c.container.URI) {
		return nil
	}
	tablesOf := map[string]bool{}
	for _, l := range c.levels {
		tablesOf[TableName(l.name)] = true
	}
	err := walk(ctx, source.Join(c.container.URI, "METADATA"), func(path string) error {
		if strings.HasSuffix(path, ".parquet") && !tablesOf[path] {
			return corrupt("METADATA/"+path, "is not declared")
		}
		return nil
	})
	if err == nil {
		err = walk(ctx, source.Join(c.container.URI, "DATA"), func(path string) error {
			if !named[path] {
				return corrupt("DATA/"+path, "is in no row")
			}
			return nil
		})
	}
	return fault.WithFile(err, c.container.URI)
}

// walk calls each for every file below a local directory, with its path there.
func walk(ctx context.Context, dir string, each func(path string) error) error {
	return fs.WalkDir(os.DirFS(source.LocalPath(dir)), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return cmp.Or(err, ctx.Err())
		}
		return each(path)
	})
}

// verifyParts checks the rows of a catalog against its ZIPs. Missing ones are listed.
func (c *reader) verifyParts(ctx context.Context, r *model.Report) error {
	var done []string
	samples := c.levels[0]
	for i := range samples.tbl.Len() {
		name := samples.Sources.Str(i)
		if slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		if samples.Sources.Null(i) || model.BadSource(name) {
			return c.inRow(samples, i, "%s %.80q is not the name of a file below", model.ColumnSource, name)
		}
		uri := source.Join(c.container.From.Base, name)
		file, err := c.container.From.Opener.Open(ctx, uri)
		if err != nil && model.IsMissing(err) {
			r.Absent = append(r.Absent, uri)
			continue
		}
		if err != nil {
			return fault.WithFile(err, uri)
		}
		if err := errors.Join(c.verifyArchive(ctx, file, name, r), file.Close()); err != nil {
			return fault.WithFile(err, uri)
		}
	}
	return nil
}

// verifyArchive checks the entries of a ZIP against the rows of a source; "" is the container itself.
func (c *reader) verifyArchive(ctx context.Context, r source.Reader, from string, rep *model.Report) error {
	rows := map[string]span{} // places by the name of the entry
	for _, level := range c.levels[1:] {
		for i := range level.tbl.Len() {
			if !c.folder(level, i) && (from == "" || level.Sources.Str(i) == from) {
				rows["DATA/"+level.paths.Str(i)] = span{Off: level.Offsets.Int(i), Size: level.Sizes.Int(i)}
			}
		}
	}
	index := c.index
	if from != "" {
		var err error
		if index, err = indexOf(ctx, r); err != nil {
			return err
		}
	}
	maps.Copy(rows, index.spans)
	return fault.WithFile(verifyZIP(ctx, r, index, rows, rep), c.container.URI)
}

// indexOf reads the index of a cozip.
func indexOf(ctx context.Context, r source.Reader) (*zipIndex, error) {
	head, err := source.Read(ctx, r, 0, min(indexAt, r.Size()))
	if err != nil {
		return nil, err
	}
	x, _, err := readIndex(ctx, r, head)
	return x, err
}

// verifyZIP checks that a ZIP has an entry at each place, with the name and no other, one behind the other, and that
// their bytes have the CRC-32 of the entries.
func verifyZIP(ctx context.Context, r source.Reader, x *zipIndex, places map[string]span, rep *model.Report) error {
	where, _, err := zipdir.Find(ctx, r, 0)
	if err != nil {
		return err
	}
	// Behind the directory are its end, of 22 bytes, and in front of that in a ZIP64 56 and 20 more.
	if rest := r.Size() - where.Off - where.Size; rest != 22 && rest != 22+56+20 {
		return corrupt("central directory", "the archive has a comment")
	}
	entries, err := zipdir.Read(ctx, r, 0, func([]byte) bool { return true })
	if err != nil {
		return err
	}
	end, left, listed := int64(0), len(places), 0
	for _, name := range slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return cmp.Compare(entries[a].Local, entries[b].Local)
	}) {
		entry := entries[name]
		data, err := zipdir.Data(ctx, r, name, entry)
		if err != nil {
			return err
		}
		bad := func(format string, args ...any) error {
			return fault.At(fault.Corrupt, "entry "+name, data.Off, format, args...)
		}
		_, isTable := x.spans[name]
		switch place, named := places[name]; {
		case !entry.Plain || entry.Size != entry.Bytes:
			return bad("is not stored as it is")
		case name == IndexName, name == PaddingName:
		case !named || place != span(data):
			return bad("has %d bytes: tables and index say otherwise", data.Size)
		case isTable:
			left, listed = left-1, listed+1
		case listed > 0 && x.profile == profileTACO:
			return bad("stands behind the tables")
		default:
			left--
			rep.Files++
			rep.Bytes += data.Size
		}
		if entry.Local != end || data.Off-end != int64(30+len(name)) && name != IndexName {
			return bad("does not follow the entry before it")
		}
		end = data.Off + data.Size
		if entry.CRC == 0 && data.Size > 0 {
			return bad("has no CRC-32")
		}
		if err := zipdir.CheckSum(ctx, r, "entry "+name, data, entry.CRC); err != nil {
			return err
		}
	}
	switch {
	case left > 0:
		return corrupt("central directory", "lacks %d entries of the tables and the index", left)
	case end != where.Off:
		return corrupt("central directory", "does not follow the last entry")
	}
	return nil
}

// PaddingName is the entry that fills small archives up, with bytes PaddingByte.
const (
	PaddingName = "__cozip_padding__"
	PaddingByte = 'Z'
)

// Verify implements model.Reader.
func (f *flatReader) Verify(ctx context.Context, r *model.Report) error {
	file, err := f.container.File(ctx, f.container.URI)
	if err != nil {
		return err
	}
	index, err := indexOf(ctx, file)
	if err != nil {
		return fault.WithFile(err, f.container.URI)
	}
	places := map[string]span{metadataName: index.spans[metadataName]}
	for i := range f.tbl.Len() {
		entry, err := f.container.EntryOf(ctx, 0, i)
		if err != nil {
			return err
		}
		places[entry.ID] = span{Off: entry.Offset, Size: entry.Size}
	}
	return fault.WithFile(verifyZIP(ctx, file, index, places, r), f.container.URI)
}
