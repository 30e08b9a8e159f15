package columns

import (
	"context"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/tfrecord"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
)

// records are the rows of TFRecord files. Where they lie is in memory, and the records that were read last.
type records struct {
	files    []recordFile
	begins   []int64 // of the files, as Table.begins
	at       []source.Range
	features map[string]*feature
	cache    *lru.Cache[int64, []byte] // by row
}

type recordFile struct {
	name   string // "" if it is the whole table
	reader source.Reader
}

// feature is what all records say of a feature.
type feature struct {
	kind    tfrecord.Kind // 0: no record has a value
	mixed   bool          // records have values of several kinds
	several bool          // some record has more than one
}

const (
	maxFeatures  = 1 << 12
	recordBytes  = 16  // of memory for each record
	featureBytes = 128 // of memory for each feature, beside its name
)

// OpenRecords opens TFRecord files as a table: a row for each record, a column for each feature. It reads all of them
// once, and checks them. whole says that the one file is the whole table.
func OpenRecords(ctx context.Context, o source.Opener, names []string, whole bool, cacheBytes int64) (*Table, error) {
	r := &records{begins: []int64{0}, features: map[string]*feature{}, cache: lru.New[int64, []byte](cacheBytes)}
	for _, name := range names {
		file, err := o.Open(ctx, name)
		if err == nil {
			known := source.Known{Size: file.Size(), ETag: source.ETag(file)}
			err = r.add(ctx, file)
			if cerr := file.Close(); err == nil {
				err = cerr
			}
			opened := recordFile{name, &source.Reopened{Opener: o, URI: name, Known: known}}
			if whole {
				opened.name = ""
			}
			r.files = append(r.files, opened)
		}
		if err != nil {
			return nil, fault.WithFile(err, name)
		}
		r.begins = append(r.begins, int64(len(r.at)))
	}
	t := &Table{records: r, begins: r.begins, part: "features"}
	for name := range r.features {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	return t, nil
}

// add adds the records of a file.
func (r *records) add(ctx context.Context, file source.Reader) error {
	return tfrecord.Scan(ctx, file, func(off int64, data []byte) error {
		if err := budget.Grow(ctx, recordBytes); err != nil {
			return err
		}
		r.at = append(r.at, source.Range{Off: off, Len: int64(len(data))})
		err := tfrecord.Features(data, func(name, message []byte) error {
			f, err := tfrecord.Parse(message)
			if err != nil && fault.KindOf(err) != fault.Limit { // who reads such a feature is told
				return fault.WithPart(err, "feature "+fault.Short(string(name)), fault.NoOffset)
			}
			known := r.features[string(name)]
			if known == nil {
				if len(r.features) == maxFeatures {
					return fault.New(fault.Limit, "features", "over %d", maxFeatures)
				}
				if err := budget.Grow(ctx, featureBytes+int64(len(name))); err != nil {
					return err
				}
				known = &feature{}
				r.features[string(name)] = known
			}
			if n := f.Len(); n > 0 {
				known.mixed = known.mixed || known.kind != 0 && known.kind != f.Kind
				known.kind, known.several = f.Kind, known.several || n > 1
			}
			return nil
		})
		return fault.WithPart(err, "record "+strconv.Itoa(len(r.at)-1), off)
	})
}

// fileOf returns the number of the file that holds a row.
func (r *records) fileOf(row int64) int {
	return sort.Search(len(r.files)-1, func(i int) bool { return r.begins[i+1] > row })
}

// record returns the data of the record of a row.
func (r *records) record(ctx context.Context, row int64) ([]byte, error) {
	if data, ok := r.cache.Get(row); ok {
		return data, nil
	}
	file, extent := &r.files[r.fileOf(row)], r.at[row]
	data, err := tfrecord.Read(ctx, file.reader, extent.Off, extent.Len)
	if err != nil {
		return nil, fault.WithFile(err, file.name)
	}
	r.cache.Add(row, data, extent.Len)
	return data, nil
}

// elem returns the kind and the type of the values of a feature.
func (f *feature) elem() (column.Kind, tables.Type) {
	switch f.kind {
	case tfrecord.Floats:
		return column.Float, tables.Type{Kind: tables.Float64, Bits: 32}
	case tfrecord.Ints:
		return column.Int, tables.Ints
	}
	return column.Text, tables.Strings
}

// column returns a feature as a column: of lists if some record has several values, else null where one has none.
func (r *records) column(name string) (*Column, error) {
	known := r.features[name]
	if known.mixed {
		return nil, fault.New(fault.Unsupported, "column "+name, "records have values of several kinds")
	}
	kind, _ := known.elem()
	out := &Column{Kind: kind, Bytes: kind == column.Text, Rows: int64(len(r.at))}
	if known.several {
		out.Kind |= column.List
	}
	parse := func(data []byte, row int64) (v column.Value, err error) {
		f, err := find(data, name)
		if err != nil {
			part := "column " + name + " row " + strconv.FormatInt(row, 10)
			return v, fault.WithFile(fault.WithPart(err, part, fault.NoOffset), r.files[r.fileOf(row)].name)
		}
		return valueOf(&f, known.several), nil
	}
	out.Cell = func(ctx context.Context, row int64) (column.Value, error) {
		data, err := r.record(ctx, row)
		if err != nil {
			return column.Value{}, err
		}
		return parse(data, row)
	}
	out.Each = func(ctx context.Context, visit column.Visit) error {
		row := int64(0)
		for _, file := range r.files {
			err := tfrecord.Scan(ctx, file.reader, func(_ int64, data []byte) error {
				if row == out.Rows {
					return fault.New(fault.Corrupt, "file", "it has more records than when it was opened")
				}
				v, err := parse(data, row)
				if row++; err != nil {
					return err
				}
				return visit(row-1, v)
			})
			if err != nil {
				return fault.WithFile(err, file.name)
			}
		}
		return nil
	}
	return out, nil
}

// find returns a feature of an example. It is empty if the example lacks the feature.
func find(data []byte, name string) (f tfrecord.Feature, err error) {
	err = tfrecord.Features(data, func(other, message []byte) (err error) {
		if string(other) == name {
			f, err = tfrecord.Parse(message)
		}
		return err
	})
	return f, err
}

// valueOf returns the values of a feature as a list, or the one value.
func valueOf(f *tfrecord.Feature, several bool) column.Value {
	list := make([]column.Value, 0, f.Len())
	for _, b := range f.Bytes {
		list = append(list, column.Value{Text: b})
	}
	for _, v := range f.Floats {
		list = append(list, column.Value{Float: float64(v)})
	}
	for _, v := range f.Ints {
		list = append(list, column.Value{Int: v})
	}
	switch {
	case several:
		return column.Value{List: list}
	case len(list) == 0:
		return column.Value{Null: true}
	}
	return list[0]
}

// data returns the table for queries, whose columns are read when they are first used.
func (r *records) data(names []string) (*tables.Table, error) {
	if len(r.at) > math.MaxInt32 {
		return nil, fault.New(fault.Limit, "table", "%d records", len(r.at))
	}
	cols := make([]tables.Column, len(names))
	for i, name := range names {
		_, elem := r.features[name].elem()
		cols[i] = tables.Column{Name: name, Type: elem}
		if r.features[name].several {
			cols[i].Type = tables.Type{Kind: tables.List, Elem: &elem}
		}
	}
	return tables.New(len(r.at), cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		values, err := r.column(names[i])
		if err != nil {
			return nil, err
		}
		return vectorOf(ctx, values, cols[i].Type)
	}), nil
}
