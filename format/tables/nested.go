package tables

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// leafStream holds one leaf of a nested column, all row groups together: a pair of levels for each value or missing
// value, and the values that exist.
type leafStream struct {
	rep, def []uint8 // repetition and definition levels; nil: all 0
	n        int
	values   *Vector
}

func (s *leafStream) repAt(i int) int { return levelAt(s.rep, i) }
func (s *leafStream) defAt(i int) int { return levelAt(s.def, i) }

func levelAt(levels []uint8, i int) int {
	if levels == nil {
		return 0
	}
	return int(levels[i])
}

// has reports whether an entry of the levels is an instance of a node in lists.
func (s *leafStream) has(i int, in element) bool { return s.repAt(i) <= in.rep && s.defAt(i) >= in.def }

// element has the levels of the elements of the list around a node: the repetition level up to which an entry begins
// one, and the definition level from which on there is one. Around a column they are 0, as each row is one.
type element struct{ rep, def int }

// nested decodes a column that has lists or structs. It decodes all rows and takes the kept ones out.
func (p *parquetTable) nested(ctx context.Context, f *parquet.Field) (*Vector, error) {
	assembly := assembler{p: p, streams: map[int]*leafStream{}}
	if err := assembly.load(ctx, f); err != nil {
		return nil, err
	}
	values := assembly.node(f, int(p.f.Rows), element{})
	if assembly.err != nil || p.keep == nil {
		return values, assembly.err
	}
	return values.Take(p.keep.Rows())
}

// assembler builds the vectors of one nested column from the streams of its leaves. After the first error its vectors
// have no meaning.
type assembler struct {
	p       *parquetTable
	streams map[int]*leafStream
	err     error
}

// load reads the leaves below a node into streams.
func (a *assembler) load(ctx context.Context, f *parquet.Field) error {
	for i := range f.Children {
		if err := a.load(ctx, &f.Children[i]); err != nil {
			return err
		}
	}
	if f.Leaf < 0 {
		return nil
	}
	builder := newBuilder(a.p, f.Leaf)
	defer func() { _ = builder.copying.Wait() }()
	stream := &leafStream{}
	// All rows are decoded, because the offset index does not say at which list element a page begins.
	for g := range a.p.f.Groups {
		file, err := a.p.f.Buffered(ctx, g, f.Leaf, a.p.o.Whole)
		if err != nil {
			return err
		}
		err = file.Nested(ctx, g, f.Leaf, func(n int, l parquet.Levels, v *parquet.Values) error {
			if stream.n += n; int64(stream.n) > a.p.o.MaxRows {
				return fault.New(fault.Limit, "", "more than %d values in lists", a.p.o.MaxRows)
			}
			stream.rep, stream.def = appendLevels(stream.rep, l.Rep), appendLevels(stream.def, l.Def)
			return builder.add(v)
		})
		if err != nil {
			return err
		}
	}
	a.streams[f.Leaf] = stream
	rows := int64(0)
	for i := range stream.n {
		if stream.repAt(i) == 0 {
			rows++
		}
	}
	if rows != a.p.f.Rows || stream.n > 0 && stream.repAt(0) != 0 {
		return fault.New(fault.Corrupt, "column "+builder.name, "%d rows of %d", rows, a.p.f.Rows)
	}
	var err error
	stream.values, err = builder.vector()
	return err
}

func appendLevels(to []uint8, from []uint32) []uint8 {
	for _, l := range from {
		to = append(to, uint8(l)) // at most 64, the depth of a schema
	}
	return to
}

// node assembles the n instances of a node.
func (a *assembler) node(f *parquet.Field, n int, in element) *Vector {
	if f.Repeated {
		return a.list(f, f, f.Def-1, n, in)
	}
	return a.bare(f, n, in)
}

// bare assembles instances of a node as if it were not repeated itself.
func (a *assembler) bare(f *parquet.Field, n int, in element) *Vector {
	if f.Leaf >= 0 {
		return a.leaf(f, n, in)
	}
	if list, elem := listOf(f); list != nil {
		return a.list(list, elem, f.Def, n, in)
	}
	out := &Vector{typ: a.p.bare(f), n: n, nulls: a.nulls(f, f.Def, n, in)}
	for i := range f.Children {
		out.children = append(out.children, a.node(&f.Children[i], n, in))
	}
	return out
}

// nulls returns which of n instances of a node are missing: those below its definition level. It returns nil if none
// is.
func (a *assembler) nulls(f *parquet.Field, def, n int, in element) (nulls []bool) {
	below := leaves(f, nil)
	if len(below) == 0 {
		return nil
	}
	// All leaves have the level of a node above them: the first one tells.
	stream, k := a.streams[below[0]], 0
	for i := range stream.n {
		if !stream.has(i, in) {
			continue
		}
		if stream.defAt(i) < def {
			if nulls == nil {
				nulls = make([]bool, n)
			}
			nulls[k] = true
		}
		k++
	}
	return nulls
}

func (a *assembler) fail(err error) *Vector {
	a.err = cmp.Or(a.err, err)
	return &Vector{}
}

// list assembles n lists of the elements elem of a repeated node. An instance whose definition level is below def is
// null, one below the repeated node's level is empty.
func (a *assembler) list(repeated, elem *parquet.Field, def, n int, in element) *Vector {
	typ := a.p.bare(elem)
	if elem != repeated {
		typ = a.p.typeOf(elem)
	}
	inside := element{repeated.Rep, repeated.Def}
	out := &Vector{typ: Type{Kind: List, Elem: &typ}, n: n, nulls: a.nulls(repeated, def, n, in)}
	for _, leaf := range leaves(repeated, nil) {
		stream, offs, count := a.streams[leaf], make([]uint32, 0, n+1), uint32(0)
		begun, wrong := false, false // an element follows one of its list
		for i := range stream.n {
			if stream.has(i, in) {
				offs = append(offs, count)
			}
			has := stream.has(i, inside)
			if rep := stream.repAt(i); rep < inside.rep {
				begun = has
			} else if rep == inside.rep {
				wrong = wrong || !begun || !has
			}
			if has {
				count++
			}
		}
		offs = append(offs, count)
		if wrong || len(offs) != n+1 || offs[0] != 0 || out.offs != nil && !slices.Equal(out.offs, offs) {
			return a.fail(fault.New(fault.Corrupt, "column "+repeated.Name, "the levels of its parts disagree"))
		}
		out.offs = offs
	}
	// Leaves say how long a list is, and a struct without fields lacks them.
	if out.offs == nil {
		return a.fail(fault.New(fault.Unsupported, "column "+repeated.Name, "lists of structs without fields"))
	}
	var child *Vector
	if count := int(out.offs[n]); elem == repeated {
		child = a.bare(elem, count, inside)
	} else {
		child = a.node(elem, count, inside)
	}
	out.children = []*Vector{child}
	return out
}

func leaves(f *parquet.Field, to []int) []int {
	if f.Leaf >= 0 {
		return append(to, f.Leaf)
	}
	for i := range f.Children {
		to = leaves(&f.Children[i], to)
	}
	return to
}

// leaf takes the values of n instances of a leaf, in order, each value once.
func (a *assembler) leaf(f *parquet.Field, n int, in element) *Vector {
	stream, next, rows := a.streams[f.Leaf], 0, make([]int, 0, n)
	for i := range stream.n {
		switch {
		case !stream.has(i, in):
		case stream.defAt(i) == f.Def:
			rows = append(rows, next)
			next++
		default:
			rows = append(rows, -1)
		}
	}
	if next != stream.values.n { // values are left that belong to no instance, or lack
		return a.fail(fault.New(fault.Corrupt, "column "+f.Name, "the levels of its parts disagree"))
	}
	values, err := stream.values.Take(rows)
	if err != nil {
		return a.fail(err)
	}
	return values
}
