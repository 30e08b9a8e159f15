package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats/shift"
	"github.com/chaski-eo/chaski/store/catalog"
)

// PairOptions say what Pairs reports.
type PairOptions struct {
	// MaxShift is the longest shift that is not reported, in pixels of the coarser raster. Default 1.5: most shifts
	// are estimated to within a pixel.
	MaxShift float64
	// Worst is how many pairs are listed. Default 20.
	Worst int
	// Picture, if not nil, is called for each listed pair that could be compared by its pixels, in the order of the
	// list, with these pixels.
	Picture func(p *Pair, first, other *shift.Raster) error
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
	// Shifted pairs lie apart by more than MaxShift, as their pixels say. Aligned pairs do not. Of Unsure pairs the
	// pixels do not tell, or not exactly enough.
	Shifted int64 `json:"shifted"`
	Aligned int64 `json:"aligned"`
	Unsure  int64 `json:"unsure"`
	// Unreadable pairs have a raster that cannot be read.
	Unreadable int64 `json:"unreadable"`
	// Worst lists pairs that are misplaced, shifted or unreadable, those with the longest shifts first.
	Worst []Pair `json:"worst"`
}

// Verdicts about a pair. One that is misplaced may be shifted, too.
const (
	Misplaced  = "misplaced"
	Shifted    = "shifted"
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
	// ByPixels is the shift that the pixels say, nil if they do not tell.
	ByPixels *PixelShift `json:"by_pixels,omitempty"`
	// Picture is the file that shows the pair. The caller of Pairs sets it.
	Picture string `json:"picture,omitempty"`

	err error
}

// Err returns why the pair is reported.
func (p *Pair) Err() error { return p.err }

// PixelShift is where the content of the other raster lies in comparison with the first raster's, pixel by pixel as
// batches have them, in pixels of the coarser one.
type PixelShift struct {
	Y float64 `json:"y"` // downwards
	X float64 `json:"x"` // to the right
	// Radius is the standard error of the shift, in pixels; 0 if places say the shift.
	Radius float64 `json:"radius"`
	// Confidence is the confidence of shift.Shift; 1 if places say so.
	Confidence float64 `json:"confidence"`
}

// length returns the length of the longest shift of a pair.
func (p *Pair) length() float64 {
	farthest := 0.0
	for _, s := range []*PixelShift{p.ByPlace, p.ByPixels} {
		if s != nil {
			farthest = max(farthest, math.Hypot(s.Y, s.X))
		}
	}
	return farthest
}

// order sorts pairs: those that share no place or cannot be read first, then by length, then by row and field.
func order(a, b Pair) int {
	score := func(p *Pair) float64 {
		if l := p.length(); l > 0 {
			return l
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(score(&b), score(&a)), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Other, b.Other))
}

// Pairs compares the rasters of each sample with the sample's first raster: their places on the ground, and, unless
// they are in different CRSs or of different extents, their pixels, which reveal a shift that the headers do not.
// Fields with the spec's Ground "ignore" are left out. It reads the rows that the conditions and the split leave.
func Pairs(ctx context.Context, sp spec.Spec, o resources.Options, po PairOptions) (r *PairReport, err error) {
	err = withPairs(ctx, sp, o, func(sp spec.Spec, o resources.Options, t rows.Table, selected []uint32) error {
		r, err = comparePairs(ctx, sp, o, t, selected, 0, chosen(t, selected), po)
		return err
	})
	return r, err
}

// withPairs calls do with the open table of a spec, as withTable does, and its selected rows. A spec without fields
// gets the fields of the dataset.
func withPairs(ctx context.Context, sp spec.Spec, o resources.Options,
	do func(sp spec.Spec, o resources.Options, t rows.Table, selected []uint32) error) (err error) {
	if sp.AllFields = sp.AllFields || len(sp.Fields) == 0; sp.AllFields {
		o = o.WithDefaults()
		if sp, err = rows.WithOwnFields(ctx, sp.WithDefaults(), o); err != nil {
			o.CloseOpener()
			return err
		}
	}
	return withTable(ctx, "pairs", sp, o, func(sp spec.Spec, o resources.Options, t rows.Table) error {
		selected, err := rows.Selected(ctx, t, sp.Root(), o)
		if err != nil {
			return err
		}
		return do(sp, o, t, selected)
	})
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

func comparePairs(ctx context.Context, sp spec.Spec, o resources.Options, t rows.Table, selected []uint32,
	from, n int64, po PairOptions) (*PairReport, error) {
	p := &pairing{options: o, pairs: po, table: t, fields: sp.Fields}
	p.pairs.MaxShift, p.pairs.Worst = cmp.Or(po.MaxShift, 1.5), cmp.Or(po.Worst, 20)
	var err error
	if p.columns, err = pairColumns(t, sp); err != nil {
		return nil, err
	}
	first, err := rows.FirstOf(ctx, t, p.fields, p.columns, spec.BadSkip, selected)
	if err != nil {
		return nil, err
	}
	remote := slices.ContainsFunc(first, func(a catalog.Asset) bool { return source.IsRemote(a.URI) })
	visits := func(r *pixels.Reader) func(context.Context, int64) error {
		w := &pairWorker{pairing: p, reader: r}
		return func(ctx context.Context, i int64) error {
			i += from
			if selected != nil {
				i = int64(selected[i])
			}
			return w.sample(ctx, i)
		}
	}
	if err := pixels.Sweep(ctx, o, remote, n, po.Progress, visits); err != nil {
		return nil, err
	}
	p.report.Samples = n
	p.report.cut(p.pairs.Worst)
	if po.Picture != nil {
		err = p.pictures(ctx)
	}
	return &p.report, err
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

// pictures calls Picture for the listed pairs.
func (p *pairing) pictures(ctx context.Context) error {
	w := &pairWorker{pairing: p, reader: pixels.NewReader(p.options)}
	for i := range p.report.Worst {
		pair := &p.report.Worst[i]
		other := slices.IndexFunc(p.columns, func(c int) bool { return p.fields[c].Name == pair.Other })
		asset, b, err := w.assets(ctx, pair.Row, p.columns[other])
		if err != nil {
			continue // the pair is listed because of this
		}
		grid, ok := commonGrid(asset.Index, b.Index)
		if !ok {
			continue
		}
		first, second, err := w.window(ctx, asset, b, grid, grid.middle())
		if fault.KindOf(err) != 0 {
			continue
		}
		if err == nil {
			err = p.pairs.Picture(pair, first, second)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cut keeps the worst n pairs.
func (r *PairReport) cut(n int) {
	slices.SortFunc(r.Worst, order)
	r.Worst = r.Worst[:min(len(r.Worst), n)]
}

// count adds the result of a pair to the report.
func (p *pairing) count(pair *Pair, placed, sure bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := &p.report
	report.Pairs++
	if pair.Verdict == Unreadable {
		report.Unreadable++
	} else {
		if !placed {
			report.Unplaced++
		}
		if pair.Verdict == Misplaced {
			report.Misplaced++
		}
		switch {
		case !sure:
			report.Unsure++
		case pair.ByPixels.longer(p.pairs.MaxShift):
			report.Shifted++
		default:
			report.Aligned++
		}
	}
	if pair.Verdict == "" {
		return
	}
	// Twice as many before sorting, so that sorting costs little per pair.
	if report.Worst = append(report.Worst, *pair); len(report.Worst) >= 2*p.pairs.Worst {
		p.report.cut(p.pairs.Worst)
	}
}

func (s *PixelShift) longer(than float64) bool { return s != nil && math.Hypot(s.Y, s.X) > than }

// pairWorker compares samples, one at a time.
type pairWorker struct {
	*pairing
	reader    *pixels.Reader
	estimator shift.Estimator
}

// assets returns the first raster of a sample and another one.
func (w *pairWorker) assets(ctx context.Context, row int64, column int) (a, b catalog.Asset, err error) {
	if a, err = w.table.Asset(ctx, w.columns[0], row); err == nil {
		b, err = w.table.Asset(ctx, column, row)
	}
	return a, b, err
}

// sample compares the rasters of a sample.
func (w *pairWorker) sample(ctx context.Context, row int64) error {
	for _, column := range w.columns[1:] {
		if rows.Lacks(w.table, w.columns[0], row) || rows.Lacks(w.table, column, row) {
			continue
		}
		pair := Pair{Row: row, First: w.fields[w.columns[0]].Name, Other: w.fields[column].Name}
		pair.ID, _ = w.table.ID(ctx, row) // without an id, the row names it
		placed, sure, err := w.pair(ctx, &pair, column)
		if err != nil && fault.KindOf(err) == 0 {
			return err
		}
		if err != nil {
			pair.Verdict, pair.err = Unreadable, err
		}
		if pair.err != nil {
			pair.Error = fault.Line(pair.err)
		}
		w.count(&pair, placed, sure)
	}
	return nil
}

// pair compares two rasters of a sample.
func (w *pairWorker) pair(ctx context.Context, pair *Pair, column int) (placed, sure bool, _ error) {
	asset, b, err := w.assets(ctx, pair.Row, column)
	if err != nil {
		return false, false, err
	}
	pair.FirstFile, pair.OtherFile = asset.Name(), b.Name()
	placed = asset.Place != nil && b.Place != nil
	g, grid := commonGrid(asset.Index, b.Index)
	if err := catalog.SameGround(&asset, &b); err != nil {
		pair.Verdict, pair.err = Misplaced, b.Fault(err)
		if y, x, ok := catalog.Offset(&asset, &b, g.h, g.w); ok {
			// A raster that lies further east has its content further left than it should be.
			pair.ByPlace = &PixelShift{Y: -y, X: -x, Confidence: 1}
		} else {
			return placed, false, nil // pixels of rasters that lie elsewhere, or in another CRS, say nothing
		}
	}
	if !grid {
		if pair.Verdict == "" {
			_, err := pixels.NewRatio(asset.Index, b.Index)
			pair.Verdict, pair.err = Misplaced, b.Fault(err)
		}
		return placed, false, nil
	}
	s, err := w.estimate(ctx, asset, b, g)
	verdict := s.Verdict(w.pairs.MaxShift)
	if err != nil || verdict == shift.Unsure {
		return placed, false, err
	}
	pair.ByPixels = &PixelShift{Y: s.Y, X: s.X, Radius: s.Radius, Confidence: s.Confidence}
	if pair.Verdict == "" && verdict == shift.Shifted {
		pair.Verdict = Shifted
		pair.err = b.Fault(fault.New(fault.Misplaced, "pixels", fault.NoOffset,
			"what it shows lies %s of what %s shows (confidence %.2f)", pair.ByPixels, asset.Name(), s.Confidence))
	}
	return placed, true, nil
}

// String returns the shift in words, such as "64.0 pixels right".
func (s *PixelShift) String() string {
	word := func(v float64, more, less string) string {
		if v < 0 {
			more = less
		}
		return fmt.Sprintf("%.1f pixels %s", math.Abs(v), more)
	}
	down, right := word(s.Y, "below", "above"), word(s.X, "right", "left")
	switch {
	case math.Abs(s.Y) < 0.5 && math.Abs(s.X) >= 0.5:
		return right
	case math.Abs(s.X) < 0.5:
		return down
	}
	return down + " and " + right
}

// estimate estimates the shift of b from the middle of both or, where that does not tell, from their quarters.
func (w *pairWorker) estimate(ctx context.Context, a, b catalog.Asset, g grid) (s shift.Shift, err error) {
	for _, place := range g.places() {
		first, other, err := w.window(ctx, a, b, g, place)
		if err != nil {
			return s, err
		}
		if s = w.estimator.Estimate(first, other); s.Verdict(w.pairs.MaxShift) != shift.Unsure {
			break
		}
	}
	return s, nil
}
