package shuffle

import (
	"cmp"
	"fmt"
)

// Kind is a kind of sampler: WholeChip, RandomWindow, WeightedWindow, *Grid, *Resized, *Visits, *Ground or, of views,
// *Beside.
type Kind interface {
	// compile checks the kind, sets the samples of a dataset, and returns the sides of its windows.
	compile(lf *leafDataset) (height, width int, err error)
	// window returns what Plan.Window does. The draw is a copy, so it stays off the heap.
	window(lf *leafDataset, d Draw, height, width int, w *Weights) (b Box, flagged bool)
}

// Counted is a Kind whose windows, or visits, follow from the size of an item: Sampler.Runs says how many.
type Counted interface {
	Kind
	Count(height, width int) int64
}

// Sampler says which samples an item has, and which window of it a sample is.
type Sampler struct {
	Kind Kind // nil for WholeChip
	// PerItem is the samples of an item, for RandomWindow, Resized and WeightedWindow. Default 1.
	PerItem int64
	// H and W are the window's size in pixels, for RandomWindow and WeightedWindow.
	H, W int
	// Sides, if there are any, are the sides of square windows in place of H and W, for RandomWindow, Resized and
	// WeightedWindow. Each global batch has one of them.
	Sides []int
	// The corner is a multiple of AlignY and AlignX, for RandomWindow and WeightedWindow. Default 1.
	AlignY, AlignX int

	// Runs holds, with Grid, the number of windows of every item (Grid.Count of its size, or as many as Windows has of
	// it), and with Visits the number of its visits (Visits.Count, or any other number above 0).
	Runs Runs
	// Windows, with Grid, are the numbers of the windows that count of all items, in their order; nil for all.
	Windows []uint32
	// MaxNoData is the largest share of a RandomWindow that may have no data, by its weights: see Weights.Covered. nil
	// for any.
	MaxNoData *float64
}

// crop returns the Crop of a draw.
func (s *Sampler) crop(d *Draw, height, width int) Crop {
	return Crop{
		Seed: d.Seed, Epoch: d.Epoch, Position: d.Position, Height: height, Width: width,
		H: cmp.Or(d.Side, s.H), W: cmp.Or(d.Side, s.W), AlignY: s.AlignY, AlignX: s.AlignX,
	}
}

// WholeChip reads all of an item: one sample each.
type WholeChip struct{}

// compile has square windows: only the reader knows sizes.
func (WholeChip) compile(lf *leafDataset) (height, width int, err error) { return 1, 1, lf.each(1) }

func (WholeChip) window(_ *leafDataset, _ Draw, height, width int, _ *Weights) (Box, bool) {
	return Box{H: height, W: width}, false
}

// RandomWindow reads PerItem windows of a fixed size from each item; all corners are equally likely.
type RandomWindow struct{}

func (RandomWindow) compile(lf *leafDataset) (height, width int, err error) {
	s := &lf.Sampler
	if !sides(s.H, s.W, s.AlignY, s.AlignX) {
		return s.H, s.W, fmt.Errorf("windows of %d by %d pixels, aligned to %d by %d", s.H, s.W, s.AlignY, s.AlignX)
	}
	return s.H, s.W, lf.each(s.PerItem)
}

func (RandomWindow) window(lf *leafDataset, d Draw, height, width int, w *Weights) (Box, bool) {
	crop, limit := lf.Sampler.crop(&d, height, width), lf.Sampler.MaxNoData
	if w != nil && limit != nil {
		return w.Covered(crop, *limit), false
	}
	return Window(crop), false
}

// WeightedWindow reads PerItem windows centred on pixels drawn by weight. See Weights.
type WeightedWindow struct{ RandomWindow }

func (WeightedWindow) window(lf *leafDataset, d Draw, height, width int, w *Weights) (Box, bool) {
	if w == nil {
		w = &Weights{}
	}
	b, weighted := w.Window(lf.Sampler.crop(&d, height, width))
	return b, !weighted
}
