package shuffle

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Spec is the input of Compile: a source, a seed, and whether samples are shuffled.
type Spec struct {
	Seed uint64
	// Shuffle permutes the samples of every epoch. Without it they come in the order of the dataset.
	// Windows and transforms are random in both cases.
	Shuffle bool
	Source  Source
	// Batch is the number of positions of a global batch. Sampler.Sides and Drops need it.
	Batch int64
	// Drops says that an epoch ends with its last whole batch. Plan.Weigh alone looks at it.
	Drops bool
	// Take replaces the number of positions of an epoch; 0 keeps the source's own. Draws go on from
	// one epoch to the next, so the source gives every sample once before it repeats one. Over a
	// mixture with Batch or Block it must be a whole number of these.
	Take int64
}

// Source is a dataset or a mixture of sources: one of the two.
type Source struct {
	Name    string // in errors; default: its number
	Dataset *Dataset
	Mixture *Mixture
}

// Dataset is items and how they are sampled.
type Dataset struct {
	// Items is the number of rows of the table. With Rows or Series it bounds them.
	Items int64
	// Rows are the rows that count, in order; nil for all. With Series it must be nil: a series is
	// made from rows.
	Rows Rows
	// Series makes sequences of rows the items; nil for single rows.
	Series *Series
	// Sampler says which windows of an item there are.
	Sampler Sampler
	// Blocks are the samples that are read together; nil for a permutation of all. Visits are blocks of their own, and
	// windows of Ground have none.
	Blocks *Blocks
	// Views are the samplers of further windows of each sample: WholeChip, RandomWindow or Resized, Visits beside
	// Visits of the same tiles, and Beside beside Ground, alone. Each has a seed of its own, and so depends neither on
	// the number of the others nor on their sizes. See Plan.View.
	Views []Sampler
	// Transforms is the set that a sample's transform is drawn from; 0 for none. Those that swap rows with
	// columns need square windows: whole chips are the reader's to check.
	Transforms Elements
}

// Len returns the number of items that are sampled.
func (d *Dataset) Len() int64 {
	if d.Series != nil {
		return d.Series.Len()
	}
	return d.Rows.Len(d.Items)
}

// Row returns the row of the table that an item is, or the first row of a sequence.
func (d *Dataset) Row(item int64) int64 {
	if d.Series != nil {
		return d.Series.First(item)
	}
	return d.Rows.At(item)
}

// Draw is the sample at a position, and its dataset.
type Draw struct {
	// Dataset is the number of the dataset in the spec, counted from left to right.
	Dataset int `json:"dataset"`
	// Seed, Epoch and Position belong to the dataset: windows and transforms are drawn from them.
	Seed     uint64 `json:"seed"`
	Epoch    uint64 `json:"epoch"`
	Position int64  `json:"position"`
	// Sample is the number of the sample in the dataset.
	Sample int64 `json:"sample"`
	// Item is the row, the index in Rows, or the sequence. Row is the row of the table; for a sequence
	// its first row. See Plan.Row.
	Item int64 `json:"item"`
	Row  int64 `json:"row"`
	// Sub says which of the item's windows it is: its number, or with Visits its visit. With
	// Ground it is 0, and Item and Row are the row of the window's first scene.
	Sub int64 `json:"sub"`
	// Corner is y and x of a window that was asked for, in place of the drawn one (Ticket.Corners), or nil.
	Corner *[2]int `json:"corner,omitempty"`
	// Side is the one of Sampler.Sides that the global batch has; 0 for H and W.
	Side int `json:"side,omitempty"`
	// View is the number of the window in a sample with several; 0 for the first, and for the only one.
	View int `json:"view,omitempty"`
	// Transform is applied to every field after its window is read.
	Transform Element `json:"transform"`
	// Attempt is 0, or how many samples before this one were bad. See Plan.Substitute.
	Attempt int `json:"attempt"`
}

// Plan is a compiled spec: it says which sample stands at any position, and which window of it. Its
// methods are pure, take O(log rows) time at most and allocate nothing. It holds the slices of the
// spec and 40 kB per mixture. It may be used from many goroutines.
type Plan struct {
	shuffle bool
	seed    uint64
	batch   int64 // positions of a global batch, or 0
	drops   bool  // the positions behind the last whole batch never come
	take    int64 // positions of an epoch, or 0
	nodes   []node
	leaves  []leafDataset
}

// node is a source: a mixture if word is not nil, and dataset number leaf otherwise.
type node struct {
	n    int64 // positions of an epoch
	word *mixtureWord
	leaf int
}

// leafDataset is a compiled dataset.
type leafDataset struct {
	Dataset
	seed uint64
	runs Runs // samples of items; with Visits visits
	n    int64
}

// NewPlan compiles a spec. The spec's slices are kept and must not be changed.
func NewPlan(s Spec) (*Plan, error) {
	pl := &Plan{shuffle: s.Shuffle, seed: s.Seed, batch: s.Batch, drops: s.Drops && s.Batch > 0}
	if _, err := pl.add(s.Source, s.Seed, 0); err != nil {
		return nil, err
	}
	top := &pl.nodes[0]
	switch {
	case s.Take < 0 || s.Take > MaxSamples:
		return nil, fmt.Errorf("an epoch of %d positions", s.Take)
	case s.Take > 0 && top.n == 0:
		return nil, errors.New("positions of a source without samples")
	case s.Take > 0 && top.word != nil && s.Take%top.word.unit() != 0:
		return nil, fmt.Errorf("take is %d: it must be a whole number of batches of %d", s.Take, top.word.unit())
	}
	pl.take = s.Take
	for i := range pl.leaves {
		sampler := &pl.leaves[i].Sampler
		if len(sampler.Sides) > 0 && (s.Batch < 1 || !sides(sampler.Sides...)) {
			return nil, fmt.Errorf("sampler: windows of sides %v in batches of %d", sampler.Sides, s.Batch)
		}
	}
	return pl, nil
}

// add compiles a source, with depth mixtures around it, and the sources in it, and returns its node.
func (pl *Plan) add(s Source, seed uint64, depth int) (int, error) {
	number := len(pl.nodes)
	pl.nodes = append(pl.nodes, node{})
	var nd node
	var err error
	switch {
	case depth > steps.MaxDepth:
		err = fmt.Errorf("mixtures in mixtures over %d deep", steps.MaxDepth)
	case s.Dataset != nil && s.Mixture == nil:
		nd, err = pl.addDataset(s.Dataset, seed)
	case s.Mixture != nil && s.Dataset == nil:
		nd, err = pl.addMixture(s.Mixture, seed, depth)
	default:
		err = errors.New("a source is either a dataset or a mixture")
	}
	pl.nodes[number] = nd
	return number, err
}

func (pl *Plan) addMixture(m *Mixture, seed uint64, depth int) (node, error) {
	if len(m.Sources) == 0 || len(m.Sources) != len(m.Counts) {
		return node{}, fmt.Errorf("mixture: %d counts for %d sources", len(m.Counts), len(m.Sources))
	}
	word, err := newWord(seed, m)
	if err != nil {
		return node{}, err
	}
	sizes := make([]int64, len(m.Sources))
	for i, source := range m.Sources {
		if err := m.checkSource(i); err != nil {
			return node{}, err
		}
		child, err := pl.add(source, splitmix.Hash(seed, domainSource, uint64(i)), depth+1)
		if err != nil {
			return node{}, fmt.Errorf("source %d: %w", i, err)
		}
		word.nodes = append(word.nodes, child)
		sizes[i] = pl.nodes[child].n
	}
	positions, err := word.epoch(m, sizes)
	return node{n: positions, word: word}, err
}

func (pl *Plan) addDataset(d *Dataset, seed uint64) (node, error) {
	lf := leafDataset{Dataset: *d, seed: seed}
	if err := lf.compile(); err != nil {
		return node{}, err
	}
	pl.leaves = append(pl.leaves, lf)
	return node{n: lf.n, leaf: len(pl.leaves) - 1}, nil
}

func (lf *leafDataset) compile() error {
	if err := lf.checkItems(); err != nil {
		return err
	}
	sampler := &lf.Sampler
	sampler.AlignY, sampler.AlignX, sampler.PerItem = max(sampler.AlignY, 1), max(sampler.AlignX, 1),
		max(sampler.PerItem, 1)
	if sampler.Kind == nil {
		sampler.Kind = WholeChip{}
	}
	if lf.Blocks != nil {
		if !blocked(sampler.Kind) {
			return errors.New("blocks: windows tile by tile and on the ground have an order of their own")
		}
		if err := lf.Blocks.check(); err != nil {
			return err
		}
	}
	height, width, err := sampler.Kind.compile(lf)
	switch {
	case err != nil:
		return fmt.Errorf("sampler: %w", err)
	case lf.runs.Items() != lf.Len():
		return fmt.Errorf("sampler: windows of %d items, for %d", lf.runs.Items(), lf.Len())
	case height != width && lf.Transforms.Swaps():
		return fmt.Errorf("sampler: windows of %d by %d pixels are not square, and a transform swaps their sides",
			height, width)
	}
	return lf.compileViews()
}

// compileViews checks the samplers of further views.
func (lf *leafDataset) compileViews() error {
	for i := range lf.Views {
		view := leafDataset{Dataset: Dataset{Items: 1, Sampler: lf.Views[i], Transforms: lf.Transforms}}
		view.Sampler.Runs, _ = EqualRuns(1, 1) // for Visits
		if err := view.compile(); err != nil {
			return fmt.Errorf("view %d: %w", i+1, err)
		}
		if lf.Views[i] = view.Sampler; !lf.shows(view.Sampler.Kind) {
			return fmt.Errorf("view %d: %T beside %T", i+1, view.Sampler.Kind, lf.Sampler.Kind)
		}
	}
	return nil
}

// blocked reports whether samples of a kind may come in blocks.
func blocked(k Kind) bool {
	switch k.(type) {
	case *Visits, *Ground, *Beside:
		return false
	}
	return true
}

// shows reports whether a view may be of a kind.
func (lf *leafDataset) shows(view Kind) bool {
	switch view := view.(type) {
	case WholeChip, RandomWindow, *Resized:
		_, ground := lf.Sampler.Kind.(*Ground)
		return !ground
	case *Visits:
		first, ok := lf.Sampler.Kind.(*Visits)
		return ok && first.TileH == view.TileH && first.TileW == view.TileW && first.AlignY == view.AlignY &&
			first.AlignX == view.AlignX
	case *Beside:
		first, ok := lf.Sampler.Kind.(*Ground)
		return ok && view.Side <= first.Side
	}
	return false
}

// each gives all items as many samples.
func (lf *leafDataset) each(samples int64) (err error) {
	lf.runs, err = EqualRuns(lf.Len(), samples)
	lf.n = lf.runs.Len()
	return err
}

func (lf *leafDataset) checkItems() error {
	if lf.Items < 0 || lf.Rows != nil && lf.Series != nil {
		return fmt.Errorf("dataset of %d rows, or with a subset beside its series", lf.Items)
	}
	rows := lf.Rows
	if lf.Series != nil {
		rows = lf.Series.rows
	}
	for _, row := range rows {
		if int64(row) >= lf.Items {
			return fmt.Errorf("dataset: row %d of %d", row, lf.Items)
		}
	}
	return nil
}

// Len returns N, the positions of an epoch: the same for all.
func (pl *Plan) Len() int64 { return cmp.Or(pl.take, pl.nodes[0].n) }

// LastEpoch returns the last epoch that may be drawn. Numbers of draws have 64 bits: where they wrap, batches with
// exact shares, and batches of one source, would be cut elsewhere.
func (pl *Plan) LastEpoch() uint64 {
	if top := &pl.nodes[0]; top.word == nil || top.word.unit() == 0 {
		return math.MaxUint64
	}
	return math.MaxUint64/uint64(max(pl.Len(), 1)) - 1
}

// DatasetLen returns the samples of an epoch of a dataset.
func (pl *Plan) DatasetLen(dataset int) int64 { return pl.leaves[dataset].n }

// At returns what stands at position p of an epoch. It panics unless 0 <= p < Len().
func (pl *Plan) At(epoch uint64, p int64) Draw { return pl.at(epoch, p, -1) }

// at is At, with another sample unless that is negative.
func (pl *Plan) at(epoch uint64, p, sample int64) Draw {
	draw := pl.locate(epoch, p)
	lf := &pl.leaves[draw.Dataset]
	switch {
	case sample >= 0:
		draw.Sample = sample
	case lf.Blocks != nil:
		draw.Sample = lf.Blocks.at(draw.Seed, draw.Epoch, lf.n, draw.Position, pl.shuffle)
	default:
		order := NewOrder(draw.Seed, draw.Epoch, lf.n, pl.shuffle)
		draw.Sample = order.At(draw.Position)
	}
	lf.fill(&draw)
	if sides := lf.Sampler.Sides; len(sides) > 0 {
		// By the seed, the epoch and the batch of the run, so all datasets and ranks draw the same one.
		draw.Side = sides[splitmix.Below(splitmix.Hash(pl.seed, domainSide, epoch, uint64(p/pl.batch)), len(sides))]
	}
	return draw
}

// Draw returns what stands in row k of a ticket's batch. Windows of positions that a ticket names have H and W, since
// they may be of several batches. It panics where At does, also for rows of padding.
func (pl *Plan) Draw(t steps.Ticket, k int) Draw {
	sample := int64(-1)
	if len(t.Samples) > 0 {
		sample = t.Samples[k]
	}
	draw := pl.at(t.Epoch, t.Position(k, pl.Len()), sample)
	if len(t.Positions) > 0 {
		draw.Side = 0
	}
	if len(t.Corners) > 0 {
		draw.Corner = &[2]int{int(t.Corners[2*k]), int(t.Corners[2*k+1])}
	}
	return draw
}

// locate walks through the mixtures to a dataset, its epoch and its position.
func (pl *Plan) locate(epoch uint64, p int64) Draw {
	if p < 0 || p >= pl.Len() {
		panic("shuffle: position outside the epoch")
	}
	nd := &pl.nodes[0]
	if pl.take > 0 {
		// The product may wrap at 2^64, which docs/order.md allows, but for those whom LastEpoch stops.
		draw := epoch*uint64(pl.take) + uint64(p)
		epoch, p = draw/uint64(nd.n), int64(draw%uint64(nd.n))
	}
	for nd.word != nil {
		source, draw := nd.word.at(epoch, p)
		nd = &pl.nodes[nd.word.nodes[source]]
		epoch, p = draw/uint64(nd.n), int64(draw%uint64(nd.n))
	}
	return Draw{Dataset: nd.leaf, Seed: pl.leaves[nd.leaf].seed, Epoch: epoch, Position: p}
}

// fill sets the fields that follow from the sample.
func (lf *leafDataset) fill(d *Draw) {
	if ground, ok := lf.Sampler.Kind.(*Ground); ok {
		d.Row = ground.Scene(ground.place(d))
		d.Item = d.Row
		d.Transform = lf.Transforms.At(d.Seed, d.Epoch, d.Position)
		return
	}
	unit := d.Sample
	if visits, ok := lf.Sampler.Kind.(*Visits); ok {
		unit /= int64(visits.PerVisit)
	}
	d.Item, d.Sub = lf.runs.At(unit)
	if windows := lf.Sampler.Windows; windows != nil {
		d.Sub = int64(windows[unit])
	}
	d.Row = lf.Row(d.Item)
	d.Transform = lf.Transforms.At(d.Seed, d.Epoch, d.Position)
}

// MaxAttempts bounds the substitutes of one position. With half of all samples bad, one position in
// 65,536 (2^16) still finds no good one.
const MaxAttempts = 16

// Substitute returns the draw that replaces one whose sample is bad: a sample of the same dataset,
// each equally likely, with a window and a transform of its own. It depends only on the dataset, epoch
// and position of the draw, and on attempt. It panics if attempt is not in 1..MaxAttempts.
func (pl *Plan) Substitute(d Draw, attempt int) Draw {
	if attempt < 1 || attempt > MaxAttempts {
		panic("shuffle: attempt is not in 1..MaxAttempts")
	}
	lf := &pl.leaves[d.Dataset]
	d.Attempt = attempt
	// The seed is the dataset's, not the draw's: attempt 2 is independent of attempt 1, and any
	// server can compute it alone.
	d.Seed = splitmix.Hash(lf.seed, domainSubstitute, d.Epoch, uint64(d.Position), uint64(attempt))
	d.Sample = splitmix.Below64(splitmix.Hash(d.Seed), lf.n)
	lf.fill(&d)
	return d
}

// Row returns the row of a step of a draw, which is 0 or below the length of its sequence: its row, or one of its
// sequence, -1 for padding.
func (pl *Plan) Row(d *Draw, step int) int64 {
	if s := pl.leaves[d.Dataset].Series; s != nil {
		return s.Row(d.Item, step)
	}
	return d.Row
}

// Window returns the window of a draw, before its transform, in an asset of height by width pixels. w
// holds the asset's weights for WeightedWindow, and for RandomWindow its valid pixels if MaxNoData counts.
// flagged reports that they are nil or zero, so the window of WeightedWindow is a plain random one.
func (pl *Plan) Window(d *Draw, height, width int, w *Weights) (b Box, flagged bool) {
	lf := &pl.leaves[d.Dataset]
	if d.View > 0 {
		return lf.view(*d, height, width, 0), false
	}
	return lf.Sampler.Kind.window(lf, *d, height, width, w)
}

// View returns the draw of a view of the sample of a draw, with a transform of its own: view 0 is the draw itself.
func (pl *Plan) View(d *Draw, view int) Draw {
	out := *d
	if view > 0 {
		out.View, out.Side = view, 0
		out.Transform = pl.leaves[d.Dataset].Transforms.At(out.viewSeed(0), d.Epoch, d.Position)
	}
	return out
}

// viewSeed returns the seed of a try of a view's window.
func (d *Draw) viewSeed(try int) uint64 {
	return splitmix.Hash(d.Seed, domainView, uint64(d.View), uint64(try))
}

// view returns the window of a view after the first one.
func (lf *leafDataset) view(d Draw, height, width, try int) Box {
	view := leafDataset{Dataset: Dataset{Sampler: lf.Views[d.View-1]}}
	if visits, ok := view.Sampler.Kind.(*Visits); ok {
		ty, tx := lf.tile(&d, height, width)
		return visits.At(d.viewSeed(try), d.Epoch, d.Sample, ty, tx, height, width)
	}
	d.Seed = d.viewSeed(try)
	b, _ := view.Sampler.Kind.window(&view, d, height, width, nil)
	return b
}
