package tortilla

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// plain is a container whose nested samples have footers of their own. A level has the rows
// of its footers, one after the other.
//
// Footers are read when they are needed. Until all of them are read, rows below level 0 have
// provisional numbers, from provisional on.
type plain struct {
	*file

	root   *blob
	depth  int       // levels known so far
	total  int64     // rows of all footers read so far
	lazy   [][]*blob // by level, in the order in which they were read
	next   []int32   // by level, the next provisional row
	levels [][]*blob // by level, in the order of their rows; nil until all are read
}

// blob is a Tortilla: the container itself or a nested one.
type blob struct {
	*rows
	at     span // its place in the file
	level  int
	parent *blob
	row    int           // its row in the parent
	kids   map[int]*blob // nested ones read so far, by row
	first  int32         // row in the level of its first row; -1 if not known yet
	lazy   int32         // provisional row of its first row
}

const (
	provisional = 1 << 30
	// maxDepth limits the levels, since each one costs a request. Nesting would end without it too,
	// because a nested Tortilla lies inside its parent's bytes.
	maxDepth = 32
	// readAtOnce is the number of footers that are read concurrently.
	readAtOnce = 8
)

func openPlain(ctx context.Context, f *file, top *rows) error {
	c := &plain{file: f, root: &blob{rows: top, at: span{Off: 0, Size: f.r.Size()}}, depth: 1, total: int64(top.len())}
	c.root.kids = map[int]*blob{}
	if f.of.Form = model.TortillaFile; f.header.TACO {
		f.of.Form = model.PlainTaco
	}
	f.of.Lazy = c
	f.of.Open(c, 1)
	if err := c.root.check(); err != nil {
		return err
	}
	// Samples mostly have the same structure, so that the first nested ones tell the depth.
	for blob := c.root; blob != nil; {
		i := blob.nextFolder(0)
		if i < 0 {
			break
		}
		kid, err := c.kid(ctx, blob, i)
		if err != nil {
			return err
		}
		blob = kid
	}
	return nil
}

// nextFolder returns the first row from i on with nested samples, or -1.
func (b *blob) nextFolder(i int) int {
	for ; i < b.len(); i++ {
		if b.folder(i) {
			return i
		}
	}
	return -1
}

// lo is the smallest offset of a sample.
func (b *blob) lo() int64 { return b.at.Off + HeaderSize }

// span returns the place of a row's bytes in the file.
func (b *blob) span(i int) (span, error) {
	return b.rows.span(i, b.at.Off, b.lo(), b.at.End())
}

// part names a table in errors.
func (b *blob) part() string {
	if b.parent == nil {
		return "footer"
	}
	return fmt.Sprintf("level%d row %d footer", b.level-1, b.row)
}

// check refuses nested samples that share bytes, because a few of them could stand for any number
// of rows.
func (b *blob) check() error {
	var spans []span
	for i := b.nextFolder(0); i >= 0; i = b.nextFolder(i + 1) {
		span, err := b.span(i)
		if err != nil {
			return fault.WithPart(err, b.part(), fault.NoOffset)
		}
		spans = append(spans, span)
	}
	slices.SortFunc(spans, func(x, y span) int { return int(min(max(x.Off-y.Off, -1), 1)) })
	for i := 1; i < len(spans); i++ {
		if spans[i].Off < spans[i-1].End() {
			return fault.New(fault.Corrupt, b.part(), spans[i].Off, "two samples of format %s share bytes", nested)
		}
	}
	return nil
}

// read reads a nested Tortilla.
func (c *plain) read(ctx context.Context, b *blob, i int) (*blob, error) {
	span, err := b.span(i)
	if err != nil {
		return nil, fault.WithPart(err, b.part(), fault.NoOffset)
	}
	kid := &blob{at: span, level: b.level + 1, parent: b, row: i, kids: map[int]*blob{}, first: -1}
	if kid.level >= maxDepth {
		return nil, fault.New(fault.Limit, kid.part(), span.Off, "more than %d levels", maxDepth)
	}
	r := &within{c.requests, span}
	head := make([]byte, min(HeaderSize, span.Size))
	if err := r.ReadAt(ctx, head, 0); err != nil {
		return nil, fault.WithPart(err, kid.part(), fault.NoOffset)
	}
	h, err := ParseHeader(head, span.Size)
	if err == nil {
		kid.rows, err = readRows(ctx, r, h.Footer, "")
	}
	if err == nil {
		err = kid.check()
	}
	if err != nil {
		return nil, fault.WithPart(err, kid.part(), span.Off)
	}
	return kid, nil
}

// within reads a range of a file.
type within struct {
	source.Reader
	at span
}

func (w *within) Size() int64 { return w.at.Size }

func (w *within) ReadAt(ctx context.Context, p []byte, off int64) error {
	if !(span{Off: off, Size: int64(len(p))}).In(0, w.at.Size) {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes in %d", len(p), w.at.Size)
	}
	return w.Reader.ReadAt(ctx, p, w.at.Off+off)
}

// kid returns a nested Tortilla, which it reads if necessary.
func (c *plain) kid(ctx context.Context, b *blob, i int) (*blob, error) {
	if k := b.kids[i]; k != nil {
		return k, nil
	}
	k, err := c.read(ctx, b, i)
	if err != nil {
		return nil, err
	}
	return k, c.take(k)
}

// take registers a nested Tortilla.
func (c *plain) take(k *blob) error {
	c.total += int64(k.len())
	if limit := model.RowLimit(c.r.Size()); c.total > limit {
		return fault.New(fault.Limit, k.part(), k.at.Off, "more than %d rows", limit)
	}
	for len(c.lazy) <= k.level {
		c.lazy, c.next = append(c.lazy, nil), append(c.next, provisional)
	}
	k.lazy = c.next[k.level]
	c.next[k.level] += int32(k.len())
	c.lazy[k.level] = append(c.lazy[k.level], k)
	c.depth = max(c.depth, k.level+1)
	k.parent.kids[k.row] = k
	return nil
}

// walk reads all footers and numbers the rows of all levels.
func (c *plain) walk(ctx context.Context) error {
	if c.levels != nil {
		return nil
	}
	levels := [][]*blob{{c.root}}
	for k := 0; ; k++ {
		below, err := c.below(ctx, levels[k])
		if err != nil {
			return err
		}
		if len(below) == 0 {
			break
		}
		first := int32(0)
		for _, b := range below {
			b.first = first
			first += int32(b.len())
		}
		levels = append(levels, below)
	}
	c.levels = levels
	return nil
}

// below returns the Tortillas nested in some others, in the order of their rows.
func (c *plain) below(ctx context.Context, blobs []*blob) ([]*blob, error) {
	type place struct {
		b *blob
		i int
	}
	var places []place
	for _, b := range blobs {
		for i := b.nextFolder(0); i >= 0; i = b.nextFolder(i + 1) {
			places = append(places, place{b, i})
		}
	}
	kids := make([]*blob, len(places))
	err := each.Of(ctx, int64(len(places)), readAtOnce, func(ctx context.Context, n int64) (err error) {
		p := places[n]
		if kids[n] = p.b.kids[p.i]; kids[n] == nil {
			kids[n], err = c.read(ctx, p.b, p.i)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, blob := range kids {
		if blob.parent.kids[blob.row] != nil {
			continue
		}
		if err := c.take(blob); err != nil {
			return nil, err
		}
	}
	return kids, nil
}

// at returns the table of a row, and its row there.
func (c *plain) at(ctx context.Context, level, row int) (*blob, int, error) {
	missing := func() (*blob, int, error) {
		return nil, 0, fault.New(fault.NotFound, model.LevelName(level)+" row "+strconv.Itoa(row),
			fault.NoOffset, "does not exist")
	}
	var list []*blob
	first := func(b *blob) int { return int(b.first) }
	switch {
	case level < 0 || row < 0:
		return missing()
	case level == 0:
		list = []*blob{c.root}
	case row >= provisional:
		if level < len(c.lazy) {
			list = c.lazy[level]
		}
		first = func(b *blob) int { return int(b.lazy) }
	default:
		if err := c.walk(ctx); err != nil {
			return nil, 0, err
		}
		if level < len(c.levels) {
			list = c.levels[level]
		}
	}
	n := sort.Search(len(list), func(i int) bool { return first(list[i]) > row }) - 1
	if n < 0 || row-first(list[n]) >= list[n].len() {
		return missing()
	}
	return list[n], row - first(list[n]), nil
}

// Bytes implements model.Reader.
func (c *plain) Bytes() (n int64) {
	for _, level := range c.lazy {
		for _, b := range level {
			n += b.tbl.Bytes()
		}
	}
	return n
}

// Known implements model.Lazy.
func (c *plain) Known() int { return c.depth }

// Deepen implements model.Lazy.
func (c *plain) Deepen(ctx context.Context) (int, error) {
	err := c.walk(ctx)
	return c.depth, c.fail(err)
}

// Level implements model.Reader. Offsets are as stored, from the start of the enclosing Tortilla.
func (c *plain) Level(ctx context.Context, level int) (*model.Level, error) {
	if level == 0 {
		return c.root.asLevel(), nil
	}
	list := make([]*tables.Table, len(c.levels[level]))
	for i, b := range c.levels[level] {
		list[i] = b.tbl
	}
	table, err := tables.Concat(list, tables.Mixed)
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
		rows = append(rows, slices.Repeat([]int32{b.parent.first + int32(b.row)}, b.len())...)
	}
	return rows, nil
}

// Children implements model.Lazy.
func (c *plain) Children(ctx context.Context, level, row int) ([]int32, error) {
	blob, i, err := c.at(ctx, level, row)
	if err != nil || !blob.folder(i) {
		return nil, c.fail(err)
	}
	k, err := c.kid(ctx, blob, i)
	if err != nil {
		return nil, c.fail(err)
	}
	first := k.first
	if c.levels == nil {
		first = k.lazy
	}
	children := make([]int32, k.len())
	for n := range children {
		children[n] = first + int32(n)
	}
	return children, nil
}

// Entry implements model.Reader.
func (c *plain) Entry(ctx context.Context, level, row int) (model.Entry, error) {
	blob, i, err := c.at(ctx, level, row)
	if err != nil {
		return model.Entry{}, c.fail(err)
	}
	e, err := blob.entry(i)
	var s span
	if err == nil {
		s, err = blob.span(i)
	}
	if err != nil {
		return model.Entry{}, c.fail(fault.WithPart(err, blob.part(), fault.NoOffset))
	}
	e.URI, e.Object, e.Offset, e.Size = c.of.URI, c.object, s.Off, s.Size
	return e, nil
}

// ID implements model.Lazy.
func (c *plain) ID(ctx context.Context, level, row int) (string, error) {
	blob, i, err := c.at(ctx, level, row)
	if err != nil {
		return "", c.fail(err)
	}
	return blob.ids.Str(i), nil
}

// FinalRow implements model.Lazy.
func (c *plain) FinalRow(ctx context.Context, level, row int) (int, error) {
	if level == 0 || row < provisional {
		return row, nil
	}
	blob, i, err := c.at(ctx, level, row)
	if err == nil {
		err = c.walk(ctx)
	}
	if err != nil {
		return 0, c.fail(err)
	}
	return int(blob.first) + i, nil
}

// Verify implements model.Reader. It checks the header, and of every level the ids (unique among
// siblings), formats and places of all samples, which must lie inside their Tortilla.
func (c *plain) Verify(ctx context.Context, r *model.Report) error {
	if err := c.walk(ctx); err != nil {
		return c.fail(err)
	}
	splits := 0
	for _, level := range c.levels {
		for _, blob := range level {
			n, err := blob.verify(ctx, nil)
			if err == nil {
				err = blob.places(r)
			}
			if err != nil {
				return c.fail(fault.WithPart(err, blob.part(), fault.NoOffset))
			}
			splits += n
		}
	}
	c.notes(r, splits)
	return nil
}

// places checks and counts the places of the samples.
func (b *blob) places(r *model.Report) error {
	for i := range b.len() {
		span, err := b.span(i)
		if err != nil {
			return err
		}
		if b.folder(i) {
			r.Folders++
		} else {
			r.Files++
			r.Bytes += span.Size
		}
	}
	r.Rows += int64(b.len())
	return nil
}

// notes adds notes on violations of the specification that can be read anyway.
func (f *file) notes(r *model.Report, splits int) {
	if f.header.Partitions == 0 {
		r.Note("the header says that the container is split into 0 files")
	}
	if splits > 0 {
		r.Note("%d rows have a %s other than train, test and validation", splits, colSplit)
	}
}
