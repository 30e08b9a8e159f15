package query

import "github.com/chaski-eo/chaski/tables"

// verdict is a condition on one column of texts of which few are different: what it is for each code.
type verdict struct {
	column *node
	codes  []uint8
	truth  [256]truth
	null   truth // for a row that there is not, in a left join
}

type truth uint8

const (
	isFalse truth = iota
	isTrue
	isNull
)

// judge computes a condition once for each different text, if it is about one such column and cannot fail. It returns nil
// if it is not.
func (ev *evaluator) judge(n *node) (*verdict, error) {
	v, ok := ev.verdicts[n]
	if ok {
		return v, nil
	}
	c := onlyColumn(n, nil)
	if c != nil && ev.loaded[c] != nil && n.typ.Kind == tables.Bool {
		codes, values := ev.loaded[c].Coded()
		if values != nil {
			of := newEvaluator(ev.ctx, nil)
			of.loaded[c] = values
			got, err := of.eval(n, &batch{n: values.Len(), tables: make([][]int32, c.tab+1)})
			if err != nil {
				return nil, err
			}
			v = &verdict{column: c, codes: codes}
			for k := range v.truth {
				switch {
				case got.null(k):
					v.truth[k] = isNull
				case got.t[k]:
					v.truth[k] = isTrue
				}
			}
			v.null = v.truth[len(v.truth)-1]
		}
	}
	ev.verdicts[n] = v
	return v, nil
}

// onlyColumn returns the only column of a condition that cannot fail, whatever its values are: c, if one was found
// before. It returns nil if there are several, or none.
func onlyColumn(n *node, c *node) *node {
	switch n.op {
	case opColumn:
		if c == nil || c == n {
			return n
		}
		return nil
	case opCompare, opDistinct, opIn, opLike, opIsNull, opNot, opIsBool, opAnd, opOr:
	default:
		return nil
	}
	for _, a := range n.args {
		if a.op == opLiteral {
			continue
		}
		if c = onlyColumn(a, c); c == nil {
			return nil
		}
	}
	return c
}

// vec returns the truth for each row of a batch.
func (v *verdict) vec(b *batch) *vec {
	out := &vec{n: b.n, t: make([]bool, b.n)}
	for k := range out.t {
		switch v.at(b.row(v.column.tab, k)) {
		case isTrue:
			out.t[k] = true
		case isNull:
			if out.nulls == nil {
				out.nulls = make([]bool, b.n)
			}
			out.nulls[k] = true
		}
	}
	return out
}

func (v *verdict) at(row int) truth {
	if row < 0 {
		return v.null
	}
	return v.truth[v.codes[row]]
}

// rows returns the positions in a batch where the condition holds.
func (v *verdict) rows(b *batch) []int32 {
	sel, n := make([]int32, b.n), 0
	if l := b.list(v.column.tab); l != nil {
		for k, row := range l {
			sel[n] = int32(k)
			if v.at(int(row)) == isTrue {
				n++
			}
		}
		return sel[:n]
	}
	for k, code := range v.codes[b.lo : b.lo+b.n] {
		sel[n] = int32(k)
		if v.truth[code] == isTrue {
			n++
		}
	}
	return sel[:n]
}
