package parquet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type filled struct {
	Many  float64  `parquet:"many,dict"`
	Few   *float64 `parquet:"few,optional,dict"`
	Plain *float32 `parquet:"plain,optional"`
	I     *int64   `parquet:"i,optional"`
	U     uint32   `parquet:"u,dict"`
	S     *string  `parquet:"s,optional,dict"`
	T     string   `parquet:"t"`
	B     *bool    `parquet:"b,optional"`
}

// TestFilledAreTheValues promises that ranges and selections of rows have the values that the accessors return one by
// one, for every encoding and pattern of nulls.
func TestFilledAreTheValues(t *testing.T) {
	rows := make([]filled, 3000)
	for i := range rows {
		r := filled{Many: float64(i%1500) / 7, U: uint32(i % 9), T: fmt.Sprint("text ", i)}
		if i%4 != 1 {
			few, plain, n, s, b := float64(i%3), float32(i), -int64(i), []string{"", "a", "città"}[i%3], i%5 == 0
			r.Few, r.Plain, r.I, r.S, r.B = &few, &plain, &n, &s, &b
		}
		rows[i] = r
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[filled](&buf, parquet.PageBufferSize(2000))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := arrowFiles(t)
	files["written here"] = buf.Bytes()
	random := rand.New(rand.NewPCG(7, 8))
	for name, b := range files {
		f, err := Open(t.Context(), memory(b))
		if err != nil {
			t.Fatal(err)
		}
		for c := range f.Columns {
			col := &f.Columns[c]
			for v := range pagesOf(t, f, c) {
				checkFilled(t, fmt.Sprint(name, " ", col.Name), col, v)
				some := make([]int32, random.IntN(v.Len()+1))
				for k := range some {
					some[k] = int32(random.IntN(v.Len()))
				}
				took := v.Take(some)
				for k, r := range some {
					if got, want := show(col, took, k), show(col, v, int(r)); got != want {
						t.Fatalf("%s %s: row %d taken is %s, want %s", name, col.Name, r, got, want)
					}
				}
				if took.HasNulls() && !v.HasNulls() {
					t.Fatalf("%s %s: nulls were taken where there are none", name, col.Name)
				}
				checkFilled(t, fmt.Sprint(name, " ", col.Name, " taken"), col, took)
			}
		}
	}
}

func checkFilled(t *testing.T, what string, col *Column, v *Values) {
	t.Helper()
	n := v.Len()
	ints, floats, codes := make([]int64, n), make([]float64, n), make([]uint8, n)
	data, offs := make([]byte, 0), make([]uint32, n)
	switch col.Type {
	case Float, Double:
		v.FillFloats(floats)
	case ByteArray, FixedLenByteArray:
		data = make([]byte, v.Size())
		v.FillBytes(data, offs, 100)
	case Boolean:
		bools := make([]bool, n)
		v.FillBools(bools)
		for i, b := range bools {
			if b {
				ints[i] = 1
			}
		}
	default:
		v.FillInts(ints)
	}
	var of []uint8
	if d := v.Dictionary(); d != nil && d.Len() < 255 {
		for k := range d.Len() {
			of = append(of, uint8(k+1))
		}
		v.FillCodes(codes, of, 0)
	}
	at := uint32(100)
	for r := range n {
		if v.Null(r) {
			if ints[r] != 0 || floats[r] != 0 || offs[r] != 0 && offs[r] != at || codes[r] != 0 {
				t.Fatalf("%s, row %d: something where there is nothing", what, r)
			}
			continue
		}
		if of != nil && (codes[r] == 0 || show(col, v.Dictionary(), int(codes[r]-1)) != show(col, v, r)) {
			t.Fatalf("%s, row %d: code %d", what, r, codes[r])
		}
		switch col.Type {
		case Float, Double:
			if want := v.Float(r); floats[r] != want {
				t.Fatalf("%s, row %d: %v, want %v", what, r, floats[r], want)
			}
		case ByteArray, FixedLenByteArray:
			if want := v.Raw(r); !bytes.Equal(data[at-100:offs[r]-100], want) {
				t.Fatalf("%s, row %d: %q, want %q", what, r, data[at-100:offs[r]-100], want)
			}
			at = offs[r]
		default:
			if want, _ := v.Int(r); ints[r] != want {
				t.Fatalf("%s, row %d: %v, want %v", what, r, ints[r], want)
			}
		}
	}
}
