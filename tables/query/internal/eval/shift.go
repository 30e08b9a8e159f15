package eval

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

func evalShift(n *plan.Node, x *vec.Vec) (*vec.Vec, error) {
	if x.Ints == nil || n.Args[0].Type.Kind == tables.Null {
		return vec.AllNull(n.Type, x.N), nil
	}
	values := &vec.Vec{N: x.N, Nulls: x.Nulls, High: x.High, Ints: make([]int64, x.N)}
	for k, us := range x.Ints {
		if values.IsNull(k) {
			continue
		}
		var ok bool
		if values.Ints[k], ok = n.Interval.AddTo(us); !ok {
			return nil, clock.ErrRange
		}
	}
	return values, nil
}
