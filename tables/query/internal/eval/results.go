package eval

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// scalarVec returns the only value of a query n times.
func scalarVec(v *plan.Results, t tables.Type, n int) *vec.Vec {
	c := &plan.Node{Op: ast.OpColumn, Type: t}
	ev := &Evaluator{loaded: map[*plan.Node]*tables.Vector{c: v.Value}}
	return ev.read(c, &vec.Batch{N: n, Tables: [][]int32{make([]int32, n)}})
}

// evalInResults computes for each value whether a query returned it: null if it did not but returned NULL.
func evalInResults(n *plan.Node, x *vec.Vec) (*vec.Vec, error) {
	results := n.Results
	out := &vec.Vec{N: x.N, Bools: make([]bool, x.N), Nulls: make([]bool, x.N)}
	collector := vec.Collector{Type: n.Args[0].Type}
	if err := collector.Add(x); err != nil {
		return nil, err
	}
	values := collector.Vector()
	var key []byte
	for k := range x.N {
		if values.Null(k) {
			out.Nulls[k] = results.N > 0 // NULL IN (no rows) is false
			out.Bools[k] = n.Not
			continue
		}
		key = vec.AppendKey(key[:0], values, k)
		found := results.Keys.Find(key) >= 0
		out.Bools[k], out.Nulls[k] = found != n.Not, !found && results.HasNull
	}
	return out, nil
}
