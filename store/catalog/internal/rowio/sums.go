package rowio

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// sums are the digests of the columns of a catalog, by the number of the column; nil of those without one, such as
// blobs and lists.
type sums []*columnSum

// columnSum is the digest of a column while rows are added.
type columnSum struct {
	name          string
	kind          column.Kind
	values, sizes digest.Digest
	ofSizes       bool
	below         bool   // a folder was given, without which the digest has the values
	folder        []byte // the one given
	repeats       bool   // some values are said to be equal
	shared        []byte // the one that the values so far share
	some          bool   // there was a value that is not null
	outside       bool   // a value does not begin with the folder
}

// newSums returns the digests of the columns that fields read: URIs, sizes, and the columns of joined tables.
func newSums(fields []parquet.Field, folders map[string]Folder) sums {
	standard := map[string]bool{}
	for _, field := range Fields() {
		standard[field.Name()] = true
	}
	made := make(sums, len(fields))
	for i, field := range fields {
		name := field.Name()
		base := name[strings.LastIndex(name, layout.FieldSeparator)+1:]
		folder, below := folders[name]
		kind := kindOf(field)
		if kind == 0 || standard[base] && base != layout.Size && !below {
			continue
		}
		made[i] = &columnSum{name: name, kind: kind, values: digest.New(), below: below, folder: []byte(folder.Path),
			repeats: folder.Repeats}
		if base == layout.Size {
			made[i].ofSizes, made[i].sizes = true, digest.New()
		}
	}
	return made
}

// kindOf returns the kind that readers give a column of numbers or strings, and 0 of another one.
func kindOf(field parquet.Field) column.Kind {
	if !field.Leaf() || field.Repeated() {
		return 0
	}
	var means format.LogicalTypeValue
	if logical := field.Type().LogicalType(); logical != nil {
		means = logical.Value
	}
	whole, isInt := means.(*format.IntType)
	_, isText := means.(*format.StringType)
	switch kind := field.Type().Kind(); {
	case kind == parquet.ByteArray && isText:
		return column.Text
	case (kind == parquet.Int32 || kind == parquet.Int64) && (means == nil || isInt && whole.IsSigned):
		return column.Int
	case kind == parquet.Double && means == nil:
		return column.Float
	}
	return 0
}

// add adds the values of a row.
func (s sums) add(row parquet.Row) {
	for _, v := range row {
		if sum := s[v.Column()]; sum != nil {
			sum.add(v)
		}
	}
}

func (s *columnSum) add(v parquet.Value) {
	value := column.Value{Null: v.IsNull()}
	switch {
	case value.Null:
	case s.kind == column.Text:
		value.Text = v.ByteArray()
	case s.kind == column.Float:
		value.Float = v.Double()
	default:
		value.Int = v.Int64()
		if v.Kind() == parquet.Int32 {
			value.Int = int64(v.Int32())
		}
	}
	if s.below && !value.Null {
		s.share(value.Text)
		if s.outside = s.outside || !bytes.HasPrefix(value.Text, s.folder); s.outside {
			return
		}
		value.Text = value.Text[len(s.folder):]
	}
	value.Hash(s.values, s.kind)
	switch {
	case s.ofSizes && value.Null:
		s.sizes.Number(math.MaxUint64)
	case s.ofSizes:
		s.sizes.Number(uint64(value.Int))
	}
}

// share cuts the shared folder to what a URI has of it.
func (s *columnSum) share(uri []byte) {
	if !s.some {
		s.some, s.shared = true, bytes.Clone(pathname.Folder(uri))
		return
	}
	s.shared = pathname.Shared(s.shared, uri)
}

// text returns the digests as the footer has them. A column whose rows share another folder than the one given, because
// some files were left out, has none.
func (s sums) text(rows int64) string {
	out := layout.Sums{Rows: rows, Columns: map[string]layout.Sum{}}
	for _, sum := range s {
		if sum == nil || sum.below && (sum.outside || !bytes.Equal(sum.shared, sum.folder)) {
			continue
		}
		text := layout.Sum{Values: sum.values.Hex()}
		if sum.below {
			folder := string(sum.folder)
			text.Folder, text.Repeats = &folder, sum.repeats
		}
		if sum.ofSizes {
			text.Sizes = sum.sizes.Hex()
		}
		out.Columns[sum.name] = text
	}
	made, _ := json.Marshal(out) // such values always marshal
	return string(made)
}
