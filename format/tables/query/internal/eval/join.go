package eval

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Limits of joins.
const (
	maxPairs      = 1 << 26 // pairs that a join without an equality may check: seconds of work
	MaxRowNumbers = 1 << 25 // row numbers (rows times tables) in all joins of a query: 128 MiB of int32
)

// Join joins table number tab to a relation. A nil on joins all pairs of rows.
func (ev *Evaluator) Join(r *vec.Rows, tab int, on *Node) (*vec.Rows, error) {
	right := ev.Tables[tab].Len()
	var terms []*Node
	if on != nil {
		terms = []*Node{on}
		if on.Op == ast.OpAnd {
			terms = on.Args
		}
	}
	var lkeys, rkeys []*Node
	rest := &Node{Op: ast.OpAnd}
	for _, node := range terms {
		leftKey, rightKey := sides(node, tab)
		if leftKey != nil {
			lkeys, rkeys = append(lkeys, leftKey), append(rkeys, rightKey)
		} else {
			rest.Args = append(rest.Args, node)
		}
	}
	pairs := &joinPairs{r: r, tab: tab, rest: rest, ev: ev}
	if err := ev.load(rest); err != nil {
		return nil, err
	}
	if lkeys == nil {
		return pairs.all(right)
	}
	return pairs.equal(lkeys, rkeys, right)
}

// sides returns the two sides of an equality if one side reads only table tab and the other only tables before it, else
// nil.
func sides(n *Node, tab int) (left, right *Node) {
	if n.Op != ast.OpCompare || n.Name != "=" {
		return nil, nil
	}
	for _, pair := range [...][2]*Node{{n.Args[0], n.Args[1]}, {n.Args[1], n.Args[0]}} {
		if first, last := tablesOf(pair[1]); first == tab && last == tab {
			if _, last := tablesOf(pair[0]); last >= 0 && last < tab && pair[0].Type.Equal(pair[1].Type) {
				return pair[0], pair[1]
			}
		}
	}
	return nil, nil
}

// tablesOf returns the numbers of the first and the last table that an expression reads, -1 if it reads none.
func tablesOf(n *Node) (first, last int) {
	if n.Op == ast.OpColumn {
		return n.Table, n.Table
	}
	first, last = -1, -1
	for _, a := range n.Args {
		below, m := tablesOf(a)
		if below >= 0 && (first < 0 || below < first) {
			first = below
		}
		last = max(last, m)
	}
	return first, last
}

// joinPairs collects the rows of a join.
type joinPairs struct {
	ev   *Evaluator
	r    *vec.Rows
	tab  int
	rest *Node // AND of the terms that are no equality of keys
	// l and k are pairs that rest is still to be checked for: positions in r, and rows of the
	// table. outL and outK are the pairs of the result.
	l, k []int32
	outL []int32
	outK []int32
}

func (p *joinPairs) add(l, k int32) error {
	p.l, p.k = append(p.l, l), append(p.k, k)
	if len(p.l) < vec.BatchRows {
		return nil
	}
	return p.flush()
}

// flush checks the collected pairs and adds those that pass to the result.
func (p *joinPairs) flush() error {
	if err := p.ev.Ctx.Err(); err != nil {
		return err
	}
	defer p.ev.done() // the strings of the next pairs are another batch
	found := len(p.outL)
	if len(p.rest.Args) == 0 {
		p.outL, p.outK = append(p.outL, p.l...), append(p.outK, p.k...)
	} else {
		sel, err := p.ev.filter(p.rest, p.relation(p.l, p.k).Batch(0, vec.BatchRows))
		if err != nil {
			return err
		}
		for _, s := range sel {
			p.outL, p.outK = append(p.outL, p.l[s]), append(p.outK, p.k[s])
		}
	}
	p.l, p.k = p.l[:0], p.k[:0]
	return p.ev.HoldRows((len(p.outL) - found) * (p.tab + 1))
}

// relation returns the rows of r at positions l, each with the row of the table in k.
func (p *joinPairs) relation(l, k []int32) *vec.Rows {
	out := p.r.Take(l)
	// The list must not be nil, because that would stand for all rows.
	out.Tables = append(out.Tables, append([]int32{}, k...))
	return out
}

// all checks every pair.
func (p *joinPairs) all(right int) (*vec.Rows, error) {
	if int64(p.r.N)*int64(right) > maxPairs {
		return nil, fault.New(fault.Limit, "query", "a join of %d with %d rows without an equality", p.r.N, right)
	}
	for l := range p.r.N {
		for k := range right {
			if err := p.add(int32(l), int32(k)); err != nil {
				return nil, err
			}
		}
	}
	return p.finish()
}

// equal checks the pairs with equal keys, which it finds by hash.
func (p *joinPairs) equal(lkeys, rkeys []*Node, right int) (*vec.Rows, error) {
	leftKeys, err := p.ev.Columns(lkeys, p.r)
	if err != nil {
		return nil, err
	}
	alone := &vec.Rows{N: right, Tables: make([][]int32, p.tab+1)}
	rightKeys, err := p.ev.Columns(rkeys, alone)
	if err != nil {
		return nil, err
	}
	keys := vec.NewKeySet()
	var heads []int32 // the first row with each key; next has the rows that follow
	next := make([]int32, right)
	var key []byte
	// The rows of the table are added from last to first, so each chain of next is ascending.
	for row := right - 1; row >= 0; row-- {
		if row%vec.BatchRows == 0 {
			if err := p.ev.Ctx.Err(); err != nil {
				return nil, err
			}
		}
		var ok bool
		if key, ok = keyOf(key, rightKeys, row); !ok {
			continue
		}
		id, added := keys.Add(key)
		if added {
			heads = append(heads, -1)
		}
		next[row], heads[id] = heads[id], int32(row)
	}
	for row := range p.r.N {
		if row%vec.BatchRows == 0 {
			if err := p.ev.Ctx.Err(); err != nil {
				return nil, err
			}
		}
		var ok bool
		if key, ok = keyOf(key, leftKeys, row); !ok {
			continue
		}
		id := keys.Find(key)
		if id < 0 {
			continue
		}
		for k := heads[id]; k >= 0; k = next[k] {
			if err := p.add(int32(row), k); err != nil {
				return nil, err
			}
		}
	}
	return p.finish()
}

// keyOf returns the key of a row. ok is false if a part of it is null, which equals nothing.
func keyOf(key []byte, v []*tables.Vector, row int) (out []byte, ok bool) {
	key = key[:0]
	for _, values := range v {
		if values.Null(row) {
			return key, false
		}
		key = vec.AppendKey(key, values, row)
	}
	return key, true
}

// finish checks the last pairs and returns the result.
func (p *joinPairs) finish() (*vec.Rows, error) {
	if err := p.flush(); err != nil {
		return nil, err
	}
	return p.relation(p.outL, p.outK), nil
}
