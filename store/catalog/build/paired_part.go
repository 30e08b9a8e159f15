package build

import (
	"cmp"
	"context"
	"errors"
	"github.com/chaski-eo/chaski/store/catalog"
	"io"
	"iter"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// A part of a catalog of pairs is a catalog of some of its samples, without the other columns of a table: MergePairs
// adds those.

// eachPair calls add for the files of every sample, in the order of the catalog's rows.
func eachPair(ctx context.Context, paths []string, o Options, add func(File) error) (err error) {
	o.Counts = cmp.Or(o.Counts, &Counts{})
	paired, err := openPaired(ctx, paths, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, paired.close()) }()
	for i := range paired.files[0] {
		file, err := paired.files[0][i].file()
		if err != nil {
			return err
		}
		for _, files := range paired.files[1:] {
			next, err := files[i].file()
			if err != nil {
				return err
			}
			file.More = append(file.More, next)
		}
		if err := add(file); err != nil {
			return err
		}
	}
	return nil
}

// pairsOf returns the pairs of the files of a part.
func pairsOf(files []File, o Options) (*paired, error) {
	p := &paired{fields: o.Fields, o: o, files: make([][]namedFile, len(o.Fields))}
	if err := p.columns(); err != nil {
		return nil, err
	}
	for i := range files {
		file := &files[i]
		if len(file.More) != len(o.Fields)-1 {
			return nil, fault.New(fault.Corrupt, "files", fault.NoOffset, "sample %d has %d files for %d fields", i,
				1+len(file.More), len(o.Fields))
		}
		p.files[0] = append(p.files[0], file.named(&o))
		for k := range file.More {
			p.files[k+1] = append(p.files[k+1], file.More[k].named(&o))
		}
	}
	p.row = reflect.StructOf(p.types)
	return p, nil
}

// MergePairs is MergeParts of a catalog of pairs. path is the one path of Files: if it is a table, the other columns
// are read from it, and so are the paths of all files, with which the rows of the parts are matched.
func MergePairs(ctx context.Context, w io.Writer, parts iter.Seq2[*io.SectionReader, error], path string,
	o Options) (n int, err error) {
	part := &paired{fields: o.Fields, o: o}
	if err := part.columns(); err != nil {
		return 0, err
	}
	part.row = reflect.StructOf(part.types)
	m := &pairMerge{part: part.row, fields: len(o.Fields), out: part}
	if catalog.IsTable(path) {
		o.Counts = cmp.Or(o.Counts, &Counts{})
		if m.out, err = openPaired(ctx, []string{path}, o); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, m.out.close()) }()
		m.table, m.rows = m.out.files, m.out.rows
		m.out.rows = []int64{0}
	}
	m.out.first, m.out.more = 0, make([][]rowio.Row, 1)
	return rowio.Copy(w, m.out, func(add func(*rowio.Row) error) error {
		for p, err := range parts {
			if err == nil {
				err = m.copy(ctx, p, add)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// pairMerge copies the rows of parts.
type pairMerge struct {
	part   reflect.Type // of a row of a part
	fields int
	out    *paired
	table  [][]namedFile // by field, the files of the table's rows that have all; nil without a table
	rows   []int64       // the numbers of those rows
	at     int           // the next of them
}

// copy calls add for every row of a part, after it has set what out adds to the row.
func (m *pairMerge) copy(ctx context.Context, part *io.SectionReader, add func(*rowio.Row) error) (err error) {
	if _, err := checkCatalog(ctx, sectionReader{part}); err != nil {
		return err
	}
	file, err := parquet.OpenFile(part, part.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fault.Wrap(fault.Corrupt, "footer", fault.NoOffset, err)
	}
	schema := parquet.SchemaOf(reflect.New(m.part).Interface())
	if file.Schema().String() != schema.String() {
		return fault.New(fault.Corrupt, "footer", fault.NoOffset, "it has other columns than those of the fields")
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		err := m.group(ctx, rows, schema, add)
		if err = errors.Join(err, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// group calls add for every row of a row group.
func (m *pairMerge) group(ctx context.Context, rows parquet.Rows, schema *parquet.Schema,
	add func(*rowio.Row) error) error {
	buf := make([]parquet.Row, 64)
	return eachBatch(ctx, func() (int, error) { return rows.ReadRows(buf) }, func(n int) error {
		for _, r := range buf[:n] {
			value := reflect.New(m.part)
			if err := schema.Reconstruct(value.Interface(), r); err != nil {
				return fault.Wrap(fault.Corrupt, "row", fault.NoOffset, err)
			}
			first, err := m.next(value.Elem())
			if err == nil {
				err = add(first)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// next returns the row of the first field, and hands the rows of the other fields, and of the table, to out.
func (m *pairMerge) next(v reflect.Value) (*rowio.Row, error) {
	count := Type.NumField()
	rows := make([]rowio.Row, m.fields)
	for f := range rows {
		target := reflect.ValueOf(&rows[f]).Elem()
		for k := range count {
			target.Field(k).Set(v.Field(f*count + k))
		}
	}
	m.out.more[0] = rows[1:]
	if m.table == nil {
		return &rows[0], nil
	}
	// Rows that a shard left out because a file of theirs cannot be indexed are passed over.
	for ; m.at < len(m.rows); m.at++ {
		if m.isRow(rows) {
			m.out.rows[0] = m.rows[m.at]
			m.at++
			return &rows[0], nil
		}
	}
	return nil, fault.WithFile(fault.New(fault.NotFound, "table", fault.NoOffset,
		"has no row of %q: it changed since the parts were listed", rows[0].URI), m.out.name)
}

// isRow reports whether the next row of the table has these files.
func (m *pairMerge) isRow(all []rowio.Row) bool {
	for f := range all {
		if m.table[f][m.at].uri != all[f].URI {
			return false
		}
	}
	return true
}
