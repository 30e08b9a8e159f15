package tortilla

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// plain is a container whose nested samples have footers of their own. A level has the rows of its footers, one after
// the other. The footers below level 0 are read together, when one of them is asked for.
type plain struct {
	*file

	levels [][]*tortillaBlob // only level 0 until all are read
	all    bool
}

// tortillaBlob is a Tortilla: the container itself or a nested one.
type tortillaBlob struct {
	*sampleTable
	at     span   // its place in the file
	part   string // its name in errors
	parent int    // its row in the level above
	first  int    // row in the level of its first row
}

const (
	// maxDepth limits the levels, since each one costs a request. Nesting would end without it too,
	// because a nested Tortilla lies inside its parent's bytes.
	maxDepth = 32
	// readAtOnce is the number of footers that are read concurrently.
	readAtOnce = 8
)

// openPlain opens a container with the rows of its footer. Samples mostly have the same structure, so the first
// nested ones tell the depth, until the level below level 0 is asked for.
func openPlain(ctx context.Context, f *file, top *sampleTable) error {
	root := &tortillaBlob{sampleTable: top, at: span{Off: 0, Size: f.size()}, part: "footer"}
	c := &plain{file: f, levels: [][]*tortillaBlob{{root}}}
	if f.header.TACO {
		f.container.Form = model.PlainTaco
	}
	if err := root.check(); err != nil {
		return err
	}
	depth := 0
	for outer := root; outer != nil; depth++ {
		i := outer.nextFolder(0)
		if i < 0 {
			outer = nil
			continue
		}
		var err error
		if outer, err = c.read(ctx, outer, i, depth+1); err != nil {
			return err
		}
	}
	f.container.Depth = c.walk
	f.container.Open(c, depth)
	return nil
}

// span returns the place of a row's bytes in the file.
func (b *tortillaBlob) span(i int) (span, error) {
	return b.sampleTable.span(i, b.at.Off, b.at.Off+HeaderSize, b.at.End())
}

// check refuses nested samples that share bytes.
func (b *tortillaBlob) check() error {
	var spans []span
	for i := b.nextFolder(0); i >= 0; i = b.nextFolder(i + 1) {
		extent, err := b.span(i)
		if err != nil {
			return fault.WithPart(err, b.part, fault.NoOffset)
		}
		spans = append(spans, extent)
	}
	slices.SortFunc(spans, func(x, y span) int { return int(min(max(x.Off-y.Off, -1), 1)) })
	for i := 1; i < len(spans); i++ {
		// A few samples that share bytes could stand for any number of rows, since each is read by itself.
		if spans[i].Off < spans[i-1].End() {
			return fault.At(fault.Corrupt, b.part, spans[i].Off, "two samples of format %s share bytes", nested)
		}
	}
	return nil
}

// read reads the Tortilla in a row of another, which is one of a level.
func (c *plain) read(ctx context.Context, b *tortillaBlob, i, level int) (*tortillaBlob, error) {
	place, err := b.span(i)
	if err != nil {
		return nil, fault.WithPart(err, b.part, fault.NoOffset)
	}
	kid := &tortillaBlob{at: place, parent: b.first + i, part: fmt.Sprintf("level%d row %d footer", level-1, i)}
	if level >= maxDepth {
		return nil, fault.At(fault.Limit, kid.part, place.Off, "more than %d levels", maxDepth)
	}
	inside, err := source.SectionOf(c.requests, place.Off, place.Size)
	if err != nil {
		return nil, fault.WithPart(err, kid.part, fault.NoOffset)
	}
	head, err := source.Read(ctx, inside, 0, min(HeaderSize, place.Size))
	if err != nil {
		return nil, fault.WithPart(err, kid.part, fault.NoOffset)
	}
	h, err := ParseHeader(head, place.Size)
	if err == nil {
		kid.sampleTable, err = readRows(ctx, inside, h.Footer, "")
	}
	if err != nil {
		return nil, fault.WithPart(err, kid.part, place.Off)
	}
	return kid, kid.check()
}

// walk reads all footers, and returns the number of levels.
func (c *plain) walk(ctx context.Context) (int, error) {
	total := int64(c.levels[0][0].len())
	for above := c.levels[0]; !c.all; {
		below, err := c.below(ctx, above, len(c.levels), total)
		if err != nil {
			// The next call begins at level 0 again, so it must not find the levels read so far.
			c.levels = c.levels[:1]
			return 0, c.fail(err)
		}
		for _, b := range below {
			total += int64(b.len())
		}
		if c.all = len(below) == 0; !c.all {
			c.levels = append(c.levels, below)
		}
		above = below
	}
	return len(c.levels), nil
}

// below returns the Tortillas nested in the Tortillas of the level above, in the order of their rows. total is the
// number of rows in front of them.
func (c *plain) below(ctx context.Context, above []*tortillaBlob, level int, total int64) ([]*tortillaBlob, error) {
	type place struct {
		in  *tortillaBlob
		row int
	}
	var places []place
	for _, b := range above {
		for i := b.nextFolder(0); i >= 0; i = b.nextFolder(i + 1) {
			places = append(places, place{b, i})
		}
	}
	blobs := make([]*tortillaBlob, len(places))
	err := each.Of(ctx, int64(len(places)), readAtOnce, func(ctx context.Context, n int64) (err error) {
		blobs[n], err = c.read(ctx, places[n].in, places[n].row, level)
		return err
	})
	if err != nil {
		return nil, err
	}
	first := 0
	for _, b := range blobs {
		b.first = first
		first += b.len()
		if limit := model.RowLimit(c.size()); total+int64(first) > limit {
			return nil, fault.At(fault.Limit, b.part, b.at.Off, "more than %d rows", limit)
		}
	}
	return blobs, nil
}

// Bytes implements model.Reader.
func (c *plain) Bytes() (n int64) {
	for _, level := range c.levels[1:] {
		for _, b := range level {
			n += b.tbl.Bytes()
		}
	}
	return n
}

// Level implements model.Reader. Offsets are as stored, from the start of the enclosing Tortilla.
func (c *plain) Level(ctx context.Context, level int) (*model.Level, error) {
	list := make([]*tables.Table, len(c.levels[level]))
	for i, b := range c.levels[level] {
		list[i] = b.tbl
	}
	if level == 0 {
		return c.levels[0][0].asLevel(), nil
	}
	table, err := tables.Concat(list, column.Mixed)
	var ids *tables.Vector
	if err == nil {
		ids, err = table.Column(ctx, ColID)
	}
	if err != nil {
		return nil, c.fail(fault.WithPart(err, model.LevelName(level), fault.NoOffset))
	}
	return &model.Level{Table: table, IDs: ids}, nil
}

// Parents implements model.Reader.
func (c *plain) Parents(_ context.Context, level int) ([]int32, error) {
	rows := []int32{}
	for _, b := range c.levels[level] {
		rows = append(rows, slices.Repeat([]int32{int32(b.parent)}, b.len())...)
	}
	return rows, nil
}

// Entry implements model.Reader.
func (c *plain) Entry(_ context.Context, level, row int) (store.Entry, error) {
	blobs := c.levels[level]
	blob := blobs[sort.Search(len(blobs), func(i int) bool { return blobs[i].first > row })-1]
	return c.entry(blob.sampleTable, row-blob.first, blob.span, blob.part)
}

// Verify implements model.Reader.
func (c *plain) Verify(ctx context.Context, r *model.Report) error {
	var all []*sampleTable
	for _, b := range slices.Concat(c.levels...) {
		all = append(all, b.sampleTable)
	}
	return c.verify(ctx, r, all)
}

// verify notes violations of the specification that can be read anyway.
func (f *file) verify(ctx context.Context, r *model.Report, all []*sampleTable) error {
	splits := 0
	for _, t := range all {
		n, err := t.unknownSplits(ctx)
		if err != nil {
			return f.fail(err)
		}
		splits += n
	}
	if f.header.Partitions == 0 {
		r.Note("the header says that the container is split into 0 files")
	}
	if splits > 0 {
		r.Note("%d rows have a %s other than train, test and validation", splits, colSplit)
	}
	return nil
}
