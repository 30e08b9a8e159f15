package catalog

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// pairedSeparator stands between the name of a field of a catalog of pairs and that of a column of a catalog.
const pairedSeparator = ":"

// maxPaired bounds the fields of a catalog of pairs: each has 20 columns.
const maxPaired = 64

// paired is files that belong together by the patterns of fields.
type paired struct {
	fields []Source
	files  [][]namedFile // by field, then by row
	o      WriteOptions
	first  int     // row of the block
	more   [][]row // by row of the block: those of the fields after the first
	row    reflect.Type
}

// openPaired finds the files of every row.
func openPaired(ctx context.Context, paths []string, o WriteOptions) (*paired, error) {
	if len(paths) != 1 {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"a catalog of pairs is of one folder or glob, not of %d paths", len(paths))
	}
	p := &paired{fields: o.Fields, o: o}
	if err := p.columns(); err != nil {
		return nil, err
	}
	t, err := Open(ctx, paths[0], o.Fields, Options{Opener: o.Opener, DropIncomplete: o.DropIncomplete})
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	if t.table != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"is a table; a catalog of pairs is of a folder or glob"), paths[0])
	}
	o.Counts.Incomplete = t.dropped
	base, err := filepath.Abs(o.Base)
	if err != nil {
		return nil, err
	}
	p.files = make([][]namedFile, len(o.Fields))
	for i := range t.fields {
		err := t.fields[i].main.scan(ctx, func(_ int64, c cell) error {
			path := resolve(t.base, string(c.text))
			f := namedFile{uri: path, path: path}
			if !source.IsRemote(path) {
				if f.uri, err = uriOf(base, path, o.Absolute); err != nil {
					return err
				}
			}
			p.files[i] = append(p.files[i], f)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// columns makes the type of a row.
func (p *paired) columns() error {
	if len(p.fields) > maxPaired {
		return fault.New(fault.Limit, "catalog", fault.NoOffset, "%d fields, at most %d", len(p.fields), maxPaired)
	}
	own := map[string]bool{}
	var fields []reflect.StructField
	for i := range rowType.NumField() {
		f := rowType.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		own[name] = true
		fields = append(fields, f)
	}
	for k, s := range p.fields {
		if err := columnName(s.Field); err != nil {
			return err
		}
		if s.Pattern == "" {
			return noField(s, fault.Unsupported, "has no pattern: a catalog of pairs needs one for every field")
		}
		if k == 0 {
			continue
		}
		for i := range rowType.NumField() {
			f := rowType.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			if name == colURI {
				name = s.Field
			} else {
				name = s.Field + pairedSeparator + name
			}
			if own[name] || s.Field == p.fields[0].Field {
				return noField(s, fault.Unsupported, "%q is a column of the catalog already", name)
			}
			own[name] = true
			f.Name = "Field" + strconv.Itoa(k) + f.Name
			f.Tag = reflect.StructTag(`parquet:"` + name + "," + rest + `"`)
			f.Index, f.Offset = nil, 0
			fields = append(fields, f)
		}
	}
	p.row = reflect.StructOf(fields)
	return nil
}

// begin makes room for the rows of a block.
func (p *paired) begin(first, n int) error {
	p.first, p.more = first, make([][]row, n)
	return nil
}

// make reads the files of a row. Its time goes before the reading: a file that changes meanwhile then has another.
func (p *paired) make(ctx context.Context, i int) (row, error) {
	rows := make([]row, len(p.files))
	for k := range p.files {
		f := p.files[k][i]
		mtime := mtimeOf(f.path)
		r, err := readRow(ctx, f, p.o)
		if err != nil {
			return row{}, err
		}
		r.MTime = mtime
		rows[k] = r
	}
	p.more[i-p.first] = rows[1:]
	return rows[0], nil
}

func (p *paired) rowType() reflect.Type { return p.row }

func (p *paired) meta() []parquet.WriterOption {
	var names []string
	var out []parquet.WriterOption
	for i, s := range p.fields {
		if names = append(names, s.Field); i > 0 {
			prefix := s.Field + pairedSeparator
			out = append(out, parquet.SkipPageBounds(prefix+colIndex), parquet.SkipPageBounds(prefix+colHeader))
		}
	}
	b, _ := json.Marshal(names) // strings
	return append(out, parquet.KeyValueMetadata(metaFields, string(b)))
}

func (p *paired) extend(r *row, i int) (any, int, error) {
	v, size := reflect.New(p.row).Elem(), 0
	own := rowType.NumField()
	set := func(at int, r *row) {
		from := reflect.ValueOf(r).Elem()
		for k := range own {
			v.Field(at + k).Set(from.Field(k))
		}
	}
	set(0, r)
	for k := range p.more[i-p.first] {
		other := &p.more[i-p.first][k]
		set((k+1)*own, other)
		size += other.bytes()
	}
	return v.Interface(), size, nil
}

// pairedFields returns the fields of a catalog of pairs, nil of another one.
func pairedFields(tab *pqTable) (names []string, err error) {
	text := tab.f.Meta[metaFields]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) == 0 || len(names) > maxPaired {
		return nil, fault.New(fault.Corrupt, "footer", fault.NoOffset, "%s are not the names of fields", metaFields)
	}
	return names, nil
}

// Fields returns the names of the fields of a catalog of pairs, nil of any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	switch extension(src) {
	case ".parquet", ".pq", ".geoparquet":
	default:
		return nil, nil
	}
	o = o.withDefaults()
	t := &Table{src: src, roots: newRoots(o.Roots), opener: o.Opener}
	r, err := t.reader(ctx)
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	tab, err := openParquet(ctx, r, o.CacheBytes)
	if err != nil {
		_ = r.Close()
		return nil, fault.WithFile(err, src)
	}
	names, err = pairedFields(tab)
	_ = tab.close()
	return names, fault.WithFile(err, src)
}
