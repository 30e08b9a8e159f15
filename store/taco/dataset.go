package taco

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tiff"
)

// Dataset is one container, or several one after the other. It is safe for concurrent use.
type Dataset struct {
	opener     *pooledOpener
	parts      []*model.Container
	all        *model.Container // the rows of all parts
	joined     *joined          // its reader, if there are several parts
	ends       []int            // the end of the parts of each opened path, with a leading 0
	mode       column.Mode
	chosen     bool
	warn       func(string)
	collection *taco2.Collection // the document of a TACOLLECTION.json

	mu       sync.Mutex
	unpadded map[int]bool // levels without invisible rows
	// index has the ids of the children of nodes with many children. lookups counts the searches
	// before an index is made.
	index   map[levelRow]map[string]int32
	lookups map[levelRow]int

	images *lru.Cache[levelRow, *tiff.Image] // headers of samples whose chunks were read
	groups map[group]*Dataset
}

// group is a range of opened paths, and how their columns are joined.
type group struct {
	from, to int
	mode     column.Mode
	chosen   bool
}

// Paths returns the number of opened paths.
func (d *Dataset) Paths() int { return len(d.ends) - 1 }

// Mode returns Options.Mode.
func (d *Dataset) Mode() column.Mode { return d.mode }

// Warn calls Options.Warn.
func (d *Dataset) Warn(message string) { d.warn(message) }

// Group returns a dataset of the containers of paths [from, to), whose columns are joined by mode; chosen is
// Options.Chosen. Its first row of level 0 is row first of d. It must not be closed, and is valid until d is closed.
func (d *Dataset) Group(ctx context.Context, from, to int, mode column.Mode, chosen bool) (of *Dataset,
	first int, err error) {
	if from < 0 || from >= to || to > d.Paths() {
		return nil, 0, d.missing("", fmt.Sprintf("no paths %d to %d of %d", from, to-1, d.Paths()))
	}
	bases, err := d.bases(ctx, 0)
	if err != nil {
		return nil, 0, err
	}
	lo, hi, key := d.ends[from], d.ends[to], group{from, to, mode, chosen}
	d.mu.Lock()
	if of = d.groups[key]; of == nil {
		of = &Dataset{
			opener: d.opener, parts: d.parts[lo:hi], mode: mode, chosen: chosen, warn: d.warn,
			unpadded: map[int]bool{}, images: lru.New[levelRow, *tiff.Image](imageBytes),
			groups: map[group]*Dataset{},
		}
		for _, end := range d.ends[from : to+1] {
			of.ends = append(of.ends, end-lo)
		}
		of.all, of.joined = join(of.parts, mode, chosen, d.warn)
		d.groups[key] = of
	}
	d.mu.Unlock()
	return of, bases[lo], of.strict(ctx)
}

// Close closes all files. Tables that were not decoded before cannot be decoded afterwards.
func (d *Dataset) Close() error {
	var errs []error
	for _, p := range d.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, d.opener.Close())...)
}

// Bytes estimates the memory of the dataset in bytes: the decoded columns of tables, indexes of ids, and headers of
// samples. Tables that are being loaded do not count yet.
func (d *Dataset) Bytes() int64 {
	n := int64(0)
	for _, p := range d.parts {
		n += p.Bytes()
	}
	return n + d.derived()
}

// derived estimates the memory of headers of samples and of values derived from the tables.
func (d *Dataset) derived() int64 {
	bytes := d.images.Used()
	if d.joined != nil {
		bytes += d.all.Bytes()
	}
	if !d.mu.TryLock() {
		return bytes
	}
	defer d.mu.Unlock()
	for _, m := range d.index {
		bytes += indexCost * int64(len(m))
	}
	for _, g := range d.groups {
		bytes += g.derived()
	}
	return bytes
}

// indexCost estimates the memory of an id in an index: a string header, its bytes, and the map entry.
const indexCost = 48

// sameHierarchy refuses containers with different trees, since the rows of a level would mean different things.
func (d *Dataset) sameHierarchy(ctx context.Context) error {
	for i, container := range d.parts {
		first := d.parts[0]
		// Samples of one Tortilla may have different trees, so samples of several may have them, too.
		if first.Depth != nil && container.Depth != nil {
			continue
		}
		if err := container.Reach(ctx, first.Levels()-1); err != nil {
			return err
		}
		if err := first.Reach(ctx, container.Levels()-1); err != nil {
			return err
		}
		same := container.Levels() == first.Levels() && container.IDColumn == first.IDColumn &&
			container.Tree.Same(first.Tree) && slices.Equal(namesOf(first), namesOf(container))
		if i > 0 && !same {
			return fault.WithFile(fault.New(fault.Unsupported, "taco:pit_schema",
				"its hierarchy is another than that of %s: they cannot be joined", first.URI), container.URI)
		}
	}
	return nil
}

// namesOf returns the names of the tables of a container, or nil if they have none.
func namesOf(c *model.Container) []string {
	if c.Named != nil {
		return c.Named.Names
	}
	return nil
}

// Parts returns the paths of the containers, in order.
func (d *Dataset) Parts() []string {
	uris := make([]string, len(d.parts))
	for i, p := range d.parts {
		uris[i] = p.URI
	}
	return uris
}

// Form returns the form of the first container, Tacollection without one.
func (d *Dataset) Form() Form {
	if len(d.parts) == 0 {
		return Tacollection
	}
	return d.parts[0].Form
}

// Collection returns the JSON document about the dataset: a TACOLLECTION.json, otherwise the document
// of the first container, or nil.
func (d *Dataset) Collection() json.RawMessage {
	switch {
	case d.collection != nil:
		return d.collection.Raw
	case len(d.parts) > 0:
		return d.parts[0].Document
	}
	return nil
}

// IDColumn returns the name of the column of ids.
func (d *Dataset) IDColumn() string { return d.all.IDColumn }

// IDs returns the ids of the rows of a level.
func (d *Dataset) IDs(ctx context.Context, level int) (*tables.Vector, error) {
	return d.all.IDs(ctx, level)
}

// Levels returns the number of levels. It is 0 only if no file of a TACOLLECTION.json was opened. For nested Tortillas
// it is the depth of the first samples until the table of a deeper level is read.
func (d *Dataset) Levels() int {
	if len(d.parts) == 0 {
		return 0
	}
	return d.all.Levels()
}

func (d *Dataset) name() string { return d.all.URI }

// Level returns the rows of a level, padding included, with the stored columns. With several
// containers, Options.Mode decides about columns that some lack, and SourceColumn is added.
func (d *Dataset) Level(ctx context.Context, k int) (*tables.Table, error) {
	return d.all.Table(ctx, k)
}

// bases returns the first row of each part in a level, and the number of rows at the end.
func (d *Dataset) bases(ctx context.Context, k int) ([]int, error) {
	table, err := d.all.Table(ctx, k)
	if err != nil {
		return nil, err
	}
	if d.joined == nil {
		return []int{0, table.Len()}, nil
	}
	return d.joined.firsts(k), nil
}

// place returns the number of the part with a row of a level that was read, and the row there.
func (d *Dataset) place(k, row int) (part, rowThere int) {
	if d.joined == nil {
		return 0, row
	}
	return d.joined.place(k, row)
}

// concat concatenates another table of each container, and returns the first row of each.
func (d *Dataset) concat(ctx context.Context, name string,
	get func(ctx context.Context, p *model.Container) (*tables.Table, error)) (*tables.Table, []int, error) {
	if d.joined != nil {
		return d.joined.tables(ctx, name, false, get)
	}
	t, err := get(ctx, d.all)
	return t, nil, err
}

// Parents returns for each row of a level its parent row in the level above, or nil at level 0.
func (d *Dataset) Parents(ctx context.Context, k int) ([]int32, error) { return d.all.Parents(ctx, k) }

// knownWhole reports whether Visible has found that all rows of a level are visible.
func (d *Dataset) knownWhole(k int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unpadded[k]
}

// Visible returns the rows of a level that are neither padding nor histograms, in order.
func (d *Dataset) Visible(ctx context.Context, k int) ([]int, error) {
	rows, err := d.samples(ctx, k)
	if err != nil || !d.all.Form.Pads() || d.knownWhole(k) {
		return rows, err
	}
	ids, err := d.all.IDs(ctx, k)
	if err != nil {
		return nil, err
	}
	total := len(rows)
	rows = slices.DeleteFunc(rows, func(row int) bool { return model.IsPadding(ids.Str(row)) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unpadded[k] = len(rows) == total
	return rows, nil
}

// samples returns the rows of a level that are not histograms, padding included, in order.
func (d *Dataset) samples(ctx context.Context, k int) ([]int, error) {
	table, err := d.Level(ctx, k)
	if err == nil {
		// Several parts tell which rows of level 0 have histograms when it is read, so it comes first.
		_, err = d.Level(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	hidden := d.all.Histograms
	for above := range k {
		var below []int32
		for _, row := range hidden {
			children, err := d.all.Children(ctx, above, int(row))
			if err != nil {
				return nil, err
			}
			below = append(below, children...)
		}
		hidden = below
	}
	rows := num.Range[int](0, table.Len())
	if len(hidden) == 0 {
		return rows, nil
	}
	slices.Sort(hidden)
	return slices.DeleteFunc(rows, func(row int) bool {
		_, hide := slices.BinarySearch(hidden, int32(row))
		return hide
	}), nil
}

// Histograms returns the number of rows of a level with histograms of a streaming TACO.
func (d *Dataset) Histograms(ctx context.Context, k int) (int, error) {
	table, err := d.Level(ctx, k)
	if err != nil {
		return 0, err
	}
	samples, err := d.samples(ctx, k)
	return table.Len() - len(samples), err
}

// Entry returns the sample of a row of a level, with its path.
func (d *Dataset) Entry(ctx context.Context, k, row int) (store.Entry, error) {
	e, err := d.all.Entry(ctx, k, row)
	if err != nil {
		return store.Entry{}, err
	}
	e.Path, err = d.all.Path(ctx, k, row)
	return e, err
}

// EntryAt is Entry without the path, which would take a search in the levels above.
func (d *Dataset) EntryAt(ctx context.Context, k, row int) (store.Entry, error) {
	return d.all.Entry(ctx, k, row)
}

// Verify checks everything in all containers. Faults are errors; the report has counts, and notes on violations that
// can be read anyway.
func (d *Dataset) Verify(ctx context.Context) (*Report, error) {
	report := &Report{}
	for _, p := range d.parts {
		if err := p.Verify(ctx, report); err != nil {
			return report, err
		}
	}
	return report, d.verifyRasters(ctx, report)
}

// classes are the names of Tortillas whose tables have certain columns (Tortilla 0.5.0, "The
// Footer"). One column of each list must exist: the shape is called raster_shape by the older
// specification and by writers, and tensor_shape by TACO 0.2.0.
var classes = []struct {
	name    string
	columns [][]string
}{
	{"stac-tortilla", [][]string{{"stac:crs"}, {"stac:geotransform"}, {"stac:raster_shape", "stac:tensor_shape"},
		{"stac:time_start"}, {"stac:time_end"}}},
	{"rai-tortilla", [][]string{{"rai:elevation"}, {"rai:cisi"}, {"rai:gdp"}, {"rai:hdi"}, {"rai:gmi"}, {"rai:pop"},
		{"rai:admin0"}, {"rai:admin1"}, {"rai:admin2"}}},
}

// Classes returns the names of a level by its columns: "stac-tortilla", "rai-tortilla".
func (d *Dataset) Classes(ctx context.Context, level int) (names []string, err error) {
	t, err := d.Level(ctx, level)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		equal := true
		for _, names := range c.columns {
			equal = equal && slices.ContainsFunc(names, func(n string) bool { return t.Index(n) >= 0 })
		}
		if equal {
			names = append(names, c.name)
		}
	}
	return names, nil
}

// Partitions returns the number of files that the first container is split into, or 0 if its format has no such number.
func (d *Dataset) Partitions() int {
	if len(d.parts) == 0 {
		return 0
	}
	return d.parts[0].Partitions
}

// chunks returns the chunks of all containers, for which hasChunks must be true. stored includes
// the chunks of histograms.
func (d *Dataset) chunks(ctx context.Context, stored bool) (*tables.Table, error) {
	t, _, err := d.concat(ctx, "chunks", func(_ context.Context, p *model.Container) (*tables.Table, error) {
		if stored || len(p.Histograms) == 0 {
			return p.Chunks.Table, nil
		}
		return p.Chunks.Table.Take(p.Chunks.Samples()), nil
	})
	return t, err
}

// hasChunks reports whether all containers have named chunks.
func (d *Dataset) hasChunks() bool {
	without := func(p *model.Container) bool { return p.Chunks == nil }
	return len(d.parts) > 0 && !slices.ContainsFunc(d.parts, without)
}
