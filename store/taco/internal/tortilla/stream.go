package tortilla

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// stream is a container whose footer has the rows of all levels and of the chunks.
//
// The column tortilla:root of a row names its parent in the level above: by the ids down to it, joined by "/", or by
// the id of level 0 alone; then the parent is the row whose bytes enclose the row's bytes.
type stream struct {
	*file
	levels []*sampleTable // of samples
	chunks *sampleTable
	chain  []span // the places of the tables, the table of the chunks last

	index map[[2]string][]int32 // the chunks by root and id
	owned map[string][]store.Entry
}

// maxTables limits the chain: one table for each level, and one for the chunks.
const maxTables = maxDepth + 1

// openStream follows the chain of tables from the first one on, with its pointer.
func openStream(ctx context.Context, f *file, top *sampleTable, pointer string) error {
	c := &stream{file: f, chain: []span{f.header.Footer}}
	tables := []*sampleTable{top}
	for {
		part := "footer table " + strconv.Itoa(len(tables)-1)
		next, ok, err := parsePointer(pointer)
		if err != nil {
			return fault.WithPart(err, part, fault.NoOffset)
		}
		if !ok {
			break
		}
		// This needs to come before the table is read: a pointer of a hostile file may lead back to an earlier table.
		if err := c.fits(next); err != nil {
			return fault.WithPart(err, part+" pointer", fault.NoOffset)
		}
		part = "footer table " + strconv.Itoa(len(tables))
		rows, err := readRows(ctx, f.requests, next, part)
		if err != nil {
			return err
		}
		if rows.roots == nil {
			return fault.At(fault.Corrupt, part+" column "+ColRoot, next.Off,
				"is missing or does not have strings")
		}
		if pointer, ok = rows.tbl.Meta(pointerKey); !ok {
			return fault.At(fault.Corrupt, part+" pointer", next.Off, "is missing: a chain ends with NULL")
		}
		tables, c.chain = append(tables, rows), append(c.chain, next)
	}
	n := len(tables) - 1
	if n < 1 {
		return fault.At(fault.Corrupt, "footer table 0 pointer", f.header.Footer.Off,
			"ends the chain before the table of the chunks")
	}
	c.levels, c.chunks = tables[:n], tables[n]
	f.container.Form, f.container.Histograms = model.StreamingTaco, c.findHistogram()
	f.container.Chunks = &model.Chunks{Of: c.chunkOf, Named: c.namedChunk, Table: c.chunks.tbl, Samples: c.sampleChunks}
	f.container.Open(c, n)
	return nil
}

// HistogramID is the id of the row of level 0 with histograms of all samples (TACO 0.2.0, "Precomputed Histogram
// information"). The specification has them as a Tortilla, so a file of that name is a sample like any other.
const HistogramID = "histogram"

func (c *stream) findHistogram() []int32 {
	top := c.levels[0]
	for i := range top.len() {
		if string(top.ids.Bytes(i)) == HistogramID && top.folder(i) {
			return []int32{int32(i)}
		}
	}
	return nil
}

// fits checks the place of the next table of the chain. It must lie in the file and must not
// overlap another table, because a chain could otherwise be endless.
func (c *stream) fits(s span) error {
	if !s.In(HeaderSize, c.size()) || s.Size == 0 {
		return fault.New(fault.Corrupt, "", "%d bytes at %d in %d bytes", s.Size, s.Off, c.size())
	}
	if len(c.chain) == maxTables {
		return fault.New(fault.Limit, "", "more than %d tables", maxTables)
	}
	for i, o := range c.chain {
		if s.Off < o.End() && o.Off < s.End() {
			return fault.New(fault.Corrupt, "", "%d bytes at %d overlap table %d of the chain", s.Size, s.Off, i)
		}
	}
	return nil
}

// indexCost estimates the memory of a chunk in the index: the headers and bytes of two strings, a slice, and what a
// map and an allocation of the slice take beside them.
const indexCost = 2*(16+16) + 24 + 40

// Bytes implements model.Reader.
func (c *stream) Bytes() int64 { return c.chunks.tbl.Bytes() + indexCost*int64(len(c.index)) }

// Level implements model.Reader.
func (c *stream) Level(_ context.Context, level int) (*model.Level, error) {
	return c.levels[level].asLevel(), nil
}

// sampleChunks returns the chunks that are not of histograms: their bytes do not lie in the bytes of the histograms.
func (c *stream) sampleChunks() (rows []int) {
	for i := range c.chunks.len() {
		if !c.encloses(c.levels[0], int(c.container.Histograms[0]), c.chunks, i) {
			rows = append(rows, i)
		}
	}
	return rows
}

// Entry implements model.Reader.
func (c *stream) Entry(_ context.Context, level, row int) (store.Entry, error) {
	rows := c.levels[level]
	spanOf := func(i int) (span, error) { return c.span(rows, i) }
	return c.entry(rows, row, spanOf, model.LevelName(level))
}

// span returns the place of a row's bytes.
func (c *stream) span(t *sampleTable, row int) (span, error) {
	return t.span(row, 0, HeaderSize, c.size())
}

// Parents implements model.Reader.
func (c *stream) Parents(ctx context.Context, level int) ([]int32, error) {
	joiner, err := c.joiner(ctx, level)
	if err != nil {
		return nil, c.fail(err)
	}
	rows := c.levels[level]
	parents := make([]int32, rows.len())
	for i := range parents {
		if parents[i], err = joiner.parent(rows, i); err != nil {
			return nil, c.fail(fault.WithPart(err, model.LevelName(level)+" row "+strconv.Itoa(i), fault.NoOffset))
		}
	}
	return parents, nil
}

// parentJoiner finds the parents of the rows of a level.
type parentJoiner struct {
	c     *stream
	level int
	paths map[string]int32   // rows of the level above, by path
	tops  map[string][]int32 // the same by the id at level 0, in the order of their offsets; nil at level 1
}

func (c *stream) joiner(ctx context.Context, level int) (*parentJoiner, error) {
	above := c.levels[level-1]
	found := &parentJoiner{c: c, level: level, paths: make(map[string]int32, above.len())}
	if level > 1 {
		found.tops = map[string][]int32{}
	}
	budget := c.pathBudget()
	for i := range above.len() {
		if !above.folder(i) {
			continue
		}
		ids, err := c.container.IDsTo(ctx, level-1, i)
		if err != nil {
			return nil, err
		}
		path, top := strings.Join(ids, "/"), ids[0]
		if budget -= int64(len(path)); budget < 0 {
			return nil, c.longPaths(level - 1)
		}
		if _, twice := found.paths[path]; !twice {
			found.paths[path] = int32(i)
		}
		if found.tops != nil {
			found.tops[top] = append(found.tops[top], int32(i))
		}
	}
	for _, rows := range found.tops {
		slices.SortStableFunc(rows, func(a, b int32) int {
			return cmp.Compare(above.offsets.Int(int(a)), above.offsets.Int(int(b)))
		})
	}
	return found, nil
}

// pathBudget limits the total size of the paths of a level. Each id counts once for every sample
// below it, so a few long ids could otherwise take any amount of memory.
func (c *stream) pathBudget() int64 { return fewBytes + c.size() }

func (c *stream) longPaths(level int) error {
	return fault.New(fault.Limit, model.LevelName(level),
		"the paths of its samples take more than %d bytes", c.pathBudget())
}

// parent returns the parent of row i.
func (j *parentJoiner) parent(t *sampleTable, i int) (int32, error) {
	if t.roots.Null(i) {
		return 0, fault.New(fault.Corrupt, "", "%s is null", ColRoot)
	}
	above := j.c.levels[j.level-1]
	root := t.roots.Str(i)
	byPath, named := j.paths[root]
	if named && (j.tops == nil || j.c.encloses(above, int(byPath), t, i)) {
		return byPath, nil
	}
	rows := j.tops[root]
	behind := sort.Search(len(rows), func(k int) bool { return above.offsets.Int(int(rows[k])) > t.offsets.Int(i) })
	if behind > 0 && j.c.encloses(above, int(rows[behind-1]), t, i) {
		return rows[behind-1], nil
	}
	if named {
		return byPath, nil
	}
	return 0, fault.New(fault.Corrupt, "", "%s %q is not a sample of level %d with children", ColRoot, root, j.level-1)
}

// encloses reports whether the bytes of row p of a table enclose the bytes of row i of another.
func (c *stream) encloses(up *sampleTable, p int, t *sampleTable, i int) bool {
	outer, err := c.span(up, p)
	if err != nil {
		return false
	}
	inner, err := c.span(t, i)
	return err == nil && inner.In(outer.Off, outer.End())
}

// chunkOf implements model.Chunks.
func (c *stream) chunkOf(ctx context.Context, level, row int, name string) (store.Entry, error) {
	unlock, err := c.container.Lock(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	defer unlock()
	entry, err := c.container.EntryOf(ctx, level, row)
	if err != nil {
		return store.Entry{}, err
	}
	roots, err := c.rootsOf(ctx, level, row)
	if err != nil {
		return store.Entry{}, c.fail(err)
	}
	id := entry.ID + "::" + name
	for _, root := range roots {
		rows, err := c.find(ctx, root, id)
		if err != nil {
			return store.Entry{}, c.fail(err)
		}
		for _, i := range rows {
			if s, err := c.span(c.chunks, int(i)); err == nil && s.In(entry.Offset, entry.Offset+entry.Size) {
				chunk, err := c.chunk(int(i), entry, s)
				return chunk, c.fail(err)
			}
		}
		if len(rows) > 0 {
			return store.Entry{}, c.fail(fault.New(fault.Corrupt, "chunk "+id,
				"its bytes are outside those of its sample"))
		}
	}
	return store.Entry{}, c.fail(fault.New(fault.NotFound, "chunk "+id, "does not exist"))
}

// chunk returns the entry of a row of the table of chunks. Its id is the id of its sample, "::" and a number.
func (c *stream) chunk(row int, sample store.Entry, s span) (store.Entry, error) {
	id := c.chunks.ids.Str(row)
	_, name, _ := model.CutLast(id, "::")
	number, err := strconv.ParseUint(name, 10, 31)
	if err != nil {
		return store.Entry{}, fault.New(fault.Corrupt, "chunk row "+strconv.Itoa(row),
			"%s %q is not ID::N with the id of a sample", ColID, id)
	}
	return store.Entry{ID: id, URI: c.container.URI, Object: c.container.Object, Offset: s.Off, Size: s.Size,
		Level: len(c.levels), Row: row, Of: &sample, Number: int(number)}, nil
}

// rootsOf returns the roots that the chunks of a sample may have: its own id at level 0, otherwise the path above it or
// its id at level 0.
func (c *stream) rootsOf(ctx context.Context, level, row int) ([]string, error) {
	ids, err := c.container.IDsTo(ctx, level, row)
	if err != nil {
		return nil, err
	}
	if level <= 1 {
		return ids[:1], nil
	}
	return []string{strings.Join(ids[:level], "/"), ids[0]}, nil
}

// namedChunk implements model.Chunks.
func (c *stream) namedChunk(ctx context.Context, root, id string) (chunk store.Entry, err error) {
	unlock, err := c.container.Lock(ctx)
	if err != nil {
		return chunk, err
	}
	defer unlock()
	rows, err := c.find(ctx, root, id)
	switch {
	case err != nil:
	case len(rows) == 0:
		err = fault.New(fault.NotFound, "chunk "+root+" "+id, "does not exist")
	default:
		chunk, err = c.ownedChunk(ctx, int(rows[0]))
	}
	return chunk, c.fail(err)
}

// find returns the chunks with a root and an id.
func (c *stream) find(ctx context.Context, root, id string) ([]int32, error) {
	rows := c.chunks
	if c.index == nil {
		c.index = make(map[[2]string][]int32, rows.len())
		for i := range rows.len() {
			key := [2]string{rows.roots.Str(i), rows.ids.Str(i)}
			c.index[key] = append(c.index[key], int32(i))
		}
	}
	return c.index[[2]string{root, id}], ctx.Err()
}

// owners returns the samples with bytes by their ids, in the order of their offsets.
func (c *stream) owners(ctx context.Context) (map[string][]store.Entry, error) {
	if c.owned != nil {
		return c.owned, nil
	}
	owned := map[string][]store.Entry{}
	for k, t := range c.levels {
		for i := range t.len() {
			entry, err := c.container.EntryOf(ctx, k, i)
			if err != nil {
				return nil, err
			}
			if !entry.Folder {
				owned[entry.ID] = append(owned[entry.ID], entry)
			}
		}
	}
	for _, samples := range owned {
		slices.SortStableFunc(samples, func(a, b store.Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	c.owned = owned
	return owned, nil
}

// ownedChunk returns the chunk in a row, with its sample: the one that the row names and whose bytes enclose the
// chunk's. Several samples of an id may be below one of level 0.
func (c *stream) ownedChunk(ctx context.Context, row int) (chunk store.Entry, err error) {
	rows := c.chunks
	bad := func(format string, args ...any) (store.Entry, error) {
		return chunk, fault.New(fault.Corrupt, "chunk row "+strconv.Itoa(row), format, args...)
	}
	if rows.ids.Null(row) || rows.roots.Null(row) {
		return bad("%s or %s is null", ColID, ColRoot)
	}
	place, err := c.span(rows, row)
	if err != nil {
		return chunk, fault.WithPart(err, "chunk", fault.NoOffset)
	}
	owned, err := c.owners(ctx)
	if err != nil {
		return chunk, err
	}
	root := rows.roots.Str(row)
	id, _, _ := model.CutLast(rows.ids.Str(row), "::")
	samples := owned[id]
	last := sort.Search(len(samples), func(i int) bool { return samples[i].Offset > place.Off }) - 1
	for i := last; i >= 0 && samples[i].Offset == samples[last].Offset; i-- {
		sample := samples[i]
		roots, err := c.rootsOf(ctx, sample.Level, sample.Row)
		if err != nil {
			return chunk, err
		}
		if slices.Contains(roots, root) && place.In(sample.Offset, sample.Offset+sample.Size) {
			return c.chunk(row, sample, place)
		}
	}
	return bad("%s %q has no sample %q with its %d bytes at %d", ColRoot, root, id, place.Size, place.Off)
}

// Verify implements model.Reader. It checks that a level with folders has a table below it, and that every chunk
// belongs to a sample, lies in its bytes, and exists once.
func (c *stream) Verify(ctx context.Context, r *model.Report) error {
	k := len(c.levels) - 1
	if last := c.levels[k]; last.nextFolder(0) >= 0 {
		return c.fail(fault.New(fault.Corrupt, model.RowName(k, last.nextFolder(0)),
			"format %s, but the chain has no table of its samples", nested))
	}
	if err := c.verifyChunks(ctx, r); err != nil {
		return c.fail(err)
	}
	if c.levels[0].roots == nil {
		r.Note("the first table has no column %s", ColRoot)
	}
	return c.verify(ctx, r, c.levels)
}

func (c *stream) verifyChunks(ctx context.Context, r *model.Report) error {
	type place struct{ level, row, number int }
	seen := make(map[place]bool, c.chunks.len())
	for i := range c.chunks.len() {
		chunk, err := c.ownedChunk(ctx, i)
		if err != nil {
			return err
		}
		key := place{chunk.Of.Level, chunk.Of.Row, chunk.Number}
		if seen[key] {
			return fault.New(fault.Corrupt, "chunk row "+strconv.Itoa(i),
				"%q of %q exists twice", chunk.ID, c.chunks.roots.Str(i))
		}
		seen[key] = true
	}
	r.Rows += int64(c.chunks.len())
	return c.chunks.tbl.Check(ctx)
}
