package model

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Names of columns of TACO 2 and 3.
const (
	ColumnID       = "id"
	ColumnType     = "type"                // FILE or FOLDER; TACO 3 has it in no file
	ColumnCurrent  = "internal:current_id" // a row's own number
	ColumnParent   = "internal:parent_id"
	ColumnOffset   = "internal:offset"
	ColumnSize     = "internal:size"
	ColumnSource   = "internal:source_file"
	ColumnRelative = "internal:relative_path"
)

// Span is a byte range of an object.
type Span struct{ Off, Size int64 }

// End returns the offset behind the range.
func (s Span) End() int64 { return s.Off + s.Size }

// In reports whether the range lies between two offsets.
func (s Span) In(lo, hi int64) bool {
	return s.Size >= 0 && s.Off >= lo && s.Off <= hi && s.Size <= hi-s.Off
}

// Limits on the rows of a level. Positions are 32-bit integers, and a container may use the upper half for itself.
// A row takes memory, while equal values may take next to none in the file. Ids and paths differ from row to row, so
// ten rows in each byte of the file are more than any writer produces.
const (
	MaxRows     = 1 << 29
	fewRows     = 1 << 16
	rowsPerByte = 10
)

// RowLimit returns how many rows the tables in size bytes may have.
func RowLimit(size int64) int64 { return min(MaxRows, fewRows+rowsPerByte*size) }

// ReadTable reads a table at a place of an object. maxBytes bounds the memory of a column; 0 is the default.
func ReadTable(ctx context.Context, r source.Reader, s Span, maxBytes int64) (*tables.Table, error) {
	table, err := tables.Read(ctx, r, s.Off, s.Size, tables.Options{MaxBytes: maxBytes})
	if err == nil && int64(table.Len()) > RowLimit(s.Size) {
		err = fault.New(fault.Limit, "rows", "%d rows, but at most %d fit into %d bytes", table.Len(),
			RowLimit(s.Size), s.Size)
	}
	return table, err
}

// Column returns a column that a table must have, with values of a kind. tables.Int64 stands for unsigned integers,
// too. In a table without rows the column may have any type.
func Column(ctx context.Context, t *tables.Table, name string, want tables.Kind) (*tables.Vector, error) {
	values, err := t.Column(ctx, name)
	if fault.KindOf(err) == fault.NotFound {
		err = fault.New(fault.Corrupt, "column "+name, "is missing")
	}
	switch {
	case err != nil:
		return nil, err
	case values.Kind() == want, want == tables.Int64 && values.Kind() == tables.Uint64:
		return values, nil
	case t.Len() == 0:
		return tables.NewNulls(tables.Type{Kind: want, Bits: 64}, 0), nil
	}
	return nil, fault.New(fault.Corrupt, "column "+name, "has type %v, expected %v", values.Type(), want)
}

// Want is a column that a table must have.
type Want struct {
	To   **tables.Vector
	Name string
	Kind tables.Kind
}

// Columns reads columns that a table must have: see Column.
func Columns(ctx context.Context, t *tables.Table, all ...Want) (err error) {
	for _, want := range all {
		if *want.To, err = Column(ctx, t, want.Name, want.Kind); err != nil {
			return err
		}
	}
	return nil
}

// CollectionName is the file of the document about a container of TACO 2 and 3.
const CollectionName = "COLLECTION.json"

// maxDocument limits COLLECTION.json and the like, in bytes, as taco-eo does.
const maxDocument = 64 << 20

// ReadDocument reads the JSON document about a container at a place of an object. part names it in errors.
func ReadDocument(ctx context.Context, r source.Reader, s Span, part string) ([]byte, error) {
	if s.Size > maxDocument {
		return nil, fault.At(fault.Limit, part, s.Off, "%d bytes, at most %d", s.Size, maxDocument)
	}
	data, err := source.Read(ctx, r, s.Off, s.Size)
	if err != nil {
		return nil, fault.WithPart(err, part, 0)
	}
	return data, CheckDocument(data, part, s.Off)
}

// CheckDocument checks that a document at an offset of a file is a JSON object in UTF-8.
func CheckDocument(b []byte, part string, off int64) error {
	if !utf8.Valid(b) {
		return fault.At(fault.Corrupt, part, off, "is not UTF-8")
	}
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return fault.At(fault.Corrupt, part, off, "is not a JSON object")
	}
	if _, err := textguard.JSON(part, b); err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err != nil {
		return fault.WrapAt(fault.Corrupt, part, off, err)
	}
	return nil
}

// Climbs reports whether a relative path could lead out of its folder.
func Climbs(path string) bool {
	if path == "" || path[0] == '/' || strings.ContainsAny(path, "\\:\x00") {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.TrimSuffix(path, "/"), "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// BadSource reports whether the name of a source file could lead out of its folder.
func BadSource(name string) bool {
	return Climbs(strings.ReplaceAll(name, ":", "_")) || strings.HasSuffix(name, "/")
}

// Places are the columns that say where the bytes of the rows of a level lie.
type Places struct {
	Offsets, Sizes *tables.Vector
	Sources        *tables.Vector // names of files below the base of the container; nil: its own file
	Spans          []Span         // in place of offsets and sizes that turned out to belong to other rows
	Name           string         // of the level in errors
	First, Least   int64          // the least offset, and the least size
}

// At returns the columns of offsets and sizes, as TACO 2 and 3 have them with integers of a kind.
func (p *Places) At(kind tables.Kind) []Want {
	return []Want{{&p.Offsets, ColumnOffset, kind}, {&p.Sizes, ColumnSize, kind}}
}

// Place sets where the bytes of a row are.
func (c *Container) Place(p *Places, row int, e *store.Entry) error {
	bad := func(format string, args ...any) error {
		return c.InTable(p.Name, row, format, args...)
	}
	end := c.Object.Size
	e.URI, e.Object = c.URI, c.Object
	if p.Sources != nil {
		name := p.Sources.Str(row)
		if p.Sources.Null(row) || BadSource(name) {
			return bad("%s %.80q is not the name of a file below", ColumnSource, name)
		}
		e.URI, e.Object, end = source.Join(c.From.Base, name), source.Known{}, math.MaxInt64
	}
	if p.Offsets.Null(row) || p.Sizes.Null(row) {
		return bad("%s or %s is null", ColumnOffset, ColumnSize)
	}
	span := Span{Off: p.Offsets.Int(row), Size: p.Sizes.Int(row)}
	if p.Spans != nil && p.Spans[row].In(0, math.MaxInt64) {
		span = p.Spans[row]
	}
	if e.Offset, e.Size = span.Off, span.Size; !span.In(p.First, end) || span.Size < p.Least {
		return bad("%s bytes at %s: the file has %d bytes", p.Sizes.AppendJSON(nil, row),
			p.Offsets.AppendJSON(nil, row), c.Object.Size)
	}
	return nil
}

// Tail is a reader with the bytes from Off to Off+len(Bytes) in memory.
type Tail struct {
	source.Reader
	Off   int64
	Bytes []byte
}

// ReadTail reads an object from an offset to its end. The caller limits how much that is.
func ReadTail(ctx context.Context, r source.Reader, off int64) (*Tail, error) {
	t := &Tail{Reader: r, Off: off, Bytes: make([]byte, r.Size()-off)}
	return t, r.ReadAt(ctx, t.Bytes, off)
}

// ReadAt implements source.Reader.
func (t *Tail) ReadAt(ctx context.Context, p []byte, off int64) error {
	if i := off - t.Off; i >= 0 && i <= int64(len(t.Bytes)) && int64(len(p)) <= int64(len(t.Bytes))-i {
		copy(p, t.Bytes[i:])
		return ctx.Err()
	}
	return t.Reader.ReadAt(ctx, p, off)
}

// Group sorts rows by their n parents, in storage order within each parent. The children of parent
// p are rows[first[p]:first[p+1]].
func Group(parents []int32, n int) (first, rows []int32) {
	first = make([]int32, n+1)
	for _, p := range parents {
		first[p+1]++
	}
	for p := range n {
		first[p+1] += first[p]
	}
	next := append([]int32(nil), first[:n]...)
	rows = make([]int32, len(parents))
	for i, p := range parents {
		rows[next[p]] = int32(i)
		next[p]++
	}
	return first, rows
}
