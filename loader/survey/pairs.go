package survey

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// PairOptions say what Pairs reports.
type PairOptions struct {
	// Worst is how many pairs are listed. Default 20.
	Worst int
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
	// Worst lists pairs that are misplaced or unreadable, those with the longest shifts first.
	Worst []Pair `json:"worst"`
}

// Verdicts about a pair.
const (
	Misplaced  = "misplaced"
	Unreadable = "unreadable"
)

// Pair is the result of comparing a pair.
type Pair struct {
	Verdict string `json:"verdict"`
	Row     int64  `json:"row"`
	ID      string `json:"id,omitempty"`
	// First and Other are the names of the fields, FirstFile and OtherFile their rasters.
	First     string `json:"first"`
	Other     string `json:"other"`
	FirstFile string `json:"first_file,omitempty"`
	OtherFile string `json:"other_file,omitempty"`
	// Error says why the pair is misplaced or unreadable.
	Error string `json:"error,omitempty"`
	// ByPlace is the shift that the places on the ground say, nil if they differ by more than a shift.
	ByPlace *PixelShift `json:"by_place,omitempty"`

	err error
}

// Err returns why the pair is reported.
func (p *Pair) Err() error { return p.err }

// PixelShift is where the content of the other raster lies in comparison with the first raster's, pixel by pixel as
// batches have them, in pixels of the coarser one.
type PixelShift struct {
	Y float64 `json:"y"` // downwards
	X float64 `json:"x"` // to the right
}

// order sorts pairs: those that share no place or cannot be read first, then by length, then by row and field.
func order(a, b Pair) int {
	score := func(p *Pair) float64 {
		if s := p.ByPlace; s != nil {
			return math.Hypot(s.Y, s.X)
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(score(&b), score(&a)), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Other, b.Other))
}

// Pairs compares the rasters of each sample with the sample's first raster by their places on the ground, as headers
// or the catalog say them. Fields with the spec's Ground "ignore" are left out. It reads the rows that the conditions
// and the split leave.
// A spec without fields gets the fields of the dataset.
func Pairs(ctx context.Context, sp spec.Spec, o resources.Options, po PairOptions) (r *PairReport, err error) {
	if sp.AllFields = sp.AllFields || len(sp.Fields) == 0; sp.AllFields {
		o = o.WithDefaults()
		if sp, err = rows.WithOwnFields(ctx, sp.WithDefaults(), o); err != nil {
			o.CloseOpener()
			return nil, err
		}
	}
	err = withTable(ctx, "pairs", sp, o, func(sp spec.Spec, o resources.Options, t rows.Table) error {
		r, err = comparePairs(ctx, sp, o, t, po)
		return err
	})
	return r, err
}

// pairing is one pass of Pairs, shared by its workers.
type pairing struct {
	options resources.Options
	pairs   PairOptions
	table   rows.Table
	fields  []spec.Field
	columns []int // of the fields to compare, the first raster field first

	mu     sync.Mutex // guards report
	report PairReport
}

func comparePairs(ctx context.Context, sp spec.Spec, o resources.Options, t rows.Table,
	po PairOptions) (*PairReport, error) {
	selected, err := rows.Selected(ctx, t, sp.Root(), o)
	if err != nil {
		return nil, err
	}
	p := &pairing{options: o, pairs: po, table: t, fields: sp.Fields}
	p.pairs.Worst = cmp.Or(po.Worst, 20)
	if p.columns, err = pairColumns(t, sp); err != nil {
		return nil, err
	}
	first, err := rows.FirstOf(ctx, t, p.fields, p.columns, spec.BadSkip, selected)
	if err != nil {
		return nil, err
	}
	remote := slices.ContainsFunc(first, func(a catalog.Asset) bool { return source.IsRemote(a.URI) })
	visits := func(*pixels.Reader) func(context.Context, int64) error {
		return func(ctx context.Context, i int64) error {
			if selected != nil {
				i = int64(selected[i])
			}
			return p.sample(ctx, i)
		}
	}
	p.report.Samples = chosen(t, selected)
	if err := pixels.Sweep(ctx, o, remote, p.report.Samples, po.Progress, visits); err != nil {
		return nil, err
	}
	p.report.cut(p.pairs.Worst)
	return &p.report, nil
}

// pairColumns returns the columns of the fields to compare, the first raster field first.
func pairColumns(t rows.Table, sp spec.Spec) ([]int, error) {
	if err := rows.Single(t, sp.Fields, "pairs"); err != nil {
		return nil, err
	}
	columns, err := rasterColumns(t, sp)
	if err != nil {
		return nil, err
	}
	if len(columns) > 1 {
		columns = append(columns[:1], slices.DeleteFunc(columns[1:], func(i int) bool {
			return sp.Fields[i].Ground == spec.IgnoreGround || !together(t, columns[0], i)
		})...)
	}
	if len(columns) < 2 {
		return nil, errors.New("pairs need two raster fields of a sample, such as an image and its mask")
	}
	return columns, nil
}

// together reports whether a dataset has rasters of two fields in its rows: of several datasets of scenes some have
// rasters of one only.
func together(t rows.Table, a, b int) bool {
	datasets := t.Extras().Joined
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

// cut keeps the worst n pairs.
func (r *PairReport) cut(n int) {
	slices.SortFunc(r.Worst, order)
	r.Worst = r.Worst[:min(len(r.Worst), n)]
}

// count adds the result of a pair to the report.
func (p *pairing) count(pair *Pair, placed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := &p.report
	report.Pairs++
	switch pair.Verdict {
	case Unreadable:
		report.Unreadable++
	case Misplaced:
		report.Misplaced++
	}
	if !placed && pair.Verdict != Unreadable {
		report.Unplaced++
	}
	if pair.Verdict == "" {
		return
	}
	// Twice as many before sorting, so that sorting costs little per pair.
	if report.Worst = append(report.Worst, *pair); len(report.Worst) >= 2*p.pairs.Worst {
		p.report.cut(p.pairs.Worst)
	}
}

// sample compares the rasters of a sample.
func (p *pairing) sample(ctx context.Context, row int64) error {
	for _, column := range p.columns[1:] {
		if rows.Lacks(p.table, p.columns[0], row) || rows.Lacks(p.table, column, row) {
			continue
		}
		pair := Pair{Row: row, First: p.fields[p.columns[0]].Name, Other: p.fields[column].Name}
		pair.ID, _ = p.table.ID(ctx, row) // without an id, the row names it
		placed, err := p.pair(ctx, &pair, column)
		if err != nil && fault.KindOf(err) == 0 {
			return err
		}
		if err != nil {
			pair.Verdict, pair.err = Unreadable, err
		}
		if pair.err != nil {
			pair.Error = fault.Line(pair.err)
		}
		p.count(&pair, placed)
	}
	return nil
}

// pair compares two rasters of a sample.
func (p *pairing) pair(ctx context.Context, pair *Pair, column int) (placed bool, _ error) {
	first, err := p.table.Asset(ctx, p.columns[0], pair.Row)
	if err != nil {
		return false, err
	}
	other, err := p.table.Asset(ctx, column, pair.Row)
	if err != nil {
		return false, err
	}
	pair.FirstFile, pair.OtherFile = first.Name(), other.Name()
	a, b := first.Index, other.Index
	err = catalog.SameGround(&first, &other)
	if err != nil {
		if y, x, ok := catalog.Offset(&first, &other, min(a.Height, b.Height), min(a.Width, b.Width)); ok {
			// A raster that lies further east has its content further left than it should be.
			pair.ByPlace = &PixelShift{Y: -y, X: -x}
		}
	} else {
		_, err = pixels.NewRatio(a, b)
	}
	if err != nil {
		pair.Verdict, pair.err = Misplaced, other.Fault(err)
	}
	return first.Place != nil && other.Place != nil, nil
}
