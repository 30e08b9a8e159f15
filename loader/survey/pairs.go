package survey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// PairOptions say what Pairs reports.
type PairOptions struct {
	// MaxFaults is how many pairs are listed. Default 1000.
	MaxFaults int
	// Progress, if not nil, is called after every sample, by one goroutine at a time.
	Progress func(done, total int64)
}

// PairReport is what Pairs found. A pair is the first raster field of a sample and another one.
type PairReport struct {
	Samples int64 `json:"samples"`
	Pairs   int64 `json:"pairs"`
	// Misplaced pairs lie at different places on the ground, as their headers or the catalog say, or have sizes
	// that share no grid. Unplaced pairs are compared by their sizes, since a place is not known.
	Misplaced int64 `json:"misplaced"`
	Unplaced  int64 `json:"unplaced"`
	// Unreadable pairs have a raster that cannot be read.
	Unreadable int64 `json:"unreadable"`
	// Faults lists pairs that are misplaced or unreadable, the first ones in the order of rows and fields.
	Faults []PairFault `json:"faults"`
}

// PairFault is why a pair is misplaced or unreadable.
type PairFault struct {
	Row int64  `json:"row"`
	ID  string `json:"id,omitempty"`
	// Field is the name of the other field of the pair.
	Field string `json:"field"`
	// Error names the files and, of a misplaced pair, where they lie and how far apart.
	Error string `json:"error"`

	err error
}

// Err returns the error of the first fault that is listed, or nil.
func (r *PairReport) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return r.Faults[0].err
}

// Pairs compares the rasters of each sample with the sample's first raster by their places on the ground, as headers
// or the catalog say them. Fields with the spec's Ground "ignore" are left out. It reads the rows that the conditions
// and the split leave.
// A spec without fields gets the fields of the dataset.
func Pairs(ctx context.Context, sp spec.Spec, o resources.Options, po PairOptions) (r *PairReport, err error) {
	sp.AllFields = sp.AllFields || len(sp.Fields) == 0
	err = withTable(ctx, sp, o, func(sp spec.Spec, o resources.Options, t *rows.Table) error {
		r, err = comparePairs(ctx, sp, o, t, po)
		return err
	})
	return r, err
}

// pairing is one pass of Pairs, shared by its workers.
type pairing struct {
	options resources.Options
	pairs   PairOptions
	table   *rows.Table
	fields  []spec.Field
	columns []int // of the fields to compare, the first raster field first

	mu     sync.Mutex // guards report
	report PairReport
}

func comparePairs(ctx context.Context, sp spec.Spec, o resources.Options, t *rows.Table,
	po PairOptions) (*PairReport, error) {
	selected, err := rows.Selected(ctx, t, sp.Root(), o)
	if err != nil {
		return nil, err
	}
	made := &pairing{options: o, pairs: po, table: t, fields: sp.Fields}
	made.pairs.MaxFaults = cmp.Or(po.MaxFaults, 1000)
	if made.columns, err = pairColumns(t, sp); err != nil {
		return nil, err
	}
	first, err := rows.FirstOf(ctx, t, made.fields, made.columns, spec.BadSkip, selected)
	if err != nil {
		return nil, err
	}
	remote := slices.ContainsFunc(first, func(a rows.First) bool { return a.Remote() })
	visits := func(*pixels.Reader) func(context.Context, int64) error {
		return func(ctx context.Context, i int64) error {
			return made.sample(ctx, selected.At(i))
		}
	}
	made.report.Samples, made.report.Faults = selected.Len(t.N), []PairFault{}
	if err := pixels.Sweep(ctx, o, remote, made.report.Samples, po.Progress, visits); err != nil {
		return nil, err
	}
	made.report.cut(made.pairs.MaxFaults)
	return &made.report, nil
}

// pairColumns returns the columns of the fields to compare, the first raster field first.
func pairColumns(t *rows.Table, sp spec.Spec) ([]int, error) {
	if err := t.Single(sp.Fields, "pairs"); err != nil {
		return nil, err
	}
	columns, err := rasterColumns(t, sp)
	if err != nil {
		return nil, err
	}
	columns = rows.LeadFirst(sp.Fields, columns)
	columns = append(columns[:1], slices.DeleteFunc(columns[1:], func(i int) bool {
		return sp.Fields[i].Ground == spec.IgnoreGround || !together(t, columns[0], i)
	})...)
	if len(columns) < 2 {
		return nil, errors.New("pairs need two raster fields of a sample: --field NAME=PATTERN, at least twice")
	}
	return columns, nil
}

// together reports whether a dataset has rasters of two fields in its rows: of several datasets of scenes some have
// rasters of one only.
func together(t *rows.Table, a, b int) bool {
	datasets := t.Joined
	if datasets == nil {
		return true
	}
	for k := range datasets.Count() {
		if datasets.Has(a, k) && datasets.Has(b, k) {
			return true
		}
	}
	return false
}

// cut keeps the first n faults.
func (r *PairReport) cut(n int) {
	slices.SortFunc(r.Faults, func(a, b PairFault) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Field, b.Field))
	})
	r.Faults = r.Faults[:min(len(r.Faults), n)]
}

// sample compares the rasters of a sample.
func (p *pairing) sample(ctx context.Context, row int64) error {
	for _, column := range p.columns[1:] {
		if p.table.Lacks(p.columns[0], row) || p.table.Lacks(column, row) {
			continue
		}
		if err := p.pair(ctx, row, column); err != nil {
			return err
		}
	}
	return nil
}

// pair compares two rasters of a sample, and adds the result to the report. It returns errors that are no fault of the
// pair.
func (p *pairing) pair(ctx context.Context, row int64, column int) error {
	first, err := p.table.Fields[p.columns[0]].Asset(ctx, row)
	var other catalog.Asset
	if err == nil {
		other, err = p.table.Fields[column].Asset(ctx, row)
	}
	if errors.Is(err, rows.ErrLacks) {
		return nil
	}
	report, faulty := &p.report, &p.report.Unreadable
	placed := err != nil || first.Place != nil && other.Place != nil
	switch {
	case err == nil:
		faulty = &report.Misplaced
		if err = catalog.SameGround(&first, &other); err == nil {
			_, err = pixels.NewRatio(first.Index, other.Index)
		}
		err = other.Fault(err)
	case fault.KindOf(err) == 0:
		return err
	}
	sample, _ := p.table.ID(ctx, row) // without an id, the row names it
	p.mu.Lock()
	defer p.mu.Unlock()
	report.Pairs++
	if !placed {
		report.Unplaced++
	}
	if err == nil {
		return nil
	}
	*faulty++
	report.Faults = append(report.Faults, PairFault{row, sample, p.fields[column].Name, fault.Line(err), err})
	// They are sorted when twice as many have come, so sorting costs little per pair.
	if len(report.Faults) >= 2*p.pairs.MaxFaults {
		report.cut(p.pairs.MaxFaults)
	}
	return nil
}
