package kinds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/internal/sorter"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/members"
)

const indexName = "index"

// Index is the kind whose output is the catalog that build.Write writes. An item is a file, or a raster in a container.
// The result of a shard is a catalog of its files.
type Index struct {
	Paths []string `json:"paths"`
	// Base is the directory of the catalog, an absolute path: URIs of local files are relative to it, unless Absolute
	// is set.
	Base     string `json:"base"`
	Absolute bool   `json:"absolute,omitempty"`
	// SkipBad leaves out files that cannot be indexed.
	SkipBad bool `json:"skip_bad,omitempty"`
	// Previous is a catalog whose rows are taken for files that have not changed, an absolute path; "" for none.
	Previous string `json:"previous,omitempty"`
	// Join adds the columns of a table, which the merge reads.
	Join *IndexJoin `json:"join,omitempty"`
	// Pairs makes a catalog of pairs, of the one path. It excludes Previous and Join.
	Pairs *IndexPairs `json:"pairs,omitempty"`
}

// IndexPairs describes the fields of a catalog of pairs, as build.Options does.
type IndexPairs struct {
	Fields []IndexField `json:"fields"`
	Drop   bool         `json:"drop,omitempty"` // leave out samples that lack a file
	// Incomplete is how many samples are left out, and LeftOut has the columns of a table that are, when the job was
	// planned.
	Incomplete int      `json:"incomplete,omitempty"`
	LeftOut    []string `json:"left_out,omitempty"`
}

// IndexField is catalog.Source.
type IndexField struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern,omitempty"`
	Column  string `json:"column,omitempty"`
}

// IndexJoin is build.Join, with the counts of rows and files that do not match.
type IndexJoin struct {
	Table     string `json:"table"` // an absolute path or a URL
	On        string `json:"on"`
	Left      bool   `json:"left,omitempty"`
	Unmatched int    `json:"unmatched,omitempty"` // files without a row, when the job was planned
	Unused    int    `json:"unused,omitempty"`    // rows without a file
}

// indexTally says what became of the files of a shard.
type indexTally struct {
	Rows    int64    `json:"rows"`
	Skipped []string `json:"skipped"` // why each of the others is left out
}

// UnmarshalJSON implements json.Unmarshaler. It checks the fields of pairs.
func (k *Index) UnmarshalJSON(b []byte) error {
	type plain Index
	if err := json.Unmarshal(b, (*plain)(k)); err != nil {
		return err
	}
	return k.check()
}

func (k *Index) check() error {
	alone := len(k.Paths) == 1 && k.Join == nil && k.Previous == ""
	if k.Pairs == nil || len(k.Pairs.Fields) > 0 && alone {
		return nil
	}
	return fault.New(fault.Unsupported, "catalog", fault.NoOffset,
		"a catalog of pairs has fields and one path, and no table that is joined and no older catalog")
}

// Name implements job.Kind.
func (*Index) Name() string { return indexName }

func (k *Index) options(o resources.Options) build.Options {
	options := build.Options{Base: k.Base, Absolute: k.Absolute, Workers: o.Workers, MaxChunk: o.MaxChunkBytes,
		Opener: o.Opener,
		Members: func(ctx context.Context, path string) ([]build.Member, error) {
			return members.Of(ctx, o.Opener, path)
		},
		OpenMember: func(ctx context.Context, file string, known source.Known,
			m build.FileMember) (source.Reader, error) {
			return members.Open(ctx, o.Opener, file, known, m)
		}}
	if k.Previous != "" {
		options.Previous = []string{k.Previous}
	}
	if k.Join != nil {
		options.Join = &build.Join{Table: k.Join.Table, On: k.Join.On, Left: k.Join.Left}
	}
	if k.Pairs != nil {
		options.DropIncomplete = k.Pairs.Drop
		for _, f := range k.Pairs.Fields {
			options.Fields = append(options.Fields, catalog.Source{Field: f.Name, Pattern: f.Pattern, Column: f.Column})
		}
	}
	return options
}

// Items implements job.Kind. It holds a piece of the list in memory, and the rest in a file that goes with it.
func (k *Index) Items(ctx context.Context, o resources.Options) (items job.Items, err error) {
	if k.Base, err = pathname.Abs(k.Base); err != nil {
		return items, err
	}
	if k.Previous != "" {
		if k.Previous, err = pathname.Abs(k.Previous); err != nil {
			return items, err
		}
	}
	if k.Join != nil {
		if k.Join.Table, err = source.Abs(k.Join.Table); err != nil {
			return items, err
		}
	}
	if k.Pairs != nil {
		return k.pairs(ctx, o)
	}
	o, done := opened(o)
	defer done()
	s := sorter.New(0, func(sorter.Record) int64 { return 0 })
	err = build.Files(ctx, k.Paths, k.options(o), func(f build.File) error {
		data, err := json.Marshal(f)
		if err != nil {
			return err
		}
		return s.Add(sorter.Record{Key: f.URI, Value: data})
	})
	if items, err = sorted(s, err, nil); err == nil && items.Count == 0 {
		err = k.noRasters()
	}
	if err == nil && k.Join != nil {
		items.Each = k.matched(items.Each, o)
	}
	return items, err
}

// pairs lists the samples of a catalog of pairs. It holds the list in memory, as build.Write does.
func (k *Index) pairs(ctx context.Context, o resources.Options) (items job.Items, err error) {
	if err := k.check(); err != nil {
		return items, err
	}
	if path := k.Paths[0]; !source.IsRemote(path) && catalog.IsTable(path) { // the merge opens it again
		if k.Paths[0], err = source.Abs(path); err != nil {
			return items, err
		}
	}
	o, done := opened(o)
	defer done()
	var n build.Counts
	bo := k.options(o)
	bo.Counts = &n
	bo.LeftOut = func(column string) { k.Pairs.LeftOut = append(k.Pairs.LeftOut, column) }
	var samples []json.RawMessage
	err = build.Files(ctx, k.Paths, bo, func(f build.File) error {
		b, err := json.Marshal(f)
		samples = append(samples, b)
		return err
	})
	if err == nil && len(samples) == 0 {
		err = k.noRasters()
	}
	k.Pairs.Incomplete = n.Incomplete
	return job.Items{Count: int64(len(samples)), Lists: true, Each: func(_ context.Context,
		add func(job.Item) error) error {
		for _, b := range samples {
			if err := add(job.Item{Body: b}); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

// matched refuses files without a row of the table, and counts rows and files that do not match.
func (k *Index) matched(each eachItem, o resources.Options) eachItem {
	return func(ctx context.Context, add func(job.Item) error) (err error) {
		options, done := opened(o)
		defer done()
		var n build.Counts
		bo := k.options(options)
		bo.Counts = &n
		matching, err := build.NewMatching(ctx, bo)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, matching.Close()) }()
		err = each(ctx, func(it job.Item) error {
			var f build.File
			if err := json.Unmarshal(it.Body, &f); err != nil {
				return err
			}
			matching.Add(f.URI)
			return add(it)
		})
		if err == nil {
			err = matching.End()
		}
		k.Join.Unmatched, k.Join.Unused = n.Unmatched, n.Unused
		return err
	}
}

// eachItem is job.Items.Each.
type eachItem = func(ctx context.Context, add func(job.Item) error) error

func (k *Index) noRasters() error {
	return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no rasters"),
		strings.Join(k.Paths, ", "))
}

// Run implements job.Kind.
func (k *Index) Run(ctx context.Context, t *job.Task, body io.Writer) (any, error) {
	files, err := parseBodies[build.File](t)
	if err != nil {
		return nil, err
	}
	tally := indexTally{Skipped: []string{}}
	ro, done := opened(t.Options)
	defer done()
	options := k.options(ro)
	options.Progress = func(done, total int) { t.Progress(int64(done), int64(total)) }
	if k.SkipBad {
		options.Skipped = func(_ string, err error) { tally.Skipped = append(tally.Skipped, fault.Line(err)) }
	}
	rows, err := build.WritePart(ctx, body, files, options)
	tally.Rows = int64(rows)
	return tally, err
}

// Check implements job.Kind.
func (k *Index) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[indexTally](tally)
	n := int64(len(t.Skipped))
	counted := t.Rows >= 0 && t.Rows == s.Count-n
	if err == nil && (!counted || n > 0 && !k.SkipBad) {
		err = corrupt("%d rows and %d files left out, of %d", t.Rows, n, s.Count)
	}
	return int64(len(t.Skipped)), err
}

// Merge implements job.Kind.
func (k *Index) Merge(ctx context.Context, m *job.Merging, out io.Writer) (o job.Outcome, err error) {
	if err := k.checkName(m.Name); err != nil {
		return o, err
	}
	pos := 0
	bo, done := opened(m.Resource)
	defer done()
	parts := func(yield func(*io.SectionReader, error) bool) {
		for p, err := range m.Parts {
			if err != nil {
				yield(nil, err)
				return
			}
			pos = p.Number
			t, err := parseTally[indexTally](p.Tally)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, line := range t.Skipped {
				o.Notes = append(o.Notes, "skipped: "+line)
			}
			if t.Rows > 0 && !yield(p.Body, nil) {
				return
			}
		}
	}
	var rows int
	table := "" // the table of the columns that do not come from the files
	switch {
	case k.Pairs != nil:
		table = k.Paths[0]
		rows, err = build.MergePairs(ctx, out, parts, table, k.options(bo))
	default:
		if k.Join != nil {
			table = k.Join.Table
		}
		rows, err = build.MergeParts(ctx, out, parts, k.options(bo))
	}
	var f *fault.Error
	switch {
	case table != "" && errors.As(err, &f) && f.File == table:
		return o, err
	case fault.KindOf(err) != 0:
		return o, m.Job.InPart(pos, err)
	case err == nil && rows == 0:
		err = k.noRasters()
	}
	o.Notes = append(o.Notes, k.notes(len(o.Notes))...)
	return o, err
}

// notes reports how many files are left out or do not match, in the words of 'chaski index'.
func (k *Index) notes(skipped int) (lines []string) {
	count := func(n int, what string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d", what, n))
		}
	}
	if k.Pairs != nil && len(k.Pairs.LeftOut) > 0 {
		lines = append(lines, "columns left out: "+strings.Join(k.Pairs.LeftOut, ", "))
	}
	count(skipped, "files skipped")
	if k.Pairs != nil {
		count(k.Pairs.Incomplete, "incomplete samples left out")
	}
	if k.Join != nil {
		count(k.Join.Unmatched, "files without a row in "+k.Join.Table)
		count(k.Join.Unused, "rows of "+k.Join.Table+" without a file")
	}
	return lines
}

// checkName refuses to write a catalog with relative paths into another directory than the one that they are relative
// to.
func (k *Index) checkName(name string) error {
	if name == "" || k.Absolute {
		return nil
	}
	dir, err := pathname.Abs(pathname.Dir(name))
	if err != nil || dir == k.Base {
		return err
	}
	return fault.WithFile(fault.New(fault.Unsupported, "catalog", fault.NoOffset,
		"its paths are relative to %s, as the job was planned: write it there", k.Base), name)
}

// sorted returns the records of a sorter as items. err is the error of listing them. weigh, if not nil, returns the
// bytes of an item.
func sorted(s *sorter.Sorter, err error, weigh func(sorter.Record) int64) (items job.Items, _ error) {
	if err == nil {
		items.Count, items.Bytes, err = s.Total()
	}
	if err != nil {
		_ = s.Close()
		return items, err
	}
	items.Lists, items.Close = true, s.Close
	items.Each = func(ctx context.Context, add func(job.Item) error) error {
		return s.Each(func(r sorter.Record) error {
			it := job.Item{Body: r.Value}
			if weigh != nil {
				it.Bytes = weigh(r)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return add(it)
		})
	}
	return items, nil
}

// parseBodies parses the bodies of a shard's items.
func parseBodies[T any](t *job.Task) ([]T, error) {
	out := make([]T, len(t.Bodies))
	for i, b := range t.Bodies {
		if err := json.Unmarshal(b, &out[i]); err != nil {
			return nil, fault.New(fault.Corrupt, "items", fault.NoOffset, "item %d: %v", i, err)
		}
	}
	return out, nil
}
