package tables

import (
	"cmp"
	"context"
	"math"
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
	next     int // the value that leaf takes next
}

func (s *leafStream) repAt(i int) int { return levelAt(s.rep, i) }
func (s *leafStream) defAt(i int) int { return levelAt(s.def, i) }

func levelAt(levels []uint8, i int) int {
	if levels == nil {
		return 0
	}
	return int(levels[i])
}

// nested decodes a column that has lists or structs. It decodes all rows and takes the kept ones out.
func (p *parquetTable) nested(ctx context.Context, f *parquet.Field) (*Vector, error) {
	assembly := assembler{p: p, streams: map[int]*leafStream{}}
	if err := assembly.load(ctx, f); err != nil {
		return nil, err
	}
	// Where each row begins in each leaf.
	pos := places{}
	for leaf, stream := range assembly.streams {
		for i := range stream.n {
			if stream.repAt(i) == 0 {
				pos[leaf] = append(pos[leaf], int32(i))
			}
		}
		if len(pos[leaf]) != int(p.f.Rows) || stream.n > 0 && stream.repAt(0) != 0 {
			return nil, fault.New(fault.Corrupt, "column "+f.Name, "%d rows of %d", len(pos[leaf]), p.f.Rows)
		}
	}
	values := assembly.node(f, int(p.f.Rows), pos)
	if assembly.err != nil || p.keep == nil {
		return values, assembly.err
	}
	return values.Take(p.keep.Rows())
}

// places are positions in the streams, by leaf: one for each instance of a node's parent.
type places map[int][]int32

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

// node assembles n instances of a node from the given places.
func (a *assembler) node(f *parquet.Field, n int, at places) *Vector {
	if f.Repeated {
		return a.list(f, f, f.Def-1, n, at)
	}
	return a.bare(f, n, at)
}

// bare assembles instances of a node as if it were not repeated itself.
func (a *assembler) bare(f *parquet.Field, n int, at places) *Vector {
	if f.Leaf >= 0 {
		return a.leaf(f, at)
	}
	if list, elem := listOf(f); list != nil {
		return a.list(list, elem, f.Def, n, at)
	}
	out := &Vector{typ: a.p.bare(f), n: n, nulls: a.nulls(f, f.Def, n, at)}
	for i := range f.Children {
		values := a.node(&f.Children[i], n, at)
		if values.n != n {
			a.disagree(f)
		}
		out.children = append(out.children, values)
	}
	return out
}

// nulls returns which instances of a node are missing: those below its definition level. It returns nil if none is.
func (a *assembler) nulls(f *parquet.Field, def, n int, at places) []bool {
	below := leaves(f, nil)
	if len(below) == 0 {
		return nil
	}
	// All leaves have the level of a node above them: the first one tells.
	stream := a.streams[below[0]]
	var nulls []bool
	for i, k := range at[below[0]] {
		if stream.defAt(int(k)) < def {
			if nulls == nil {
				nulls = make([]bool, n)
			}
			nulls[i] = true
		}
	}
	return nulls
}

func (a *assembler) fail(err error) *Vector {
	a.err = cmp.Or(a.err, err)
	return &Vector{}
}

func (a *assembler) disagree(f *parquet.Field) *Vector {
	return a.fail(fault.New(fault.Corrupt, "column "+f.Name, "the levels of its parts disagree"))
}

// list assembles lists of the elements elem of a repeated node. An instance whose definition level is below def is
// null, one below the repeated node's level is empty.
func (a *assembler) list(repeated, elem *parquet.Field, def, n int, at places) *Vector {
	typ := a.p.bare(elem)
	if elem != repeated {
		typ = a.p.typeOf(elem)
	}
	out := &Vector{typ: Type{Kind: List, Elem: &typ}, n: n, nulls: a.nulls(repeated, def, n, at)}
	elements := places{}
	for _, leaf := range leaves(repeated, nil) {
		stream := a.streams[leaf]
		offs := make([]uint32, 1, n+1)
		var elems []int32
		for _, pos := range at[leaf] {
			if stream.defAt(int(pos)) >= repeated.Def {
				elems = append(elems, pos)
				for q := int(pos) + 1; q < stream.n && stream.repAt(q) >= repeated.Rep; q++ {
					if stream.repAt(q) == repeated.Rep {
						elems = append(elems, int32(q))
					}
				}
			}
			offs = append(offs, uint32(len(elems)))
		}
		if out.offs != nil && !slices.Equal(out.offs, offs) {
			return a.disagree(repeated)
		}
		elements[leaf], out.offs = elems, offs
	}
	// A list of structs without fields has no leaf that says how long it is.
	if out.offs == nil {
		return a.fail(fault.New(fault.Unsupported, "column "+repeated.Name, "lists of structs without fields"))
	}
	count := int(out.offs[n])
	var child *Vector
	if elem == repeated {
		child = a.bare(elem, count, elements)
	} else {
		child = a.node(elem, count, elements)
	}
	if child.n != count {
		return a.disagree(repeated)
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

// leaf takes the values of a leaf, in order, each value once.
func (a *assembler) leaf(f *parquet.Field, at places) *Vector {
	stream := a.streams[f.Leaf]
	rows := make([]int, len(at[f.Leaf]))
	for i, k := range at[f.Leaf] {
		rows[i] = -1
		if stream.defAt(int(k)) == f.Def {
			if stream.next >= stream.values.n {
				return a.disagree(f)
			}
			rows[i] = stream.next
			stream.next++
		}
	}
	if stream.next != stream.values.n || stream.values.n > math.MaxInt32 {
		return a.disagree(f) // values are left that belong to no instance
	}
	values, err := stream.values.Take(rows)
	if err != nil {
		return a.fail(err)
	}
	return values
}
