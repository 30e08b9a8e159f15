package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/encode"
)

// cozip writes the container as an archive of TACO 3: an index, the files, padding if the archive is small, and the
// block that the index lists: COLLECTION.json and the tables. The index, and the checksum of it and of the end of the
// archive, are set last.
func (w *writer) cozip(ctx context.Context, f archiveFile) error {
	if err := w.name(ctx); err != nil {
		return err
	}
	tail := &tailed{archiveFile: f}
	a := newArchive(tail)
	a.utf8 = true
	names := []string{taco3.CollectionName}
	for _, l := range w.named.levels {
		names = append(names, metadataFolder+taco3.TableName(l.Name))
	}
	index := taco3.AppendIndex(nil, names, make([][2]int64, len(names)))
	a.hold(crcAt, crcBytes)
	a.hold(taco3.ChecksumAt, 8+int64(len(index)))
	head, body, err := a.beginWith(taco3.IndexName, int64(len(index)), 0, taco3.IndexExtra(0))
	if err == nil {
		_, err = body.Write(index)
	}
	if err == nil {
		err = w.data(ctx, a)
	}
	if err != nil {
		return err
	}
	block, err := w.block(ctx)
	if err == nil {
		err = a.pad(names, block)
	}
	if err != nil {
		return err
	}
	places := make([][2]int64, len(names))
	for i, name := range names {
		s, err := a.addNew(name, block[i])
		if err != nil {
			return err
		}
		places[i] = [2]int64{s.off, s.size}
	}
	index = taco3.AppendIndex(nil, names, places)
	head.CRC32 = crc32.ChecksumIEEE(index)
	if err := a.zip.Close(); err != nil {
		return err
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	sum := taco3.Checksum(index, tail.last(), a.at())
	if err := a.patch(crcAt, binary.LittleEndian.AppendUint32(nil, head.CRC32)); err != nil {
		return err
	}
	if err := a.patch(taco3.ChecksumAt, append(binary.LittleEndian.AppendUint64(nil, sum), index...)); err != nil {
		return err
	}
	return a.finish()
}

// tailed keeps the last bytes that are written in order.
type tailed struct {
	archiveFile
	kept []byte
}

// Write implements io.Writer.
func (t *tailed) Write(p []byte) (int, error) {
	n, err := t.archiveFile.Write(p)
	t.kept = append(t.kept, p[max(0, n-taco3.TailBytes):n]...)
	if len(t.kept) > 8*taco3.TailBytes { // so that each byte is moved once for each seven that are written
		t.kept = append(t.kept[:0], t.last()...)
	}
	return n, err
}

// Hold implements holder for a file that does.
func (t *tailed) Hold(at, n int64) {
	if h, ok := t.archiveFile.(holder); ok {
		h.Hold(at, n)
	}
}

// last returns the last bytes, at most taco3.TailBytes.
func (t *tailed) last() []byte { return t.kept[max(0, len(t.kept)-taco3.TailBytes):] }

// data writes the files.
func (w *writer) data(ctx context.Context, a *archive) error {
	err := w.files(ctx, func(p place, l *loaded) (err error) {
		level := w.levels[p.level]
		if level.spans == nil {
			level.spans = make([]span, len(level.ids))
		}
		if l.size == 0 {
			return w.emptyFile(p)
		}
		if l.r == nil {
			level.spans[p.row], err = a.add(dataFolder+p.path, l.bytes, l.crc)
			return err
		}
		level.spans[p.row], err = a.copy(dataFolder+p.path, l.size, source.Sequential(ctx, l.r, 0))
		return err
	})
	for _, l := range w.levels {
		if l.spans == nil {
			l.spans = make([]span, len(l.ids)) // of folders
		}
	}
	return err
}

// emptyFile returns the error about a file without bytes.
func (w *writer) emptyFile(p place) error {
	id := w.levels[0].ids[w.topRow(p.level, int32(p.row))]
	_, file, _ := strings.Cut(p.path, "/")
	return fault.New(fault.Unsupported, "sample "+strconv.Quote(id), fault.NoOffset,
		"%s has no bytes: files of TACO 3 have some", file)
}

// Bytes of ZIP: a local header, an entry of the directory and the end, without names (APPNOTE 6.3, 4.3).
const (
	localBytes     = 30
	directoryBytes = 46
	endBytes       = 22
)

// pad adds the entry that brings a small archive to the least size, in front of the block that follows.
func (a *archive) pad(names []string, block [][]byte) error {
	size := a.at() + a.directory + endBytes
	for i, name := range names {
		size += int64(localBytes + directoryBytes + 2*len(name) + len(block[i]))
	}
	missing := taco3.MinBytes - size
	if missing <= 0 {
		return nil
	}
	n := max(1, missing-int64(localBytes+directoryBytes+2*len(taco3.PaddingName)))
	_, err := a.addNew(taco3.PaddingName, bytes.Repeat([]byte{taco3.PaddingByte}, int(n)))
	return err
}

// name finds the structure, once.
func (w *writer) name(ctx context.Context) (err error) {
	if w.named == nil {
		w.named, err = w.nameLevels(ctx, w.collection.sequences)
	}
	return err
}

// block returns COLLECTION.json and the tables, in the order of the index.
func (w *writer) block(ctx context.Context) ([][]byte, error) {
	out := [][]byte{nil}
	metadata := make([]member, len(w.named.levels))
	for i, l := range w.named.levels {
		c, err := w.columnsOf(ctx, l)
		if err != nil {
			return nil, fault.WithPart(err, l.Name, fault.NoOffset)
		}
		metadata[i] = member{l.Name, declaredColumns(c.cols)}
		b, err := w.stored(l).with(c).encoded(ctx, l.Name)
		if err != nil {
			return nil, fault.WithPart(err, l.Name, fault.NoOffset)
		}
		out = append(out, b)
	}
	doc, err := w.namedDocument(ctx, metadata)
	out[0] = doc
	return out, err
}

// columnsOf returns the columns of a level that are not about its place in the container.
func (w *writer) columnsOf(ctx context.Context, l *namedLevel) (*namedColumns, error) {
	depth, from := l.depth, w.levels[l.depth].columns
	if w.named.file != "" { // a sample and its file have one row of level 0
		files := l != w.named.levels[0]
		var keep []int
		for i, c := range from.Columns() {
			if ofFile(c.Name) == files {
				keep = append(keep, i)
			}
		}
		from = from.Select(keep)
	}
	rows := make([]int, len(l.rows))
	for i, row := range l.rows {
		rows[i] = int(row)
	}
	t := from.Take(rows)
	shared := 0
	for _, other := range w.named.levels {
		if other.depth == l.depth && w.named.file == "" {
			shared++
		}
	}
	if shared > 1 { // the columns of the other tables have no values in these rows
		var keep []int
		for i := range t.Columns() {
			v, err := t.At(ctx, i)
			if err != nil {
				return nil, err
			}
			for row := range v.Len() {
				if !v.Null(row) {
					keep = append(keep, i)
					break
				}
			}
		}
		t = t.Select(keep)
	}
	return modern(ctx, t, func(name string) string { return w.collection.descriptionOf(depth, name) })
}

// ofFile reports whether a column is about a file, and not about the sample.
func ofFile(name string) bool {
	space, _, _ := strings.Cut(name, ":")
	return name == "taco:header" || slices.Contains([]string{"rumi", "chaski", "geotiff", "stats", "scaling"}, space)
}

// Types of the columns of the container itself.
var (
	idForm   = &tables.Form{Required: true}
	rowID    = tables.Type{Kind: tables.Uint64, Bits: 64, Form: idForm}
	position = tables.Type{Kind: tables.Uint64, Bits: 64}
	nameType = tables.Type{Kind: tables.String, Form: idForm}
)

// stored returns the columns of the container itself.
func (w *writer) stored(l *namedLevel) *namedColumns {
	c := &namedColumns{}
	var vectors []*tables.Vector
	add := func(name string, t tables.Type, v *tables.Vector) {
		c.cols, vectors = append(c.cols, tables.Column{Name: name, Type: t}), append(vectors, v)
	}
	numbers := func(n func(i int) int64, nulls []bool) *tables.Vector {
		v := make([]int64, len(l.rows))
		for i := range v {
			v[i] = n(i)
		}
		return tables.NewInts(position, v, nulls)
	}
	level, samples := w.levels[l.depth], l == w.named.levels[0]
	add(taco2.ColumnCurrent, rowID, numbers(func(i int) int64 { return int64(i) }, nil))
	if !samples {
		add(taco2.ColumnParent, rowID, numbers(func(i int) int64 { return int64(l.parents[i]) }, nil))
	}
	paths := make([]string, len(l.rows))
	for i := range paths {
		paths[i] = w.named.path(w, l, i)
	}
	add(taco2.ColumnRelative, nameType, tables.NewStrings(paths, nil))
	switch {
	case samples:
		ids := make([]string, len(l.rows))
		for i, row := range l.rows {
			ids[i] = level.ids[row]
		}
		add(taco2.ColumnID, nameType.With(func(f *tables.Form) { f.Note = "Id of the sample" }), tables.NewStrings(ids, nil))
	case level.spans != nil:
		nulls := make([]bool, len(l.rows))
		for i, row := range l.rows {
			nulls[i] = level.folders[row]
		}
		add(taco2.ColumnOffset, position, numbers(func(i int) int64 { return level.spans[l.rows[i]].off }, nulls))
		add(taco2.ColumnSize, position, numbers(func(i int) int64 { return level.spans[l.rows[i]].size }, nulls))
	}
	names := make([]string, len(c.cols))
	for i, column := range c.cols {
		names[i] = column.Name
	}
	c.table = tables.FromVectors(names, vectors)
	return c
}

// with returns these columns and others.
func (c *namedColumns) with(o *namedColumns) *namedColumns {
	return &namedColumns{tables.Join(c.table, o.table), slices.Concat(c.cols, o.cols)}
}

// encoded returns the table of a level as Parquet.
func (c *namedColumns) encoded(ctx context.Context, level string) ([]byte, error) {
	enc, err := encode.NewWriter(c.cols, map[string]string{"taco:level": level})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = enc.Write(ctx, &b, c.table)
	return b.Bytes(), err
}

// declaredColumns returns what taco:metadata says of the columns of a level.
func declaredColumns(cols []tables.Column) object {
	out := object{}
	for _, c := range cols {
		f := c.Type.Stored()
		out = append(out, member{c.Name, object{{"type", taco3.DeclaredType(c.Type)}, {"nullable", !f.Required},
			{"description", f.Note}}})
	}
	return out
}

// namedDocument returns COLLECTION.json.
func (w *writer) namedDocument(ctx context.Context, metadata []member) ([]byte, error) {
	if w.collection.Extent == nil {
		var err error
		if w.collection.Extent, err = extentOf(ctx, w.levels); err != nil {
			return nil, err
		}
	}
	return w.collection.named(member{"taco:structure", w.named.paths}, member{"taco:metadata", object(metadata)})
}

// named returns COLLECTION.json of TACO 3 with more members. Members that TACO 3 does not have go to the namespace
// taco2.
func (c *Collection) named(more ...member) ([]byte, error) {
	providers, others := people(c.Providers, "name", "roles", "url", "links")
	curators, _ := people(c.Curators)
	members := []member{{"taco:version", taco3.WrittenVersion}, {"id", c.ID}, {"description", c.Description},
		{"licenses", c.Licenses}, {"providers", providers}}
	for _, m := range []struct {
		member
		given bool
	}{{member{"tasks", c.Tasks}, len(c.Tasks) > 0}, {member{"title", c.Title}, c.Title != ""},
		{member{"keywords", c.Keywords}, len(c.Keywords) > 0}, {member{"curators", curators}, len(c.Curators) > 0},
		{member{"extent", c.Extent}, c.Extent != nil}, {member{oldSpace + "providers", c.Providers}, others},
		{member{oldSpace + "dataset_version", c.DatasetVersion}, c.DatasetVersion != ""}} {
		if m.given {
			members = append(members, m.member)
		}
	}
	members = append(members, more...)
	known, err := filled(c.More)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		members = append(members, member{newMember(name), known[name]})
	}
	doc, err := object(members).MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, doc, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	if err := taco3.CheckCollection(out.Bytes()); err != nil {
		return nil, fault.New(fault.Unsupported, collName, fault.NoOffset, "cannot be that of TACO 3: %v", err)
	}
	return out.Bytes(), nil
}

// people returns people or organisations without members that are null, and with no others than allowed, if some are.
// others reports whether there were others.
func people(list []map[string]any, allowed ...string) (out []map[string]any, others bool) {
	for _, one := range list {
		kept := map[string]any{}
		for name, value := range one {
			switch {
			case value == nil:
			case allowed == nil || slices.Contains(allowed, name):
				kept[name] = value
			default:
				others = true
			}
		}
		out = append(out, kept)
	}
	return out, others
}

// newMember returns the name of a further member in TACO 3.
func newMember(name string) string {
	space, field, ok := strings.Cut(name, ":")
	if ok && taco3.ColumnName(space+":x") {
		return name
	}
	if !ok {
		field = name
	}
	return oldSpace + field
}

// checkNamed checks the members that TACO 3 wants.
func (c *Collection) checkNamed() error {
	_, err := c.named(member{"taco:structure", []string{"x"}},
		member{"taco:metadata", object{{"sample", object{}}, {"children", object{}}}})
	return err
}

// namedFolder writes the container of TACO 3 into the empty folder dir, which is synced afterwards.
func (w *writer) namedFolder(ctx context.Context, dir string) error {
	made := map[string]bool{}
	return w.namedInto(ctx, func(name string, l *loaded) error {
		path := pathname.Join(dir, name)
		if folder := pathname.Dir(path); !made[folder] {
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return err
			}
			made[folder] = true
		}
		return writeNew(path, func(f io.Writer) error {
			if l.r == nil {
				return written(l.bytes)(f)
			}
			_, err := io.Copy(f, source.Sequential(ctx, l.r, 0))
			return err
		})
	})
}

// namedInto calls put with the name of each file of a folder of TACO 3, and its bytes.
func (w *writer) namedInto(ctx context.Context, put func(name string, l *loaded) error) error {
	if err := w.name(ctx); err != nil {
		return err
	}
	err := w.files(ctx, func(p place, l *loaded) error {
		if l.size == 0 {
			return w.emptyFile(p)
		}
		return put(dataFolder+p.path, l)
	})
	if err != nil {
		return err
	}
	block, err := w.block(ctx)
	if err != nil {
		return err
	}
	for i, l := range w.named.levels {
		name := metadataFolder + taco3.TableName(l.Name)
		if err := put(name, &loaded{bytes: block[i+1], size: int64(len(block[i+1]))}); err != nil {
			return err
		}
	}
	return put(collName, &loaded{bytes: block[0], size: int64(len(block[0]))})
}

// modern takes what members of TACO 3 say of files and columns, and leaves the members that TACO 2 has, too.
func (c *Collection) modern(members map[string]json.RawMessage) {
	var paths []string
	if json.Unmarshal(members["taco:structure"], &paths) == nil {
		if l, err := taco3.NewLayout(paths); err == nil {
			c.sequences = l.Sequences()
		}
	}
	var levels map[string]map[string]struct{ Description string }
	if json.Unmarshal(members["taco:metadata"], &levels) == nil {
		c.said = map[string]string{}
		for level, columns := range levels {
			depth := strings.Count(level, "/")
			if level != "sample" {
				depth++
			}
			for name, of := range columns {
				c.said[keyOf(depth, name)] = of.Description
			}
		}
	}
	for name, value := range members {
		space, field, _ := strings.Cut(name, ":")
		if space == "taco" {
			delete(members, name)
		} else if space+":" == oldSpace {
			delete(members, name)
			members[field] = value
		}
	}
	members["taco_version"] = quoted(Version)
}
