package columns

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// ParquetTable is a Parquet file whose pages are decoded on demand.
type ParquetTable struct {
	File   *parquet.File
	Reader source.Reader
	*pageCache

	shard int // the number of the file among those that share the cache
	mu    sync.Mutex
	pages map[pageKey]*parquet.Pages // page locations by column and group (page is 0), kept until Close
}

// pageCache keeps the decoded pages of a file, or of all shards of a table.
type pageCache struct {
	Cache *lru.Cache[pageKey, decoded]

	account *budget.Account // of the opening, for memory that the cache does not count

	mu    sync.Mutex
	large map[int]largePage // by column

	// heavy is held while a page is decoded that takes much of the cache, so that workers do not decode the same one
	// at once, each into memory of its own.
	heavy sync.Mutex
}

func newPageCache(ctx context.Context, bytes int64) *pageCache {
	return &pageCache{Cache: lru.New[pageKey, decoded](bytes), large: map[int]largePage{}, account: budget.Of(ctx)}
}

// largePage is the page of a column that was used last of those that are larger than the cache. Otherwise each row of
// such a page would decode it again: a file of 10 KB may have a page of 64 MiB and a million rows.
type largePage struct {
	key  pageKey
	page decoded
	cost int64
}

// decoded is a page or dictionary: *parquet.Few, *parquet.Lists of a column of lists, or *parquet.Values.
type decoded interface {
	Cost() int // bytes in memory
	Dictionary() *parquet.Values
}

type pageKey struct{ shard, column, group, page int }

// dictPage is the page number of a dictionary.
const dictPage = -1

// OpenParquet opens a Parquet file. Its decoded pages take at most about cacheBytes.
func OpenParquet(ctx context.Context, r source.Reader, cacheBytes int64) (*ParquetTable, error) {
	return openParquet(ctx, r, newPageCache(ctx, cacheBytes), 0)
}

func openParquet(ctx context.Context, r source.Reader, cache *pageCache, shard int) (*ParquetTable, error) {
	file, err := parquet.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &ParquetTable{File: file, Reader: r, pageCache: cache, shard: shard,
		pages: map[pageKey]*parquet.Pages{}}, nil
}

func (t *ParquetTable) Rows() int64  { return t.File.Rows }
func (t *ParquetTable) Close() error { return t.Reader.Close() }

// Has reports whether there is a column with a name.
func (t *ParquetTable) Has(name string) bool { return t.File.Column(name) >= 0 }

func (t *ParquetTable) Column(name string) (Column, error) {
	i := t.File.Column(name)
	if i < 0 {
		return nil, t.File.NoColumn(name)
	}
	column := &t.File.Columns[i]
	unsupported := func(what string) error {
		return fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds %s", what)
	}
	col := &ParquetColumn{t: t, i: i}
	switch {
	case column.Repeated:
		return nil, unsupported("lists")
	case column.Type == parquet.Int96:
		return nil, unsupported("INT96")
	case column.Logical == parquet.Half && column.Type == parquet.FixedLenByteArray:
		col.k = Float
	case column.Type == parquet.ByteArray || column.Type == parquet.FixedLenByteArray:
		col.k = Text // bytes, a string if the annotation says so
		col.Opaque = column.Logical == parquet.Opaque || column.Type == parquet.FixedLenByteArray
	case column.Logical == parquet.Opaque:
		return nil, unsupported("decimals")
	case column.Type == parquet.Float || column.Type == parquet.Double:
		col.k = Float
	default:
		col.k, col.Unit = Int, unitOf(column.Note, column.Type)
	}
	return col, nil
}

// Day is the unit of dates.
const Day = 24 * time.Hour

// unitOf returns the unit of a column of dates or timestamps, 0 for others.
func unitOf(n parquet.Note, t parquet.Physical) time.Duration {
	switch {
	case n.Kind == parquet.Date && t == parquet.Int32:
		return Day
	case n.Kind != parquet.Timestamp || t != parquet.Int64:
		return 0
	}
	return map[uint8]time.Duration{3: time.Millisecond, 6: time.Microsecond, 9: time.Nanosecond}[n.Unit]
}

// ParquetColumn is a flat column of a ParquetTable.
type ParquetColumn struct {
	t      *ParquetTable
	i      int
	k      Kind
	Opaque bool          // bytes that are not a string
	Unit   time.Duration // of dates and timestamps, else 0
}

func (c *ParquetColumn) Kind() Kind { return c.k }

func (c *ParquetColumn) Cell(ctx context.Context, row int64) (Cell, error) {
	group, in := c.t.File.Group(row)
	pages, err := c.t.pagesOf(ctx, c.i, group)
	if err != nil {
		return Cell{}, err
	}
	page := pages.Find(in)
	few, err := pageOf(ctx, c.t, pageKey{c.t.shard, c.i, group, page}, pages, c.t.File.ReadFew)
	if err != nil {
		return Cell{}, err
	}
	values, i, err := few.Find(int(in - pages.Pages[page].First))
	if err != nil {
		return Cell{}, err
	}
	return c.of(values, i, row)
}

// of returns cell i of a page.
func (c *ParquetColumn) of(v *parquet.Values, i int, row int64) (Cell, error) {
	if v.Null(i) {
		return Cell{Null: true}, nil
	}
	switch c.k {
	case Text:
		return Cell{Text: v.Raw(i)}, nil
	case Float:
		return Cell{Float: v.Float(i)}, nil
	}
	n, ok := v.Int(i)
	if !ok {
		return Cell{}, fault.New(fault.Unsupported, "column "+c.t.File.Columns[c.i].Name+" row "+
			strconv.FormatInt(row, 10), fault.NoOffset, "a number above the largest signed one")
	}
	return Cell{Int: n}, nil
}

func (c *ParquetColumn) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	for group := range c.t.File.Groups {
		pages, err := c.t.pagesOf(ctx, c.i, group)
		if err != nil {
			return err
		}
		dict, err := c.t.File.Dictionary(ctx, group, c.i, pages)
		if err != nil {
			return err
		}
		for p := range pages.Pages {
			if err := turns.Tick(ctx); err != nil {
				return err
			}
			values, err := c.t.File.Read(ctx, group, c.i, pages, p, dict)
			if err != nil {
				return err
			}
			row := c.t.File.Groups[group].First + pages.Pages[p].First
			for i := range values.Len() {
				x, err := c.of(values, i, row+int64(i))
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

// pagesOf returns the locations of a column's pages in a row group.
func (t *ParquetTable) pagesOf(ctx context.Context, column, group int) (*parquet.Pages, error) {
	key := pageKey{column: column, group: group}
	t.mu.Lock()
	pages := t.pages[key]
	t.mu.Unlock()
	if pages != nil {
		return pages, nil
	}
	locate := t.File.Pages
	if t.File.Columns[column].Repeated {
		locate = t.File.ListPages
	}
	pages, err := locate(ctx, group, column)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.pages[key] = pages
	t.mu.Unlock()
	return pages, nil
}

// pageOf returns a decoded page, from the cache if possible. read decodes it with the dictionary of its column.
//
// A page keeps its dictionary alive. Every use of a page also touches the dictionary's entry, after the page's own, so
// that the cache evicts the dictionary after its pages, and counts its memory as long as it is in use.
func pageOf[T decoded](ctx context.Context, t *ParquetTable, key pageKey, pages *parquet.Pages,
	read func(ctx context.Context, group, column int, pages *parquet.Pages, page int,
		dict func() (*parquet.Values, error)) (T, error)) (none T, _ error) {
	dictKey := pageKey{key.shard, key.column, key.group, dictPage}
	if page, ok := t.Cache.Get(key); ok {
		if page.Dictionary() != nil {
			t.Cache.Get(dictKey)
		}
		return page.(T), nil
	}
	if page := t.largeOf(key); page != nil {
		return page.(T), nil
	}
	if t.isHeavy(pages.Pages[key.page]) || t.isHeavy(pages.Dict) {
		turns.Rest(ctx) // the worker that decodes may need the turn
		t.heavy.Lock()
		defer t.heavy.Unlock()
		if page, ok := t.Cache.Get(key); ok { // another worker decoded it meanwhile
			return page.(T), nil
		}
		if page := t.largeOf(key); page != nil {
			return page.(T), nil
		}
	}
	var dictErr error
	page, err := read(ctx, key.group, key.column, pages, key.page, func() (dict *parquet.Values, _ error) {
		dict, dictErr = t.dictionary(ctx, dictKey, pages)
		return dict, dictErr
	})
	if err = cmp.Or(dictErr, err); err != nil { // the first names the dictionary, not the page
		return none, err
	}
	cost := int64(0)
	// A dictionary so large that it may be evicted before its pages is counted with each page.
	dict := page.Dictionary()
	if dict != nil && int64(dict.Cost()) > t.Cache.Bound()/8 {
		cost = int64(dict.Cost())
	}
	if cost += int64(page.Cost()); cost+lru.Overhead > t.Cache.Bound() {
		t.keepLarge(largePage{key, page, cost})
		return page, nil
	}
	t.Cache.Add(key, page, cost)
	if dict != nil {
		t.Cache.Get(dictKey)
	}
	return page, nil
}

// isHeavy reports whether a page takes at least an eighth of the cache: with eight such pages it is full. Pages of
// bytes have about the size that is stored.
func (c *pageCache) isHeavy(p parquet.Page) bool { return int64(p.Len) > c.Cache.Bound()/8 }

// dictionary returns the dictionary of a column in a row group, from the cache if possible, or nil if it has none.
func (t *ParquetTable) dictionary(ctx context.Context, key pageKey, pages *parquet.Pages) (*parquet.Values, error) {
	if pages.Dict.Off == 0 {
		return nil, nil
	}
	if page, ok := t.Cache.Get(key); ok {
		return page.(*parquet.Values), nil
	}
	dict, err := t.File.Dictionary(ctx, key.group, key.column, pages)
	if err == nil {
		t.Cache.Add(key, dict, int64(dict.Cost()))
	}
	return dict, err
}

// largeOf returns a page that is kept beside the cache, or nil.
func (c *pageCache) largeOf(key pageKey) decoded {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.large[key.column]; p.key == key {
		return p.page
	}
	return nil
}

// keepLarge keeps a page beside the cache, in the place of the column's last one, if the budget has room for it.
func (c *pageCache) keepLarge(p largePage) {
	c.mu.Lock()
	old := c.large[p.key.column]
	delete(c.large, p.key.column)
	c.mu.Unlock()
	c.account.Shrink(old.cost) // without the lock: it wakes others
	if !c.account.TryGrow(p.cost) {
		return
	}
	c.mu.Lock()
	old = c.large[p.key.column] // of another worker, since the lock was free
	c.large[p.key.column] = p
	c.mu.Unlock()
	c.account.Shrink(old.cost)
}
