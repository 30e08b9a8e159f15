package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/shuffle"
)

// Sampler says which window of a sample is read. docs/order.md defines each kind exactly. JSON may write the size of
// random windows alone.
type Sampler struct {
	// Kind is "chip" (default, the whole chip), "random_window", "grid", "resized_window",
	// "weighted_window", "tile_window", "row_window" (boxes that rows hold) or "geo_window" (places on the ground).
	Kind string `json:"kind"`
	// Size is Height and Width in pixels, or the side of a square, in place of these.
	Size *Pair `json:"size,omitempty"`
	// Sizes are the sides of square windows. Each global batch has one of them, the same on all ranks: each as often
	// as it is listed. They are for "random_window", "resized_window" and "weighted_window". Samples that are asked for
	// one by one have the largest.
	Sizes []int `json:"sizes,omitempty"`
	// Height and Width are the sides of the window in pixels of the first raster field, from 1 to
	// 65,536. With "resized_window" and "row_window" they are the sides of the result.
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
	// PerAsset is the number of samples that an epoch takes from each asset. Default 1. It must be
	// 0 with "grid", which takes every window of the grid. With "tile_window" it is the number of
	// visits; default: one for each tile of the asset.
	PerAsset int `json:"per_asset,omitempty"`
	// MaxNoData is the largest share of a window, from 0 to 1, that may have no data, for "chip", "random_window" and
	// "grid": other windows are not in the dataset. It needs Coverage, which says it by cells: exactly for windows of
	// whole cells, and else as if the valid pixels of a cell were spread evenly. Default: 1.
	MaxNoData *float64 `json:"max_nodata,omitempty"`
	// Coverage is the path of the file for MaxNoData, with the valid pixels of each cell, as 'chaski stats --sampling'
	// writes it without classes. The spec hash covers the content of the file, not its path.
	Coverage string `json:"coverage,omitempty" hash:"place"`
	// Views are further windows of each sample, of the kinds "chip", "random_window" and "resized_window", each with a
	// draw of its own and a flip of its own. Behind a "tile_window" they may be one, too, which lies in the tile of the
	// first; behind a "geo_window" all are one, at most as large, and share ground with the first. The rasters are
	// decoded once for all of them. The tensors of raster fields, and of shapes drawn as pixels, get an axis v:
	// "n v b y x", and in time "n v t b y x"; boxes and polygons have a list for each window. If sizes differ there is
	// a tensor for each size, such as "image.224" and "image.96", or "image.224x96". JSON may have a list of windows in
	// place of the sampler.
	Views []Sampler `json:"views,omitempty"`
	// MinOverlap is the least part of its area, from 0 to 1, that one of Views shares with the first window, or of the
	// area of the first window if that is smaller. Default: 0; on the ground at least a pixel.
	MinOverlap float64 `json:"min_overlap,omitempty"`

	GridWindows
	ResizedWindows
	WeightedWindows
	TileWindows
	RowWindows
	GeoWindows
}

// Kinds of samplers without members of their own.
const (
	WholeChip    = "chip"
	RandomWindow = "random_window"
)

// samplerKind is a kind of sampler. Its file has the type of its members, what they are by default and which values
// they may have, and what package shuffle needs of them.
type samplerKind struct {
	name string
	// members returns a pointer to the members of s that only this kind has; nil without such members.
	members func(s *Sampler) any
	// defaults fills in what is not given; nil if zero is the default of all members.
	defaults func(s *Sampler)
	// check checks what the bounds of all numbers do not say; nil if there is nothing.
	check func(s *Sampler) error
	// plan returns the kind of package shuffle, with its members.
	plan func(s *Sampler, alignY, alignX int) shuffle.Kind
	// anySize says that Height and Width may be left out, and mean something else than a window.
	anySize bool
	// sizes says that each batch may have another size.
	sizes bool
	// limited says that MaxNoData leaves windows out.
	limited bool
	// counts says that the sizes of assets decide how many samples an asset has, if PerAsset does not.
	counts bool
	// view says that further windows of a sample may be of this kind.
	view bool
	SamplerTraits
}

// SamplerTraits is what opening and reading know of a kind of sampler, beside its members and its order (package
// shuffle).
type SamplerTraits struct {
	// Whole says that windows are whole chips.
	Whole bool
	// Tiles says that windows are drawn tile by tile, out of tiles that workers share.
	Tiles bool
	// Ground says that windows lie at places on the ground.
	Ground bool
	// DropsWindows says that MaxNoData drops single windows of an asset, and not whole rows.
	DropsWindows bool
	// ByCoverage says that windows are drawn by the valid pixels of Coverage.
	ByCoverage bool
	// NoRaster says that samples need no raster.
	NoRaster bool
	// Corners says that tickets may name the corners of windows of one size.
	Corners bool
	// Resamples says that windows have another size in the tensor.
	Resamples bool
	// Shares says that windows of an asset may need the same chunk, and say which before they are read.
	Shares bool
}

// Traits returns what the kind of the sampler says of it: nothing if it is unknown, which Validate refuses.
func (s *Sampler) Traits() SamplerTraits {
	if kind := s.kind(); kind != nil {
		return kind.SamplerTraits
	}
	return SamplerTraits{}
}

// samplers are the kinds in the order in which they are listed.
var samplers = []samplerKind{
	{name: WholeChip, anySize: true, limited: true, view: true, check: (*Sampler).checkChip,
		plan: fixed(shuffle.WholeChip{}), SamplerTraits: SamplerTraits{Whole: true, NoRaster: true}},
	{name: RandomWindow, sizes: true, limited: true, view: true, plan: fixed(shuffle.RandomWindow{}),
		SamplerTraits: SamplerTraits{NoRaster: true, Corners: true, Shares: true, ByCoverage: true}},
	grid,
	resized,
	weighted,
	tiles,
	byRow,
	ground,
}

// SamplerKinds returns the values of Sampler.Kind.
func SamplerKinds() []string { return kindsThat(func(*samplerKind) bool { return true }) }

// NeedsSize reports whether samplers of a kind must have the size of their windows.
func NeedsSize(kind string) bool {
	return slices.Contains(kindsThat(func(k *samplerKind) bool { return !k.anySize }), kind)
}

// kindsThat returns the kinds for which has is true.
func kindsThat(has func(*samplerKind) bool) (names []string) {
	for i := range samplers {
		if has(&samplers[i]) {
			names = append(names, samplers[i].name)
		}
	}
	return names
}

// kind returns the kind of the sampler, or nil if its name is unknown.
func (s *Sampler) kind() *samplerKind {
	for i := range samplers {
		if samplers[i].name == s.Kind {
			return &samplers[i]
		}
	}
	return nil
}

// Plan returns a valid sampler for package shuffle. Sides and corners of windows are multiples of alignY and alignX.
func (s *Sampler) Plan(alignY, alignX int) shuffle.Sampler {
	return shuffle.Sampler{PerItem: int64(s.PerAsset), H: s.Height, W: s.Width, Sides: s.Sizes, AlignY: alignY,
		AlignX: alignX, MaxNoData: s.MaxNoData, Kind: s.kind().plan(s, alignY, alignX)}
}

// fixed is the plan of a kind without members in package shuffle.
func fixed(kind shuffle.Kind) func(*Sampler, int, int) shuffle.Kind {
	return func(*Sampler, int, int) shuffle.Kind { return kind }
}

func (s Sampler) withDefaults() Sampler {
	s.Kind = cmp.Or(s.Kind, WholeChip)
	if s.Sizes == nil {
		sides(&s.Size, &s.Height, &s.Width)
	}
	if len(s.Sizes) > 0 && s.Height == 0 && s.Width == 0 {
		s.Height, s.Width = slices.Max(s.Sizes), slices.Max(s.Sizes)
	}
	s.Views = slices.Clone(s.Views)
	for i := range s.Views {
		s.Views[i] = s.Views[i].withDefaults()
	}
	kind := s.kind()
	if kind == nil {
		return s
	}
	if s.PerAsset == 0 && !kind.counts {
		s.PerAsset = 1
	}
	if kind.defaults != nil {
		kind.defaults(&s)
	}
	return s
}

// sides moves a pair to the height and width that it stands for.
func sides(pair **Pair, height, width *int) {
	if p := *pair; p != nil && *height == 0 && *width == 0 && min(p[0], p[1]) > 0 {
		*height, *width, *pair = p[0], p[1], nil
	}
}

// checkPair refuses a pair that sides has not moved.
func checkPair(name string, pair *Pair) error {
	switch {
	case pair == nil:
		return nil
	case min(pair[0], pair[1]) < 1:
		return wrong(name, *pair, "it must be at least 1 pixel")
	}
	return fmt.Errorf("%s is %v, and its sides are given beside it", name, *pair)
}

func (s *Sampler) validate() error {
	kind := s.kind()
	if kind == nil {
		return fmt.Errorf("the kind of sampler is %q: it must be one of %s", s.Kind, strings.Join(SamplerKinds(), ", "))
	}
	if err := cmp.Or(s.checkSizes(kind), s.checkOthers(kind), s.checkCoverage(kind), s.checkViews(kind)); err != nil {
		return err
	}
	if !kind.anySize && s.Height == 0 && s.Width == 0 {
		return wrong("size", json.RawMessage("missing"), "both sides must be from 1 to %d pixels", MaxWindow)
	}
	if !kind.anySize && (min(s.Height, s.Width) < 1 || max(s.Height, s.Width) > MaxWindow) {
		return wrong("size", Pair{s.Height, s.Width}, "both sides must be from 1 to %d pixels", MaxWindow)
	}
	least := 1
	if kind.counts {
		least = 0
	}
	if s.PerAsset < least || s.PerAsset > maxPerAsset {
		return wrong("per_asset", s.PerAsset, "it must be from %d to %d", least, maxPerAsset)
	}
	if kind.check != nil {
		if err := kind.check(s); err != nil {
			return err
		}
	}
	return kind.checkNumbers(s)
}

// checkSizes refuses a size that the defaults have not moved, and sizes that batches cannot have.
func (s *Sampler) checkSizes(kind *samplerKind) error {
	switch count := len(s.Sizes); {
	case s.Size != nil:
		return checkPair("size", s.Size)
	case s.Sizes == nil:
		return nil
	case !kind.sizes:
		return wrong("sizes", s.Sizes, "the kind of sampler is %q: only %s have several", s.Kind,
			strings.Join(kindsThat(func(k *samplerKind) bool { return k.sizes }), ", "))
	case count == 0 || count > maxSizes || slices.Min(s.Sizes) < 1:
		return wrong("sizes", s.Sizes, "it must have 1 to %d sides of at least 1 pixel", maxSizes)
	case s.Height != slices.Max(s.Sizes) || s.Width != s.Height:
		return fmt.Errorf("sizes is %v, and another height or width is given beside it", s.Sizes)
	}
	return nil
}

// checkCoverage checks the limit of pixels without data.
func (s *Sampler) checkCoverage(kind *samplerKind) error {
	switch limit := s.MaxNoData; {
	case limit == nil && s.Coverage == "":
		return nil
	case limit == nil:
		return fmt.Errorf("coverage is %q: it is for max_nodata", s.Coverage)
	case !(*limit >= 0 && *limit <= 1):
		return wrong("max_nodata", *limit, "it must be from 0 to 1")
	case !kind.limited:
		return wrong("max_nodata", *limit, "the kind of sampler is %q, and only %s leave windows out; "+
			"\"weighted_window\" with the file of coverage as its weights draws them by their valid pixels", s.Kind,
			strings.Join(kindsThat(func(k *samplerKind) bool { return k.limited }), ", "))
	case s.Coverage == "":
		return wrong("max_nodata", *limit, "it needs coverage, a file of 'chaski stats --sampling'")
	}
	return nil
}

func (s *Sampler) checkChip() error {
	switch {
	case s.PerAsset != 1:
		return wrong("per_asset", s.PerAsset, "it needs windows, and the kind is %q", WholeChip)
	case min(s.Height, s.Width) < 0 || max(s.Height, s.Width) > MaxWindow || (s.Height == 0) != (s.Width == 0):
		return wrong("size", Pair{s.Height, s.Width}, "both sides must be from 1 to %d pixels", MaxWindow)
	}
	return nil
}

// checkOthers refuses members of other kinds, because they would have no effect.
func (s *Sampler) checkOthers(kind *samplerKind) error {
	for i := range samplers {
		other := &samplers[i]
		if other.name == kind.name {
			continue
		}
		for name, value := range other.each(s) {
			if !value.IsZero() {
				return fmt.Errorf("%s is a member of kind %q, not of %q", name, other.name, kind.name)
			}
		}
	}
	return nil
}

// checkNumbers refuses whole numbers among the members of the kind that are out of bounds.
func (k *samplerKind) checkNumbers(s *Sampler) error {
	for name, value := range k.each(s) {
		if n, whole := value.Interface().(int); whole && (n < 0 || n > maxPerAsset) {
			return wrong(name, n, "it must be from 0 to %d", maxPerAsset)
		}
	}
	return nil
}

// each yields the members of s that only this kind has, with their names in JSON.
func (k *samplerKind) each(s *Sampler) iter.Seq2[string, reflect.Value] {
	if k.members == nil {
		return func(func(string, reflect.Value) bool) {}
	}
	return eachMember(k.members(s))
}
