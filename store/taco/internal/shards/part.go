package shards

import (
	"context"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// part has the samples and columns of one shard.
type part struct {
	shard   shard
	ids     []string
	counts  []int32 // files of each sample
	files   []file  // shard is not set yet
	names   []string
	nameAt  map[string]int32 // in names: members of a tar may each have a name of their own
	heads   []string
	columns columns
	size    int64
}

// name returns the number of a name of files.
func (p *part) name(s string) int32 {
	n, ok := p.nameAt[s]
	if !ok {
		if p.nameAt == nil {
			p.nameAt = map[string]int32{}
		}
		n = int32(len(p.names))
		p.nameAt[s], p.names = n, append(p.names, s)
	}
	return n
}

// head returns the number of a header that stands before the bytes of files.
func (p *part) head(b string) int32 {
	// The last ones are compared, since samples mostly have the same shapes in turn.
	for i := len(p.heads) - 1; i >= max(0, len(p.heads)-16); i-- {
		if p.heads[i] == b {
			return int32(i)
		}
	}
	p.heads = append(p.heads, b)
	return int32(len(p.heads) - 1)
}

// openAtOnce limits the shards that are read at a time.
const openAtOnce = 8

// read reads all shards and joins their samples. why may replace the error of a shard that cannot be opened. After an
// error it begins no further shard: a pattern may name a million that do not exist.
func (c *Container) read(ctx context.Context, uris []string, one func(context.Context, int, *part, source.Reader) error,
	why func(i int, err error) error) error {
	parts := make([]*part, len(uris))
	err := each.Of(ctx, int64(len(uris)), openAtOnce, func(ctx context.Context, n int64) (err error) {
		i := int(n)
		parts[i], err = openPart(ctx, c.opener, uris[i], func(p *part, r source.Reader) error {
			return one(ctx, i, p, r)
		})
		if err != nil && why != nil {
			err = why(i, err)
		}
		return fault.WithFile(err, uris[i])
	})
	if err != nil {
		return err
	}
	return fault.WithFile(c.join(parts), c.uri)
}

func openPart(ctx context.Context, o source.Opener, uri string, read func(*part, source.Reader) error) (*part, error) {
	reader, err := o.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	p := &part{shard: shard{uri: uri, object: source.Known{Size: reader.Size(), ETag: source.ETag(reader)}},
		size: reader.Size()}
	err = read(p, reader)
	if cerr := reader.Close(); err == nil {
		err = cerr
	}
	return p, err
}

// join makes the levels of the parts.
func (c *Container) join(parts []*part) error {
	var ids []string
	var cols columns
	var size int64
	c.first = []int32{0}
	names, row := map[string]int32{}, int32(0)
	for i, part := range parts {
		if len(ids)+len(part.ids) > maxRows || len(c.files)+len(part.files) > maxRows {
			return fault.New(fault.Limit, "samples", fault.NoOffset, "over %d of them, or of files", maxRows)
		}
		cols.join(&part.columns, len(ids))
		ids = append(ids, part.ids...)
		size += part.size
		for _, n := range part.counts {
			row += n
			c.first = append(c.first, row)
		}
		rows := make([]int32, len(part.names))
		for k, name := range part.names {
			n, ok := names[name]
			if !ok {
				n = int32(len(c.names))
				names[name] = n
				c.names = append(c.names, name)
			}
			rows[k] = n
		}
		heads := int32(len(c.heads))
		c.heads = append(c.heads, part.heads...)
		for _, file := range part.files {
			file.shard, file.name = int32(i), rows[file.name]
			if file.head >= 0 {
				file.head += heads
			}
			c.files = append(c.files, file)
		}
		c.shards = append(c.shards, part.shard)
	}
	if err := cols.tooMany(len(ids), size); err != nil {
		return err
	}
	header := []string{columnID, columnType}
	for i := range ids {
		if ids[i] == "" {
			ids[i] = strconv.Itoa(i)
		}
	}
	vectors := []*tables.Vector{tables.NewStrings(ids, nil), types(len(ids), model.Folder)}
	taken := map[string]bool{columnID: true, columnType: true}
	for _, column := range cols.list {
		name := column.name
		for taken[name] {
			name = "source:" + name // as columns of tables are renamed that a container has itself
		}
		taken[name] = true
		header, vectors = append(header, name), append(vectors, column.vector(len(ids)))
	}
	c.table = tables.FromVectors(header, vectors)
	return nil
}
