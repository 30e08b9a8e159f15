package eval

import (
	"bytes"
	"unicode"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

func evalIn(n *Node, x *vec.Vec) *vec.Vec {
	set := n.Set
	values := &vec.Vec{N: x.N, Bools: make([]bool, x.N), Nulls: x.Nulls}
	if set.Ints != nil {
		for k, i := range x.Ints {
			values.Bools[k] = set.Ints[i]
		}
	} else {
		for k := range values.Bools {
			values.Bools[k] = set.Strings[string(x.Bytes(k))]
		}
	}
	if set.Null { // a value that is not found may equal the unknown one
		values.Nulls = x.OwnNulls()
		for k, t := range values.Bools {
			values.Nulls[k] = values.Nulls[k] || !t
		}
	}
	if n.Not {
		for k := range values.Bools {
			values.Bools[k] = !values.Bools[k]
		}
	}
	return values
}

func (ev *Evaluator) like(n *Node, x *vec.Vec) (*vec.Vec, error) {
	if n.Args[0].Type.Kind == tables.Null || n.Like == nil {
		return vec.AllNull(sql.Bool, x.N), nil
	}
	goesOn := func(read int) bool { return ev.budget.Read(read) == nil }
	values := &vec.Vec{N: x.N, Nulls: x.Nulls, Bools: make([]bool, x.N)}
	for row := range values.Bools {
		if x.IsNull(row) {
			continue
		}
		text := x.Bytes(row)
		if n.Like.Fold {
			text = bytes.Map(unicode.ToLower, text)
		}
		values.Bools[row] = n.Like.Match(text, goesOn) != n.Not
		if err := ev.budget.Read(len(text)); err != nil {
			return nil, err
		}
	}
	return values, nil
}
