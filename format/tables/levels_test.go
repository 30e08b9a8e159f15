package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// listLevel is an entry of a column of lists: of repetition 0 it begins a row, and its definition is 0 of a null list,
// 1 of an empty one, 2 of a null in it and 3 of a value.
type listLevel struct{ rep, def uint8 }

// listsOf returns the lists that levels mean, as JSON, by the rules of the Dremel paper (Melnik and others, 2010,
// section 4.1), and false where they break one: an element of rep 1 follows one of its list.
func listsOf(levels []listLevel) (lists []string, ok bool) {
	var rows [][]string
	values := 0
	for _, l := range levels {
		if l.rep == 0 {
			rows = append(rows, nil)
		} else if row := rows[len(rows)-1]; l.def < 2 || len(row) == 0 || row[0] != "in" {
			return nil, false
		}
		row := &rows[len(rows)-1]
		switch l.def {
		case 0:
			*row = []string{"null"}
		case 1:
			*row = []string{"[]"}
		default:
			element := "null"
			if l.def == 3 {
				element = fmt.Sprint(values)
				values++
			}
			if len(*row) == 0 {
				*row = []string{"in"}
			}
			*row = append(*row, element)
		}
	}
	for _, row := range rows {
		text := row[0]
		if text == "in" {
			text = "[" + strings.Join(row[1:], ",") + "]"
		}
		lists = append(lists, text)
	}
	return lists, true
}

// TestLevelsOfLists: all levels of up to five entries are the lists that the paper says, or corrupt where they are
// none.
func TestLevelsOfLists(t *testing.T) {
	column := parquet.Field{Name: "c", Leaf: -1, Note: parquet.Note{Kind: parquet.List}, Optional: true, Def: 1,
		Children: []parquet.Field{{Name: "list", Leaf: -1, Repeated: true, Def: 2, Rep: 1, Wraps: true,
			Children: []parquet.Field{{Name: "element", Optional: true, Def: 3, Rep: 1}}}}}
	file := &paged.File{File: &parquet.File{Columns: []parquet.Column{{Name: "c", Type: parquet.Int64}}}}
	good, bad := 0, 0
	var all func(levels []listLevel)
	all = func(levels []listLevel) {
		if len(levels) > 0 {
			stream, rows := &leafStream{n: len(levels)}, 0
			var ints []int64
			for _, l := range levels {
				stream.rep, stream.def = append(stream.rep, l.rep), append(stream.def, l.def)
				if l.rep == 0 {
					rows++
				}
				if l.def == 3 {
					ints = append(ints, int64(len(ints)))
				}
			}
			stream.values = NewInts(Type{Kind: Int64, Bits: 64}, ints, nil)
			a := assembler{p: &parquetTable{f: file}, streams: map[int]*leafStream{0: stream}}
			got := a.node(&column, rows, element{})
			want, ok := listsOf(levels)
			if !ok {
				if bad++; fault.KindOf(a.err) != fault.Corrupt {
					t.Errorf("%v: %v, not corrupt", levels, a.err)
				}
			} else if good++; a.err != nil || got.Len() != len(want) {
				t.Errorf("%v: %v", levels, a.err)
			} else {
				for i := range want {
					if text := string(got.AppendJSON(nil, i)); text != want[i] {
						t.Errorf("%v: list %d is %s, not %s", levels, i, text, want[i])
					}
				}
			}
		}
		if len(levels) == 5 {
			return
		}
		for rep := range uint8(min(len(levels), 1) + 1) {
			for def := range uint8(4) {
				all(append(levels, listLevel{rep, def}))
			}
		}
	}
	all(nil)
	if good < 1000 || bad < 1000 {
		t.Errorf("%d levels are lists, %d are none", good, bad)
	}
}
