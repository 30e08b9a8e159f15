package catalog

import (
	"context"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// pqTable is a Parquet file whose pages are decoded on demand.
type pqTable struct {
	f     *parquet.File
	r     source.Reader
	cache *lru.Cache[pageKey, *parquet.Values]

	mu    sync.Mutex
	pages map[pageKey]*parquet.Pages // page 0 of the key; positions are kept for good
}

type pageKey struct{ column, group, page int }

// dictPage is the page number of a dictionary.
const dictPage = -1

func openParquet(ctx context.Context, r source.Reader, cacheBytes int64) (*pqTable, error) {
	f, err := parquet.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &pqTable{f: f, r: r, cache: lru.New[pageKey, *parquet.Values](cacheBytes),
		pages: map[pageKey]*parquet.Pages{}}, nil
}

func (t *pqTable) rows() int64  { return t.f.Rows }
func (t *pqTable) close() error { return t.r.Close() }

func (t *pqTable) has(name string) bool { return t.f.Column(name) >= 0 }

func (t *pqTable) column(name string) (column, error) {
	i := t.f.Column(name)
	if i < 0 {
		return nil, t.f.NoColumn(name)
	}
	c := &t.f.Columns[i]
	unsupported := func(what string) error {
		return fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds %s", what)
	}
	col := &pqColumn{t: t, i: i}
	switch {
	case c.Repeated:
		return nil, unsupported("lists")
	case c.Type == parquet.Int96:
		return nil, unsupported("INT96")
	case c.Logical == parquet.Half && c.Type == parquet.FixedLenByteArray:
		col.k = Float
	case c.Type == parquet.ByteArray || c.Type == parquet.FixedLenByteArray:
		col.k = Text // bytes; a text where the annotation says so
		col.opaque = c.Logical == parquet.Opaque || c.Type == parquet.FixedLenByteArray
	case c.Logical == parquet.Opaque:
		return nil, unsupported("decimals")
	case c.Type == parquet.Float || c.Type == parquet.Double:
		col.k = Float
	default:
		col.k, col.unit = Int, unitOf(c.Note, c.Type)
	}
	return col, nil
}

const day = 24 * time.Hour

// unitOf returns what a whole number of a column of dates or instants stands for, or 0.
func unitOf(n parquet.Note, t parquet.Physical) time.Duration {
	switch {
	case n.Kind == parquet.Date && t == parquet.Int32:
		return day
	case n.Kind != parquet.Timestamp || t != parquet.Int64:
		return 0
	}
	return map[uint8]time.Duration{3: time.Millisecond, 6: time.Microsecond, 9: time.Nanosecond}[n.Unit]
}

type pqColumn struct {
	t      *pqTable
	i      int
	k      Kind
	opaque bool          // bytes that are no text
	unit   time.Duration // of a number, where it is a date or an instant
}

func (c *pqColumn) kind() Kind { return c.k }

func (c *pqColumn) cell(ctx context.Context, row int64) (cell, error) {
	g := c.t.f.Groups
	group := sort.Search(len(g), func(i int) bool { return g[i].First > row }) - 1
	pages, err := c.t.pagesOf(ctx, c.i, group)
	if err != nil {
		return cell{}, err
	}
	in := row - g[group].First
	page := pages.Find(in)
	v, err := c.t.values(ctx, pageKey{c.i, group, page}, pages)
	if err != nil {
		return cell{}, err
	}
	return c.of(v, int(in-pages.Pages[page].First), row)
}

// of returns cell i of a page.
func (c *pqColumn) of(v *parquet.Values, i int, row int64) (cell, error) {
	if v.Null(i) {
		return cell{null: true}, nil
	}
	switch c.k {
	case Text:
		return cell{text: v.Raw(i)}, nil
	case Float:
		return cell{float: v.Float(i)}, nil
	}
	n, ok := v.Int(i)
	if !ok {
		return cell{}, fault.New(fault.Unsupported, "column "+c.t.f.Columns[c.i].Name+" row "+
			strconv.FormatInt(row, 10),
			fault.NoOffset, "a number above the largest signed one")
	}
	return cell{int: n}, nil
}

func (c *pqColumn) scan(ctx context.Context, visit func(int64, cell) error) error {
	for group := range c.t.f.Groups {
		pages, err := c.t.pagesOf(ctx, c.i, group)
		if err != nil {
			return err
		}
		dict, err := c.t.f.Dictionary(ctx, group, c.i, pages)
		if err != nil {
			return err
		}
		for p := range pages.Pages {
			if err := ctx.Err(); err != nil {
				return err
			}
			v, err := c.t.f.Read(ctx, group, c.i, pages, p, dict)
			if err != nil {
				return err
			}
			row := c.t.f.Groups[group].First + pages.Pages[p].First
			for i := range v.Len() {
				x, err := c.of(v, i, row+int64(i))
				if err == nil {
					err = visit(row+int64(i), x)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pagesOf returns the places of a column's pages in a row group.
func (t *pqTable) pagesOf(ctx context.Context, column, group int) (*parquet.Pages, error) {
	key := pageKey{column: column, group: group}
	t.mu.Lock()
	p := t.pages[key]
	t.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := t.f.Pages(ctx, group, column)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.pages[key] = p
	t.mu.Unlock()
	return p, nil
}

// values returns a decoded page, from the cache if it is there.
//
// A page keeps its dictionary alive. Every use of a page uses the dictionary's entry after it, so that
// the dictionary is always let go of after its pages, and its memory is counted as long as it is held.
func (t *pqTable) values(ctx context.Context, key pageKey, pages *parquet.Pages) (*parquet.Values, error) {
	dk := pageKey{key.column, key.group, dictPage}
	v, ok := t.cache.Get(key)
	if ok {
		if pages.Dict.Off != 0 {
			t.cache.Get(dk)
		}
		return v, nil
	}
	var dict *parquet.Values
	cost := int64(0)
	if pages.Dict.Off != 0 {
		var err error
		if dict, ok = t.cache.Get(dk); !ok {
			if dict, err = t.f.Dictionary(ctx, key.group, key.column, pages); err != nil {
				return nil, err
			}
			t.cache.Add(dk, dict, int64(dict.Cost()))
		}
		if int64(dict.Cost()) > t.cache.Bound()/8 { // too large to be sure that it is kept
			cost = int64(dict.Cost())
		}
	}
	v, err := t.f.Read(ctx, key.group, key.column, pages, key.page, dict)
	if err != nil {
		return nil, err
	}
	t.cache.Add(key, v, cost+int64(v.Cost()))
	t.cache.Get(dk)
	return v, nil
}
