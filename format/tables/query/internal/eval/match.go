package eval

import (
	"bytes"
	"unicode"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

func evalIn(n *Node, x *tables.Vector) *tables.Vector {
	set := n.Set
	bools, nulls := make([]bool, x.Len()), x.Nulls()
	if set.Ints != nil {
		for k, i := range x.Ints() {
			bools[k] = set.Ints[i]
		}
	} else {
		for k := range bools {
			bools[k] = set.Strings[string(x.Bytes(k))]
		}
	}
	if set.Null { // a value that is not found may equal the unknown one
		nulls = ownNulls(nulls, len(bools))
		for k, t := range bools {
			nulls[k] = nulls[k] || !t
		}
	}
	if n.Not {
		for k := range bools {
			bools[k] = !bools[k]
		}
	}
	return tables.NewBools(bools, nulls)
}

func (ev *Evaluator) like(n *Node, x *tables.Vector) (*tables.Vector, error) {
	if n.Args[0].Type.Kind == tables.Null || n.Like == nil {
		return tables.NewNulls(sql.Bool, x.Len()), nil
	}
	goesOn := func(read int) bool { return ev.budget.Read(read) == nil }
	bools := make([]bool, x.Len())
	for row := range bools {
		if x.Null(row) {
			continue
		}
		text := x.Bytes(row)
		if n.Like.Fold {
			text = bytes.Map(unicode.ToLower, text)
		}
		bools[row] = n.Like.Match(text, goesOn) != n.Not
		if err := ev.budget.Read(len(text)); err != nil {
			return nil, err
		}
	}
	return tables.NewBools(bools, x.Nulls()), nil
}
