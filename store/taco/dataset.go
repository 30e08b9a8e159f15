package taco

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// SourceColumn is the column with the file that a row of several containers comes from.
const SourceColumn = "internal:source_file"

// Dataset is one container, or several one after the other. It is safe for concurrent use.
type Dataset struct {
	opener     *pooledOpener
	parts      []*model.Container
	ends       []int // the end of the parts of each opened path, with a leading 0
	mode       tables.Mode
	chosen     bool
	warn       func(string)
	collection *taco2.Collection // the document of a TACOLLECTION.json

	mu       sync.Mutex
	levels   []*tables.Table
	bases    [][]int
	unpadded map[int]bool // levels without invisible rows
	// index has the ids of the children of nodes with many children. lookups counts the searches
	// before an index is made.
	index   map[node]map[string]int32
	lookups map[node]int

	images *lru.Cache[node, *tiff.Image] // headers of samples whose chunks were read
	groups map[group]*Dataset
}

// group is a range of opened paths, and how their columns are joined.
type group struct {
	from, to int
	mode     tables.Mode
	chosen   bool
}

// Paths returns the number of opened paths.
func (d *Dataset) Paths() int { return len(d.ends) - 1 }

// Mode returns Options.Mode.
func (d *Dataset) Mode() tables.Mode { return d.mode }

// Warn calls Options.Warn.
func (d *Dataset) Warn(message string) { d.warn(message) }

// Group returns a dataset of the containers of paths [from, to), whose columns are joined by mode;
// chosen is Options.Chosen. Its first row of level 0 is row first of d. It must not be closed, and
// is valid until d is closed.
func (d *Dataset) Group(ctx context.Context, from, to int, mode tables.Mode, chosen bool) (of *Dataset,
	first int, err error) {
	if from < 0 || from >= to || to > d.Paths() {
		return nil, 0, d.missing("", fmt.Sprintf("no paths %d to %d of %d", from, to-1, d.Paths()))
	}
	_, bases, err := d.level(ctx, 0)
	if err != nil {
		return nil, 0, err
	}
	lo, hi, key := d.ends[from], d.ends[to], group{from, to, mode, chosen}
	d.mu.Lock()
	if of = d.groups[key]; of == nil {
		of = &Dataset{
			opener: d.opener, parts: d.parts[lo:hi], mode: mode, chosen: chosen, warn: d.warn,
			unpadded: map[int]bool{}, images: lru.New[node, *tiff.Image](imageBytes),
			groups: map[group]*Dataset{}, // parts are numbered anew in the group
		}
		for _, end := range d.ends[from : to+1] {
			of.ends = append(of.ends, end-lo)
		}
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
	return n + d.joined()
}

// joined estimates the memory of headers of samples and of values derived from the tables.
func (d *Dataset) joined() int64 {
	n := d.images.Used()
	if !d.mu.TryLock() {
		return n
	}
	defer d.mu.Unlock()
	for k, t := range d.levels {
		if t != nil && len(d.parts) > 1 { // with one part the table is the part's own
			n += t.Bytes()
		}
		n += 8 * int64(cap(d.bases[k]))
	}
	for _, m := range d.index {
		n += indexCost * int64(len(m))
	}
	for _, g := range d.groups {
		n += g.joined()
	}
	return n
}

// indexCost estimates the memory of an id in an index: a string header, its bytes, and the map
// entry.
const indexCost = 48

// sameHierarchy refuses containers with different trees, since the rows of a level would mean
// different things. The trees of Tortillas may differ even within one file, so that some of several
// may have nested samples and others none.
func (d *Dataset) sameHierarchy(ctx context.Context) error {
	for i, container := range d.parts {
		first := d.parts[0]
		if first.Depth != nil && container.Depth != nil {
			continue
		}
		if err := d.deepen(ctx, max(first.Levels(), container.Levels())-1, first, container); err != nil {
			return err
		}
		same := container.Levels() == first.Levels() && container.IDColumn == first.IDColumn &&
			container.Tree.Same(first.Tree) && slices.Equal(namesOf(first), namesOf(container))
		if i > 0 && !same {
			return fault.WithFile(fault.New(fault.Unsupported, "taco:pit_schema", fault.NoOffset,
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
func (d *Dataset) IDColumn() string {
	if len(d.parts) == 0 {
		return "id"
	}
	return d.parts[0].IDColumn
}

// IDs returns the ids of the rows of a level.
func (d *Dataset) IDs(ctx context.Context, level int) (*tables.Vector, error) {
	table, err := d.Level(ctx, level)
	if err != nil {
		return nil, err
	}
	ids, err := table.Column(ctx, d.IDColumn())
	return ids, fault.WithFile(err, d.name())
}

// Levels returns the number of levels. It is 0 only if no file of a TACOLLECTION.json was opened.
// For nested Tortillas it is the depth of the first samples until the table of a deeper level is
// read.
func (d *Dataset) Levels() int {
	n := 0
	for _, p := range d.parts {
		n = max(n, p.Levels())
	}
	return n
}

// noLevel returns the error for a level that does not exist.
func (d *Dataset) noLevel(k int) error {
	return fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d", k), fault.NoOffset,
		"the levels are 0 to %d", d.Levels()-1), d.name())
}

func (d *Dataset) name() string {
	if len(d.parts) == 0 {
		return ""
	}
	return d.parts[0].URI
}

// Level returns the rows of a level, padding included, with the stored columns. With several
// containers, Options.Mode decides about columns that some lack, and SourceColumn is added.
func (d *Dataset) Level(ctx context.Context, k int) (*tables.Table, error) {
	t, _, err := d.level(ctx, k)
	return t, err
}

// level returns a level, the first row of each part in it, and the number of rows at the end.
func (d *Dataset) level(ctx context.Context, k int) (*tables.Table, []int, error) {
	if len(d.parts) == 0 {
		return tables.FromVectors(nil, nil), []int{0}, nil
	}
	if err := d.deepen(ctx, k, d.parts...); err != nil {
		return nil, nil, err
	}
	if k < 0 || k >= d.Levels() {
		return nil, nil, d.noLevel(k)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.levels) <= k {
		d.levels, d.bases = append(d.levels, nil), append(d.bases, nil)
	}
	if d.levels[k] == nil {
		if err := d.concat(ctx, k); err != nil {
			return nil, nil, err
		}
	}
	return d.levels[k], d.bases[k], nil
}

// deepen finds out whether containers have a level, if that is not known yet.
func (d *Dataset) deepen(ctx context.Context, k int, parts ...*model.Container) error {
	for _, p := range parts {
		if k >= p.Levels() {
			if err := p.Deepen(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Dataset) concat(ctx context.Context, k int) (err error) {
	d.levels[k], d.bases[k], err = d.join(ctx, fmt.Sprintf("level%d", k), k == 0 && d.chosen,
		func(ctx context.Context, p *model.Container) (*tables.Table, error) {
			if k >= p.Levels() { // a Tortilla without samples at this level
				return nil, nil
			}
			return p.Table(ctx, k)
		})
	if err == nil {
		d.levels[k] = d.withSource(d.levels[k], d.bases[k])
	}
	return err
}

// join concatenates a table of each container; nil is a missing one. bases has the first row of each, and the number of
// rows. It warns about columns that some tables lack. part names the tables in the warning. If chosen is set, such
// columns are neither reported nor an error.
func (d *Dataset) join(ctx context.Context, part string, chosen bool,
	get func(ctx context.Context, p *model.Container) (*tables.Table, error),
) (t *tables.Table, bases []int, err error) {
	parts := make([]*tables.Table, len(d.parts))
	err = each.Of(ctx, int64(len(parts)), openAtOnce, func(ctx context.Context, i int64) (err error) {
		parts[i], err = get(ctx, d.parts[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	bases = make([]int, len(d.parts)+1)
	for i, table := range parts {
		bases[i+1] = bases[i]
		if table != nil {
			bases[i+1] += table.Len()
		}
	}
	if len(parts) == 1 {
		return parts[0], bases, nil
	}
	mode, names := d.mode, d.Parts()
	if chosen && mode == tables.Strict {
		mode = tables.Intersection
	}
	t, err = tables.Concat(slices.DeleteFunc(slices.Clone(parts), func(t *tables.Table) bool { return t == nil }), mode)
	if err != nil {
		return nil, nil, fault.WithFile(fault.WithPart(err, part, fault.NoOffset), d.name())
	}
	if !chosen {
		columns, without := tables.MissingColumns(parts, names)
		for i, c := range columns {
			d.warn(fmt.Sprintf("%s: column %q is %s: it is not in %s", part, c, mode.Missing(), without[i]))
		}
	}
	for _, m := range tables.JoinedAsStrings(t, parts, names) {
		d.warn(part + ": " + m)
	}
	return t, bases, nil
}

// withSource adds SourceColumn to a table of several containers, unless they have it.
func (d *Dataset) withSource(t *tables.Table, bases []int) *tables.Table {
	if len(d.parts) == 1 || t.Index(SourceColumn) >= 0 {
		return t
	}
	return tables.Join(t, d.sourceColumn(bases))
}

// sourceColumn returns a table of one column with the file of each row.
func (d *Dataset) sourceColumn(bases []int) *tables.Table {
	cols := []tables.Column{{Name: SourceColumn, Type: tables.Type{Kind: tables.String}}}
	return tables.New(bases[len(d.parts)], cols, func(context.Context, int) (*tables.Vector, error) {
		names := make([]string, 0, bases[len(d.parts)])
		for i, p := range d.parts {
			name := source.Name(strings.TrimRight(p.URI, "/"))
			names = append(names, slices.Repeat([]string{name}, bases[i+1]-bases[i])...)
		}
		return tables.NewStrings(names, nil), nil
	})
}

// Parents returns for each row of a level its parent row in the level above, or nil at level 0.
func (d *Dataset) Parents(ctx context.Context, k int) ([]int32, error) {
	if k == 0 {
		return nil, nil
	}
	_, up, err := d.level(ctx, k-1)
	if err != nil {
		return nil, err
	}
	_, bases, err := d.level(ctx, k)
	if err != nil {
		return nil, err
	}
	if len(d.parts) == 1 {
		return d.parts[0].Parents(ctx, k)
	}
	rows := make([]int32, 0, bases[len(d.parts)])
	for i, container := range d.parts {
		if k >= container.Levels() {
			continue
		}
		parents, err := container.Parents(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, row := range parents {
			rows = append(rows, int32(up[i])+row)
		}
	}
	return rows, nil
}

// AllVisible reports whether a level has neither padding nor histograms of a streaming TACO.
func (d *Dataset) AllVisible(ctx context.Context, k int) (bool, error) {
	_, bases, err := d.level(ctx, k)
	if err != nil {
		return false, err
	}
	if d.knownWhole(k) {
		return true, nil
	}
	rows, err := d.Visible(ctx, k)
	return err == nil && len(rows) == bases[len(d.parts)], err
}

// knownWhole reports whether Visible has found that all rows of a level are visible.
func (d *Dataset) knownWhole(k int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unpadded[k]
}

// Visible returns the rows of a level that are neither padding nor histograms, in order.
func (d *Dataset) Visible(ctx context.Context, k int) ([]int, error) {
	rows, total, err := d.shown(ctx, k, d.knownWhole(k))
	if err == nil && len(rows) == total {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unpadded[k] = true
	}
	return rows, err
}

// samples returns the rows of a level that are not histograms, padding included, in order.
func (d *Dataset) samples(ctx context.Context, k int) ([]int, error) {
	rows, _, err := d.shown(ctx, k, true)
	return rows, err
}

// shown returns the rows of a level that are not histograms nor, unless padded is set, padding, and the number of all.
func (d *Dataset) shown(ctx context.Context, k int, padded bool) (rows []int, total int, err error) {
	_, bases, err := d.level(ctx, k)
	if err != nil {
		return nil, 0, err
	}
	total = bases[len(d.parts)]
	rows = make([]int, 0, total)
	for i, p := range d.parts {
		hidden, err := histograms(ctx, p, k)
		if err != nil {
			return nil, 0, err
		}
		for row := range bases[i+1] - bases[i] {
			_, hide := slices.BinarySearch(hidden, int32(row))
			if !hide && !padded {
				hide, err = p.Padding(ctx, k, row)
			}
			if err != nil {
				return nil, 0, err
			}
			if !hide {
				rows = append(rows, bases[i]+row)
			}
		}
	}
	return rows, total, nil
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

// histograms returns the rows of a level of a container that have histograms of its samples, in
// order.
func histograms(ctx context.Context, p *model.Container, k int) ([]int32, error) {
	if p.Histograms < 0 {
		return nil, nil
	}
	rows := []int32{int32(p.Histograms)}
	for above := range k {
		var below []int32
		for _, row := range rows {
			children, err := p.Children(ctx, above, int(row))
			if err != nil {
				return nil, err
			}
			below = append(below, children...)
		}
		rows = below
	}
	slices.Sort(rows)
	return rows, nil
}

// Row returns the row of an entry in the table of its level.
func (d *Dataset) Row(ctx context.Context, e Entry) (int, error) {
	_, bases, err := d.level(ctx, e.Level)
	if err != nil {
		return 0, err
	}
	return bases[e.Part] + e.Row, nil
}

// Entry returns the sample of a row of a level, with its path.
func (d *Dataset) Entry(ctx context.Context, k, row int) (Entry, error) {
	node, err := d.nodeAt(ctx, k, row)
	if err != nil {
		return Entry{}, err
	}
	prefix, err := d.pathAbove(ctx, node)
	if err != nil {
		return Entry{}, err
	}
	return d.entry(ctx, node, prefix)
}

// EntryAt is Entry without the path, which takes no search in the levels above.
func (d *Dataset) EntryAt(ctx context.Context, k, row int) (Entry, error) {
	node, err := d.nodeAt(ctx, k, row)
	if err != nil {
		return Entry{}, err
	}
	e, err := d.parts[node.part].Entry(ctx, node.level, node.row)
	e.Part = node.part
	return e, err
}

// nodeAt returns the part of a row of a level, and its row there.
func (d *Dataset) nodeAt(ctx context.Context, k, row int) (node, error) {
	_, bases, err := d.level(ctx, k)
	if err != nil {
		return node{}, err
	}
	if row < 0 || row >= bases[len(d.parts)] {
		return node{}, d.noRow(k, row, bases)
	}
	i, _ := slices.BinarySearch(bases, row+1)
	return node{i - 1, k, row - bases[i-1]}, nil
}

func (d *Dataset) noRow(k, row int, bases []int) error {
	return fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d", k), fault.NoOffset,
		"no row %d, there are %d", row, bases[len(d.parts)]), d.name())
}

// pathAbove returns the path of the folder that contains a node.
func (d *Dataset) pathAbove(ctx context.Context, n node) (string, error) {
	var ids []string
	for container := d.parts[n.part]; n.level > 0; {
		parents, err := container.Parents(ctx, n.level)
		if err != nil {
			return "", err
		}
		n.row, n.level = int(parents[n.row]), n.level-1
		entry, err := container.Entry(ctx, n.level, n.row)
		if err != nil {
			return "", err
		}
		ids = append(ids, entry.ID)
	}
	slices.Reverse(ids)
	return strings.Join(ids, "/"), nil
}

// entry returns the sample of a node, given the path of its folder.
func (d *Dataset) entry(ctx context.Context, n node, folder string) (Entry, error) {
	entry, err := d.parts[n.part].Entry(ctx, n.level, n.row)
	if err != nil {
		return entry, err
	}
	entry.Part, entry.Path = n.part, entry.ID
	if folder != "" {
		entry.Path = folder + "/" + entry.ID
	}
	return entry, nil
}

// Verify checks everything in all containers. Faults are errors; the report has counts, and notes on violations that
// can be read anyway.
func (d *Dataset) Verify(ctx context.Context) (*Report, error) {
	r := &Report{}
	for _, p := range d.parts {
		if err := p.Verify(ctx, r); err != nil {
			return r, err
		}
	}
	if err := d.verifyChunks(ctx, r); err != nil {
		return r, err
	}
	return r, d.verifyHeaders(ctx)
}
