package spec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// maxViews bounds the windows of a sample: the engine has a compiled copy of the fields for each.
const maxViews = 64

// AllWhole reports whether all windows of a sample are whole rasters, resampled.
func (s *Sampler) AllWhole() bool {
	return s.Whole && !slices.ContainsFunc(s.Views, func(v Sampler) bool { return !v.Whole })
}

// checkViews checks the further windows of a sample.
func (s *Sampler) checkViews(kind *samplerKind) error {
	switch {
	case s.MinOverlap != 0:
		return wrong("min_overlap", s.MinOverlap, "it is for the windows of a list after the first")
	case len(s.Views) == 0:
		return nil
	case len(s.Views) >= maxViews:
		return fmt.Errorf("%d windows of a sample, at most %d", len(s.Views)+1, maxViews)
	case len(s.Sizes) > 0:
		return wrong("sizes", s.Sizes, "each of several windows has one size")
	}
	kinds := kindsThat(func(k *samplerKind) bool {
		pairs := k == kind && (k.Ground || k.Tiles)
		return pairs || k.view && !kind.Ground
	})
	for i := range s.Views {
		view := &s.Views[i]
		if !slices.Contains(kinds, view.Kind) {
			return InWindow(i+1, fmt.Errorf("its kind is %q: after a first one of kind %q, it must be one of %q",
				view.Kind, s.Kind, kinds))
		}
		err := view.checkView()
		if err == nil && kind.members != nil && view.Kind == s.Kind {
			err = view.checkBeside(s)
		}
		if err != nil {
			return InWindow(i+1, err)
		}
	}
	return nil
}

// checkBeside checks a window of the kind of the first one, which lies beside it: on the ground, or in its tile. It has
// a size of its own. The first window decides all else, so members are not given, or are the same.
func (s *Sampler) checkBeside(first *Sampler) error {
	kind := s.kind()
	if !kind.Tiles && !kind.Ground {
		return nil
	}
	byDefault := Sampler{Kind: s.Kind}.withDefaults()
	known := map[string][]any{}
	for _, other := range []*Sampler{&byDefault, first} {
		for name, value := range kind.each(other) {
			known[name] = append(known[name], value.Interface())
		}
	}
	for name, value := range kind.each(s) {
		same := func(other any) bool { return reflect.DeepEqual(other, value.Interface()) }
		if name != "size_m" && name != "resolution" && !slices.ContainsFunc(known[name], same) {
			return wrong(name, value.Interface(), "the first window says it for all, and there it is %v",
				known[name][1])
		}
	}
	if s.PerAsset != 0 && s.PerAsset != first.PerAsset {
		return wrong("per_asset", s.PerAsset, "the first window says how many samples a raster has")
	}
	if kind.Tiles {
		if s.MinOverlap > 0 {
			return wrong("min_overlap", s.MinOverlap, "a tile_window lies in the tile of the first window: a "+
				"random_window may overlap it more")
		}
		return nil
	}
	switch grid := first.Resolution; {
	case s.SizeM > first.SizeM:
		return wrong("size_m", s.SizeM, "the first window, of %v m, must be the largest", first.SizeM)
	case !first.wholePixels(s.SizeM):
		return wrong("size_m", s.SizeM, "it must be a whole number of pixels of the first window, of %v m", grid)
	}
	return nil
}

// checkView checks a window after the first one.
func (s *Sampler) checkView() error {
	switch {
	case !(s.MinOverlap >= 0 && s.MinOverlap <= 1):
		return wrong("min_overlap", s.MinOverlap, "it must be from 0 to 1")
	case s.MinOverlap > 0 && (s.Kind == WholeChip || s.Whole):
		return wrong("min_overlap", s.MinOverlap, "the window is the whole raster")
	case len(s.Views) > 0:
		return errors.New("it has views of its own")
	case s.PerAsset != 1 && !s.kind().counts:
		return wrong("per_asset", s.PerAsset, "the first window says how many samples a raster has")
	case len(s.Sizes) > 0:
		return wrong("sizes", s.Sizes, "each of several windows has one size")
	case s.MaxNoData != nil:
		return wrong("max_nodata", *s.MaxNoData, "it is for the first window")
	}
	view := *s
	view.MinOverlap = 0
	return view.validate()
}

// InWindow says which window of a sample an error is about, by its place in the list.
func InWindow(i int, err error) error { return within(fmt.Sprintf("window %d", i), err) }
