package tables

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/source"
)

// Options bounds the memory of a table. The zero value selects the defaults.
type Options struct {
	// MaxRows bounds the rows of a table, and the values in the lists of one column. The default is
	// 1<<26, some 67 million: a column of 8-byte numbers then takes 512 MiB.
	MaxRows int64
	// MaxBytes bounds the memory of one column. The default is 2 GiB.
	MaxBytes int64
	// Whole is the size in bytes up to which a Parquet object is read in one request and kept in
	// memory. Larger ones are read a column chunk at a time. The default is 32 MiB.
	Whole int64
}

// Read opens the Parquet object of size bytes at offset off of r. It reads and checks the footer, or the whole object
// if it is small. The table reads from r as long as it is used, and does not close it. Errors count offsets from the
// start of r.
func Read(ctx context.Context, r source.Reader, off, size int64, o Options) (*Table, error) {
	o.MaxRows, o.MaxBytes, o.Whole = cmp.Or(o.MaxRows, 1<<26), cmp.Or(o.MaxBytes, 2<<30), cmp.Or(o.Whole, 32<<20)
	section, err := source.SectionOf(r, off, size)
	if err != nil {
		return nil, fault.WithPart(err, "table", 0)
	}
	if size <= o.Whole {
		data, err := source.Read(ctx, r, off, size)
		switch {
		case err == nil:
			section = source.Memory(data)
		case fault.KindOf(err) != fault.Limit: // pages may be zeros
			return nil, err
		}
	}
	file, err := parquet.Open(ctx, section)
	if err != nil {
		return nil, fault.WithPart(err, "table", off)
	}
	if file.Rows > o.MaxRows {
		return nil, fault.At(fault.Limit, "table", off, "%d rows, at most %d", file.Rows, o.MaxRows)
	}
	cache := paged.NewCache(o.MaxBytes)
	loaded := &parquetTable{f: paged.New(file, cache, 0, o.Whole), o: o, base: off}
	cols, inArrow := make([]Column, len(file.Fields)), arrowFields(file.Meta[ArrowKey], len(file.Fields))
	for i := range file.Fields {
		cols[i] = Column{Name: file.Fields[i].Name, Type: loaded.typeOf(&file.Fields[i])}
		if inArrow != nil {
			cols[i].Type = cols[i].Type.inArrow(&inArrow[i])
		}
		loaded.types = append(loaded.types, cols[i].Type)
	}
	table := New(int(file.Rows), cols, loaded.column)
	table.pages = loaded
	return table, nil
}

// parquetTable loads the columns of a Parquet object.
type parquetTable struct {
	f     *paged.File
	o     Options
	base  int64
	types []Type      // of the columns
	keep  paged.Spans // the rows of the file that the table has; nil: all
	hold  bool        // keep decoded pages: see paged.Scan
}

// pages calls add with the wanted values of a column, page by page.
func (p *parquetTable) pages(ctx context.Context, leaf int, add func(v *parquet.Values) error) error {
	return p.f.InOrder(ctx, leaf, paged.Scan{Rows: p.keep, Keep: p.hold, Ahead: true}, add)
}

func (p *parquetTable) column(ctx context.Context, i int) (*Vector, error) {
	field := &p.f.Fields[i]
	var values *Vector
	var err error
	if field.Leaf >= 0 && !field.Repeated {
		values, err = p.flat(ctx, field.Leaf)
	} else {
		values, err = p.nested(ctx, field)
	}
	if err == nil {
		values.retype(p.types[i])
	}
	return values, fault.WithPart(err, "table", p.base)
}

// flat decodes a column of the top of the schema, page by page.
func (p *parquetTable) flat(ctx context.Context, leaf int) (*Vector, error) {
	builder := newBuilder(p, leaf)
	err := p.pages(ctx, leaf, builder.add)
	values, ferr := builder.vector()
	err = cmp.Or(err, ferr)
	if err != nil {
		return nil, err
	}
	// The vector has all rows, so the pages are not needed any more.
	if p.keep == nil {
		p.f.Cache.Forget(leaf)
	}
	return values, nil
}

// typeOf returns the type of a node of the schema. A repeated node is a list.
func (p *parquetTable) typeOf(f *parquet.Field) Type {
	if f.Repeated {
		t := p.bare(f)
		return Type{Kind: List, Elem: &t}
	}
	return p.bare(f)
}

// bare returns the type of a node as if it were not repeated itself.
func (p *parquetTable) bare(f *parquet.Field) Type {
	if f.Leaf >= 0 {
		return LeafType(&p.f.Columns[f.Leaf])
	}
	if list, elem := listOf(f); list != nil {
		typ := p.bare(elem)
		if elem.Repeated && elem != list {
			typ = p.typeOf(elem)
		}
		whole := Type{Kind: List, Elem: &typ}
		if f.Note.Kind == parquet.Map && typ.Kind == Struct && len(typ.Fields) == 2 {
			whole.Form = &Form{Store: Map}
		}
		return whole
	}
	structType := Type{Kind: Struct}
	for i := range f.Children {
		structType.Fields = append(structType.Fields, Column{Name: f.Children[i].Name, Type: p.typeOf(&f.Children[i])})
	}
	return structType
}

// listOf returns the repeated node in a group annotated LIST or MAP, and the node of its elements: the repeated node
// itself or its only child.
func listOf(f *parquet.Field) (list, elem *parquet.Field) {
	if f.Note.Kind != parquet.List && f.Note.Kind != parquet.Map || len(f.Children) != 1 || !f.Children[0].Repeated {
		return nil, nil
	}
	list = &f.Children[0]
	if list.Wraps {
		return list, &list.Children[0]
	}
	return list, list
}

// Required returns the type of column i with what the Parquet object that the table was read from says is never null.
func (t *Table) Required(i int) Type {
	if t.pages == nil {
		return t.cols[i].Type
	}
	return t.cols[i].Type.required(&t.pages.f.Fields[i])
}

// required returns the type of a node of the schema with what is never null in it.
func (t Type) required(f *parquet.Field) Type {
	_, elem := listOf(f)
	switch {
	case t.Kind == List && elem != nil && !f.Repeated:
		typ := t.Elem.required(elem)
		t.Elem = &typ
	case t.Kind == Struct && len(f.Children) == len(t.Fields):
		t.Fields = slices.Clone(t.Fields)
		for i := range t.Fields {
			t.Fields[i].Type = t.Fields[i].Type.required(&f.Children[i])
		}
	}
	return t.With(func(form *Form) { form.Required = !f.Optional && !f.Repeated })
}

// LeafType returns the type of a leaf of a file's schema, with what Parquet says about how it is stored.
func LeafType(c *parquet.Column) Type {
	typ := leafType(c)
	form, fixed := Form{}, c.Type == parquet.FixedLenByteArray
	switch note := c.Note; {
	case typ.Kind == Binary && fixed && note.Kind == parquet.Decimal && note.Scale >= 0 &&
		note.Scale <= note.Precision && note.Precision <= 76 && c.Size() <= 32: // as Arrow has them
		form = Form{Store: Decimals, Size: int32(c.Size()), Precision: note.Precision, Scale: note.Scale}
	case typ.Kind == Binary && fixed:
		form = Form{Store: FixedBytes, Size: int32(c.Size())}
		if note.Kind == parquet.UUID {
			form.Extension = ExtensionUUID
		}
	case typ.Kind == String && note.Kind == parquet.JSON:
		form.Extension = ExtensionJSON
	case (typ.Kind == Time || typ.Kind == Timestamp) && note.Unit == 3 && c.Type != parquet.Int96:
		form.Unit = 3
	}
	return typ.formed(form)
}

// leafType is LeafType in the default form.
func leafType(c *parquet.Column) Type {
	note := c.Note
	nano := c.Type == parquet.Int64 && note.Unit == 9
	switch {
	case note.Kind == parquet.Null:
		return Type{Kind: Null}
	case c.Type == parquet.Boolean:
		return Type{Kind: Bool}
	case note.Kind == parquet.Decimal && note.Precision > 0 && note.Precision <= 38 && note.Scale >= 0 &&
		note.Scale <= note.Precision:
		return Type{Kind: Decimal, Precision: uint8(note.Precision), Scale: uint8(note.Scale)}
	case note.Kind == parquet.Half && c.Type == parquet.FixedLenByteArray && c.Size() == 2:
		return Type{Kind: Float64, Bits: 16}
	case c.Type == parquet.ByteArray && note.Text():
		return Strings
	case c.Type == parquet.ByteArray, c.Type == parquet.FixedLenByteArray:
		return Type{Kind: Binary}
	case c.Type == parquet.Float:
		return Type{Kind: Float64, Bits: 32}
	case c.Type == parquet.Double:
		return Floats
	case note.Kind == parquet.Date && c.Type == parquet.Int32:
		return Type{Kind: Date}
	case note.Kind == parquet.Time:
		return Type{Kind: Time, Nano: nano}
	case c.Type == parquet.Int96:
		return Type{Kind: Timestamp}
	case note.Kind == parquet.Timestamp && c.Type == parquet.Int64:
		return Type{Kind: Timestamp, UTC: note.UTC, Nano: nano}
	}
	typ := Ints
	if note.Unsigned {
		typ.Kind = Uint64
	}
	if c.Type == parquet.Int32 {
		typ.Bits = 32
	}
	if note.Kind == parquet.Integer && note.Bits > 0 && note.Bits < typ.Bits {
		typ.Bits = note.Bits
	}
	return typ
}
