package encode_test

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestHostileSizes: a size in the schema of a file does not decide how much memory nulls take.
func TestHostileSizes(t *testing.T) {
	const rows = 1000
	ints, blobs := tables.Type{Kind: tables.Int64, Bits: 8}, tables.Type{Kind: tables.Binary}
	list := func(elem tables.Type, size int32) tables.Type {
		return tables.Type{Kind: tables.List, Elem: &elem, Form: &tables.Form{Store: tables.FixedList, Size: size}}
	}
	blobs.Form = &tables.Form{Store: tables.FixedBytes, Size: math.MaxInt32}
	offs := make([]uint32, rows+1)
	none := tables.NewNulls(ints, rows).Nulls()
	for _, c := range []struct {
		name   string
		typ    tables.Type
		values *tables.Vector
		limit  bool
	}{
		{"bytes", blobs, tables.NewNulls(blobs.Plain(), rows), true},
		{"list", list(ints, math.MaxInt32), tables.NewList(tables.NewNulls(ints, 0), offs, none), false},
		{"list of lists", list(list(ints, math.MaxInt16), math.MaxInt16),
			tables.NewList(tables.NewList(tables.NewNulls(ints, 0), offs[:1], nil), offs, none), false},
		{"list of bytes", list(blobs, 1), tables.NewList(tables.NewNulls(blobs.Plain(), 0), offs, none), true},
	} {
		made := tables.FromVectors([]string{c.name}, []*tables.Vector{c.values}).
			Retype(func(int, tables.Column) tables.Type { return c.typ })
		var err error
		taken := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			err = encode.Table(t.Context(), io.Discard, made)
		}).MemBytes
		if c.limit != (fault.KindOf(err) == fault.Limit) || !c.limit && err != nil || taken > 8<<20 {
			t.Errorf("%s: %v, with %d bytes of memory", c.name, err, taken)
		}
	}
}

// TestWideDecimals: decimals of more digits than Arrow has are bytes.
func TestWideDecimals(t *testing.T) {
	form := tables.Form{Store: tables.Decimals, Size: 40, Precision: 90}
	blobs := tables.Type{Kind: tables.Binary}
	made := tables.FromVectors([]string{"x"}, []*tables.Vector{tables.NewBytes(blobs, make([]byte, 40),
		[]uint32{0, 40}, nil)}).Retype(func(_ int, c tables.Column) tables.Type {
		c.Type.Form = &form
		return c.Type
	})
	var file bytes.Buffer
	if err := encode.Table(t.Context(), &file, made); err != nil {
		t.Fatal(err)
	}
	table, err := tables.Read(t.Context(), &corpus.Mem{B: file.Bytes()}, 0, int64(file.Len()), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := encode.Table(t.Context(), io.Discard, table); err != nil {
		t.Error(err)
	}
	if name := table.Columns()[0].Type.ArrowName(); name != "fixed_size_binary[40]" {
		t.Errorf("the column is %s", name)
	}
}
