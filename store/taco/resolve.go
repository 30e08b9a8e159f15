package taco

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// levelRow is a row of a level.
type levelRow struct{ level, row int }

// siblings are the children of one node, or the samples of level 0.
type siblings struct {
	of   levelRow // the parent; level -1 at the top
	n    int
	rows []int32 // nil: all rows of level 0
}

func (s *siblings) node(i int) levelRow {
	row := i
	if s.rows != nil {
		row = int(s.rows[i])
	}
	return levelRow{s.of.level + 1, row}
}

// roots returns the samples of level 0.
func (d *Dataset) roots(ctx context.Context) (siblings, error) {
	table, err := d.Level(ctx, 0)
	if err != nil {
		return siblings{}, err
	}
	return siblings{of: levelRow{-1, 0}, n: table.Len()}, nil
}

func (d *Dataset) children(ctx context.Context, e store.Entry) (siblings, error) {
	rows, err := d.all.Children(ctx, e.Level, e.Row)
	return siblings{of: levelRow{e.Level, e.Row}, n: len(rows), rows: rows}, err
}

// Children returns the visible children of a sample, which must be of this dataset. An error ends this and all other
// iterations.
func (d *Dataset) Children(ctx context.Context, e store.Entry) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		s, err := d.children(ctx, e)
		d.each(ctx, s, err, e.Path, false, yield)
	}
}

// each yields the entries of siblings, or the error of finding them, and returns whether to continue.
func (d *Dataset) each(ctx context.Context, s siblings, err error, folder string, padding bool,
	yield func(store.Entry, error) bool) bool {
	if err != nil {
		yield(store.Entry{}, err)
		return false
	}
	for i := range s.n {
		if d.hidden(s.node(i)) && !padding {
			continue
		}
		e, err := d.entry(ctx, s.node(i), folder)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && e.Padding && !padding {
			continue
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// hidden reports whether a row holds the histograms of the others.
func (d *Dataset) hidden(n levelRow) bool {
	return n.level == 0 && slices.Contains(d.all.Histograms, int32(n.row))
}

// entry returns the sample of a node, given the path of its folder.
func (d *Dataset) entry(ctx context.Context, n levelRow, folder string) (store.Entry, error) {
	e, err := d.all.Entry(ctx, n.level, n.row)
	if e.Path = e.ID; folder != "" {
		e.Path = folder + "/" + e.ID
	}
	return e, err
}

// Leaves iterates over all samples with bytes, depth first in the order of the rows. padding
// includes placeholders and the histograms of a streaming TACO.
func (d *Dataset) Leaves(ctx context.Context, padding bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		s, err := d.roots(ctx)
		d.leaves(ctx, s, err, "", padding, yield)
	}
}

// LeavesOf is Leaves below one sample of this dataset. For a file it is the file itself.
func (d *Dataset) LeavesOf(ctx context.Context, e store.Entry, padding bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if !e.Folder {
			yield(e, nil)
			return
		}
		s, err := d.children(ctx, e)
		d.leaves(ctx, s, err, e.Path, padding, yield)
	}
}

func (d *Dataset) leaves(ctx context.Context, s siblings, err error, folder string, padding bool,
	yield func(store.Entry, error) bool) bool {
	return d.each(ctx, s, err, folder, padding, func(e store.Entry, err error) bool {
		if err != nil || !e.Folder {
			return yield(e, err)
		}
		s, err := d.children(ctx, e)
		return d.leaves(ctx, s, err, e.Path, padding, yield)
	})
}

// Resolve returns the sample of a path: ids from level 0 down, joined by "/". At each step the
// longest id that matches is taken, because ids of old formats may contain "/". "#N" is the visible
// sample at position N among its siblings, counted from 0. An unknown path is fault.NotFound.
func (d *Dataset) Resolve(ctx context.Context, path string) (store.Entry, error) {
	return d.Locate(ctx, []string{path})
}

// Below is Resolve for a path that begins at the children of a sample, which must be of this dataset.
func (d *Dataset) Below(ctx context.Context, e store.Entry, path string) (store.Entry, error) {
	s, err := d.children(ctx, e)
	if err != nil {
		return store.Entry{}, err
	}
	return d.locate(ctx, s, e, []string{path})
}

// Locate is Resolve with one key, an id or "#N", for each step. A key that is not an id is resolved
// as a path. An empty or unknown key is fault.NotFound.
func (d *Dataset) Locate(ctx context.Context, keys []string) (store.Entry, error) {
	s, err := d.roots(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	return d.locate(ctx, s, store.Entry{}, keys)
}

// locate follows keys down from s, the children of e.
func (d *Dataset) locate(ctx context.Context, s siblings, e store.Entry, keys []string) (store.Entry, error) {
	if len(keys) == 0 || slices.Contains(keys, "") {
		return store.Entry{}, d.missing(e.Path, "no key is given, or an empty one")
	}
	for _, key := range keys {
		for goesOn := true; goesOn; {
			node, rest, err := d.step(ctx, &s, key)
			if err != nil {
				// A chunk is a row of no level, so its name is tried after all samples.
				if c, ok, cerr := d.chunk(ctx, &s, e.Path, key); ok {
					return c, cerr
				}
				return store.Entry{}, fault.WithFile(fault.WithPart(err, partName(e.Path), fault.NoOffset), d.name())
			}
			if e, err = d.entry(ctx, node, e.Path); err != nil {
				return store.Entry{}, err
			}
			if s, err = d.children(ctx, e); err != nil {
				return store.Entry{}, err
			}
			key, goesOn = rest, rest != ""
		}
	}
	return e, nil
}

func partName(path string) string {
	if path == "" {
		return "level0"
	}
	return "sample " + path
}

func (d *Dataset) missing(path, what string) error {
	return fault.WithFile(fault.New(fault.NotFound, partName(path), "%s", what), d.name())
}

// step finds the sample that a key begins with, and returns the rest of the key.
func (d *Dataset) step(ctx context.Context, s *siblings, key string) (levelRow, string, error) {
	// The longest id comes first because ids of old formats may contain "/".
	for end := len(key); end > 0; end = strings.LastIndexByte(key[:end], '/') {
		n, ok, err := d.find(ctx, s, key[:end])
		if err != nil || ok {
			return n, strings.TrimPrefix(key[end:], "/"), err
		}
	}
	if first, rest, _ := strings.Cut(key, "/"); strings.HasPrefix(first, "#") {
		n, err := d.position(ctx, s, first[1:])
		return n, rest, err
	}
	return levelRow{}, "", d.noSuchID(ctx, s, key)
}

// manySiblings is the number of siblings from which ids are found by an index, after fewLookups
// searches. An index takes as long as some searches, so a single lookup must not pay for one.
const (
	manySiblings = 256
	fewLookups   = 3
)

// find returns the visible sample with an id.
func (d *Dataset) find(ctx context.Context, s *siblings, id string) (n levelRow, ok bool, err error) {
	if s.n == 0 || d.all.Form.Pads() && model.IsPadding(id) {
		return levelRow{}, false, nil
	}
	ids, err := d.all.IDs(ctx, s.of.level+1)
	if err != nil {
		return levelRow{}, false, err
	}
	if index := d.indexOf(s, ids); index != nil {
		place, ok := index[id]
		return s.node(int(place)), ok, nil
	}
	for i := range s.n {
		if string(ids.Bytes(s.node(i).row)) == id {
			return s.node(i), true, nil
		}
	}
	return levelRow{}, false, nil
}

// indexOf returns the positions of the ids of siblings, of equal ones the first, or nil if an index does not pay.
func (d *Dataset) indexOf(s *siblings, ids *tables.Vector) map[string]int32 {
	if s.n < manySiblings {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.index == nil {
		d.index, d.lookups = map[levelRow]map[string]int32{}, map[levelRow]int{}
	}
	if d.lookups[s.of]++; d.index[s.of] == nil && d.lookups[s.of] > fewLookups {
		places := make(map[string]int32, s.n)
		// From last to first, so an id leads to the first sample that has it.
		for i := s.n - 1; i >= 0; i-- {
			places[ids.Str(s.node(i).row)] = int32(i)
		}
		delete(places, "")
		d.index[s.of] = places
	}
	return d.index[s.of]
}

// position returns the visible sample at a position.
func (d *Dataset) position(ctx context.Context, s *siblings, text string) (levelRow, error) {
	want, err := strconv.Atoi(text)
	if err != nil {
		want = -1
	}
	ids, err := d.all.IDs(ctx, s.of.level+1)
	if err != nil {
		return levelRow{}, err
	}
	visible := 0
	for i := range s.n {
		n := s.node(i)
		if d.hidden(n) || d.all.Form.Pads() && model.IsPadding(ids.Str(n.row)) {
			continue
		}
		if visible == want {
			return n, nil
		}
		visible++
	}
	return levelRow{}, fault.New(fault.NotFound, "", "no position #%s: the positions are #0 to #%d", text, visible-1)
}

// noSuchID returns an error that lists some of the existing ids.
func (d *Dataset) noSuchID(ctx context.Context, s *siblings, key string) error {
	const shown = 10
	var ids []string
	d.each(ctx, *s, nil, "", false, func(e store.Entry, err error) bool {
		if err == nil {
			ids = append(ids, e.ID)
		}
		return err == nil && len(ids) <= shown
	})
	if len(ids) > shown {
		ids[shown] = "…"
	}
	if len(ids) == 0 {
		ids = []string{"none"}
	}
	return fault.New(fault.NotFound, "", "no id %q: the ids are %s", key, strings.Join(ids, ", "))
}

// chunk returns the chunk at the end of a key, "lrf::3": of the sample before it, or of the
// folder's root. ok is false if the key does not name a chunk.
func (d *Dataset) chunk(ctx context.Context, s *siblings, folder, key string) (e store.Entry, ok bool, err error) {
	id, name, ok := model.CutLast(key, source.Separator)
	if !ok || len(d.parts) == 0 {
		return e, false, nil
	}
	n, rest, err := d.step(ctx, s, id)
	isOf := err == nil && rest == "" // the chunk is one of this sample
	if !isOf {
		n = s.of
	}
	part, row := 0, 0
	if n.level >= 0 {
		part, row = d.place(n.level, n.row)
	}
	chunks := d.parts[part].Chunks
	if chunks == nil {
		return e, false, nil
	}
	if isOf {
		e, err = chunks.Of(ctx, n.level, row, name)
	} else {
		e, err = chunks.Named(ctx, folder, key)
		if fault.KindOf(err) == fault.NotFound {
			return e, false, nil
		}
	}
	if err != nil {
		return e, true, err
	}
	bases, err := d.bases(ctx, e.Of.Level)
	if err != nil {
		return e, true, err
	}
	e.Path = strings.TrimPrefix(folder+"/"+key, "/")
	sample, err := d.Entry(ctx, e.Of.Level, bases[part]+e.Of.Row)
	e.Of = &sample
	return e, true, err
}
