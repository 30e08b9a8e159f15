package columns

import (
	"context"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Shards are Parquet files with the same columns, whose rows follow each other.
type Shards struct {
	Names  []string
	Tables []*ParquetTable
	begins []int64 // the first row of each shard, and at the end the number of all rows
}

// openShards is how many shards are opened at the same time: each takes one or two requests.
const openShards = 16

// OpenShards opens Parquet files by their names, which it uses in errors. Their decoded pages together take at most
// about cacheBytes.
func OpenShards(ctx context.Context, o source.Opener, names []string, cacheBytes int64) (*Shards, error) {
	if len(names) > listing.MaxShards {
		return nil, fault.New(fault.Limit, "dataset", fault.NoOffset, "%d Parquet files, at most %d", len(names),
			listing.MaxShards)
	}
	s := &Shards{Names: names, Tables: make([]*ParquetTable, len(names)), begins: make([]int64, len(names)+1)}
	cache := newPageCache(ctx, cacheBytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(openShards)
	for i, name := range names {
		group.Go(func() error {
			file, err := o.Open(ctx, name)
			if err != nil {
				return fault.WithFile(err, name)
			}
			known := source.Known{Size: file.Size(), ETag: source.ETag(file)}
			reader := &source.Reopened{Opener: o, URI: name, Known: known}
			if err := file.Close(); err != nil {
				return err
			}
			if s.Tables[i], err = openParquet(ctx, reader, cache, i); err == nil {
				err = budget.Grow(ctx, int64(s.Tables[i].File.Cost()))
			}
			return fault.WithFile(err, name)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, t := range s.Tables {
		s.begins[i+1] = s.begins[i] + t.Rows()
	}
	return s, nil
}

// Rows, Column and Close implement Table. A column must have the same kind in all shards.
func (s *Shards) Rows() int64  { return s.begins[len(s.Tables)] }
func (s *Shards) Close() error { return nil } // no file stays open

func (s *Shards) Column(name string) (Column, error) {
	c := &shardColumn{shards: s, parts: make([]*ParquetColumn, len(s.Tables))}
	for i, t := range s.Tables {
		column, err := t.Column(name)
		if err != nil {
			return nil, fault.WithFile(err, s.Names[i])
		}
		c.parts[i] = column.(*ParquetColumn)
		if first := c.parts[0]; c.parts[i].k != first.k || c.parts[i].Unit != first.Unit {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
				"holds %ss, in %s it holds %ss", c.parts[i].k, s.Names[0], first.k), s.Names[i])
		}
	}
	return c, nil
}

// Find returns the number of the shard that holds a row, and the number of the row in it.
func (s *Shards) Find(row int64) (shard int, in int64) {
	shard = sort.Search(len(s.Tables), func(i int) bool { return s.begins[i+1] > row })
	return shard, row - s.begins[shard]
}

// shardColumn is a column of Shards.
type shardColumn struct {
	shards *Shards
	parts  []*ParquetColumn
}

// Kind, Cell and Scan implement Column.
func (c *shardColumn) Kind() Kind { return c.parts[0].k }

func (c *shardColumn) Cell(ctx context.Context, row int64) (Cell, error) {
	shard, in := c.shards.Find(row)
	cell, err := c.parts[shard].Cell(ctx, in)
	return cell, fault.WithFile(err, c.shards.Names[shard])
}

func (c *shardColumn) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	for i, part := range c.parts {
		begin := c.shards.begins[i]
		err := part.Scan(ctx, func(row int64, cell Cell) error { return visit(begin+row, cell) })
		if err != nil {
			return fault.WithFile(err, c.shards.Names[i])
		}
	}
	return nil
}

// StoredSizes returns how many bytes each row group stores of a column of a Parquet file.
func StoredSizes(c Column) (sizes []int64) {
	var parts []*ParquetColumn
	switch c := c.(type) {
	case *ParquetColumn:
		parts = []*ParquetColumn{c}
	case *shardColumn:
		parts = c.parts
	}
	for _, p := range parts {
		for group := range p.t.File.Groups {
			sizes = append(sizes, p.t.File.Stored(group, p.i))
		}
	}
	return sizes
}
