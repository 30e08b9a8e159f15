package build

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// Join adds the columns of a table to a catalog.
type Join struct {
	// Table is a Parquet or CSV (.csv, .tsv) file with flat columns of numbers and strings, as
	// datasets may be. All of its columns are added, except one called "uri".
	Table string
	// On is the column that names the file of a row: by its URI as it is written in the catalog or,
	// if no row has that, by its name without directory and extension. No two rows may have the
	// same value; a row may belong to several files.
	On string
	// Left allows files without a row; their columns are null. Otherwise they are NotFound.
	Left bool
}

// maxJoined bounds the columns of a joined table: reflect.StructOf makes a struct type of them.
const maxJoined = 1000

// joined is a table whose rows belong to files.
type joined struct {
	tab  columns.Table
	cols []columns.Column
	at   []int64      // the row of each file, or -1
	row  reflect.Type // a struct with the fields of rowio.Row, then a pointer or slice for each of cols
	name string
}

// openJoin opens the table and finds the row of each file, before any file is read.
func openJoin(ctx context.Context, o Options, files []namedFile) (_ *joined, err error) {
	j := &joined{name: o.Join.Table}
	names, err := j.open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = j.tab.Close()
		}
	}()
	if err := columns.CheckRows(j.tab.Rows()); err != nil {
		return nil, err
	}
	if err := j.columns(names, o.Join.On); err != nil {
		return nil, err
	}
	keys, err := j.keys(ctx, o.Join.On)
	if err != nil {
		return nil, err
	}
	return j, j.match(files, keys, o)
}

// open opens the table and returns the names of its columns.
func (j *joined) open(ctx context.Context, o Options) ([]string, error) {
	r, err := o.Opener.Open(ctx, j.name)
	if err != nil {
		return nil, err
	}
	switch ext := strings.ToLower(filepath.Ext(j.name)); ext {
	case ".csv", ".tsv":
		defer func() { _ = r.Close() }()
		comma := ','
		if ext == ".tsv" {
			comma = '\t'
		}
		t, err := columns.OpenCSV(ctx, r, comma, nil, o.Join.On)
		if err != nil {
			return nil, err
		}
		j.tab = t
		return t.Names, nil
	case ".parquet", ".pq", ".geoparquet":
		t, err := columns.OpenParquet(ctx, r, 32<<20)
		if err != nil {
			_ = r.Close()
			return nil, err
		}
		j.tab = t
		names := make([]string, len(t.File.Columns))
		for i := range t.File.Columns {
			names[i] = t.File.Columns[i].Name
		}
		return names, nil
	}
	_ = r.Close()
	return nil, fault.New(fault.Unsupported, "table", fault.NoOffset, "its name ends neither like Parquet nor like CSV")
}

// Type is the type of a row without further columns.
var Type = reflect.TypeFor[rowio.Row]()

// columns makes the type of a row with the table's columns.
func (j *joined) columns(names []string, on string) error {
	if !slices.Contains(names, on) {
		_, err := j.tab.Column(on)
		return err
	}
	if len(names) > maxJoined {
		return fault.New(fault.Limit, "table", fault.NoOffset, "%d columns, at most %d", len(names), maxJoined)
	}
	var fields []reflect.StructField
	own := map[string]bool{}
	for i := range Type.NumField() {
		f := Type.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		own[name] = true
		fields = append(fields, f)
	}
	for _, name := range names {
		if name == layout.URI {
			continue // the catalog's own
		}
		part := "column " + name
		if own[name] {
			return fault.New(fault.Unsupported, part, fault.NoOffset, "a catalog already has a column of this name")
		}
		if err := columnName(name); err != nil {
			return err
		}
		own[name] = true
		c, err := j.tab.Column(name)
		if err != nil {
			return err
		}
		fields = append(fields, reflect.StructField{
			Name: "Joined" + strconv.Itoa(len(j.cols)), Type: goType(c),
			Tag: reflect.StructTag(`parquet:"` + name + `,optional,plain,zstd` + timeTag(c) + `"`),
		})
		j.cols = append(j.cols, c)
	}
	j.row = reflect.StructOf(fields)
	return nil
}

// columnName checks that a name can be written into a struct tag, where parquet-go reads it.
func columnName(name string) error {
	if name == "" || name == "-" || strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || strings.ContainsRune("\",`\\", r)
	}) {
		return fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
			"%q cannot be a column's name in a catalog", name)
	}
	return nil
}

// timeTag returns the struct tag's annotation of a column of dates or timestamps.
func timeTag(c columns.Column) string {
	p, ok := c.(*columns.ParquetColumn)
	if !ok {
		return ""
	}
	return map[time.Duration]string{
		columns.Day: ",date", time.Millisecond: ",timestamp(millisecond)",
		time.Microsecond: ",timestamp(microsecond)", time.Nanosecond: ",timestamp(nanosecond)",
	}[p.Unit]
}

// goType returns the Go type of a column, whose nil is a null.
func goType(c columns.Column) reflect.Type {
	if p, ok := c.(*columns.ParquetColumn); ok && p.Unit == columns.Day {
		return reflect.TypeFor[*int32]()
	}
	switch c.Kind() {
	case catalog.Int:
		return reflect.TypeFor[*int64]()
	case catalog.Float:
		return reflect.TypeFor[*float64]()
	}
	if p, ok := c.(*columns.ParquetColumn); ok && p.Opaque {
		return reflect.TypeFor[[]byte]()
	}
	return reflect.TypeFor[*string]()
}

// keys returns the row of each value of a column.
func (j *joined) keys(ctx context.Context, on string) (map[string]int64, error) {
	c, err := j.tab.Column(on)
	if err != nil {
		return nil, err
	}
	if c.Kind() == catalog.Float {
		return nil, fault.New(fault.Unsupported, "column "+on, fault.NoOffset, "holds floats, which cannot name files")
	}
	keys := map[string]int64{}
	err = c.Scan(ctx, func(row int64, v columns.Cell) error {
		key := string(v.Text)
		if c.Kind() == catalog.Int {
			key = strconv.FormatInt(v.Int, 10)
		}
		if v.Null || key == "" {
			return nil
		}
		if other, twice := keys[key]; twice {
			return fault.New(fault.Corrupt, "column "+on, fault.NoOffset,
				"rows %d and %d both have %q", other, row, key)
		}
		keys[key] = row
		return nil
	})
	return keys, err
}

// match finds the row of each file.
func (j *joined) match(files []namedFile, keys map[string]int64, o Options) error {
	j.at = make([]int64, len(files))
	used := map[int64]bool{}
	missing := ""
	for i, f := range files {
		row, ok := keys[f.uri]
		if !ok {
			row, ok = keys[stem(f.uri)]
		}
		if !ok {
			row = -1
			if o.Counts.Unmatched++; missing == "" {
				missing = f.uri
			}
		} else {
			used[row] = true
		}
		j.at[i] = row
	}
	o.Counts.Unused = int(j.tab.Rows()) - len(used)
	if missing == "" || o.Join.Left {
		return nil
	}
	others := ""
	if o.Counts.Unmatched > 1 {
		others = fmt.Sprintf(", and none for %d more files", o.Counts.Unmatched-1)
	}
	return fault.New(fault.NotFound, "column "+o.Join.On, fault.NoOffset, "has neither %q nor %q%s", missing,
		stem(missing), others)
}

// stem returns the name of a file without directory and extension.
func stem(uri string) string {
	base := path.Base(uri)
	return strings.TrimSuffix(base, path.Ext(base))
}

// RowType implements rowio.Columns.
func (j *joined) RowType() reflect.Type { return j.row }

// Meta implements rowio.Columns.
func (j *joined) Meta() []parquet.WriterOption { return nil }

// Extend implements rowio.Columns: it adds the table's values to the row of file i.
func (j *joined) Extend(r *rowio.Row, i int) (any, int, error) {
	v, from := reflect.New(j.row).Elem(), reflect.ValueOf(r).Elem()
	own := from.NumField()
	for k := range own {
		v.Field(k).Set(from.Field(k))
	}
	if j.at[i] < 0 {
		return v.Interface(), 0, nil
	}
	size := 0
	for k, c := range j.cols {
		x, err := c.Cell(context.Background(), j.at[i])
		if err != nil {
			return nil, 0, fault.WithFile(err, j.name)
		}
		size += 8 + len(x.Text)
		if !x.Null {
			v.Field(own + k).Set(valueOf(x, v.Field(own+k).Type()))
		}
	}
	return v.Interface(), size, nil
}

func valueOf(x columns.Cell, t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[*int32](): // a date, of 32 bits
		n := int32(x.Int)
		return reflect.ValueOf(&n)
	case reflect.TypeFor[*int64]():
		return reflect.ValueOf(&x.Int)
	case reflect.TypeFor[*float64]():
		return reflect.ValueOf(&x.Float)
	case reflect.TypeFor[[]byte]():
		if len(x.Text) == 0 {
			return reflect.ValueOf([]byte{})
		}
		return reflect.ValueOf(bytes.Clone(x.Text))
	}
	s := string(x.Text)
	return reflect.ValueOf(&s)
}
