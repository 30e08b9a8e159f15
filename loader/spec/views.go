package spec

import (
	"errors"
	"fmt"
	"slices"
)

// maxViews bounds the windows of a sample: the engine has a compiled copy of the fields for each.
const maxViews = 64

// viewsWithDefaults fills in the defaults of the views.
func (s *Sampler) viewsWithDefaults() {
	s.Views = slices.Clone(s.Views)
	for i := range s.Views {
		s.Views[i] = s.Views[i].withDefaults()
	}
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
	case kind.Tiles || kind.Ground:
		return fmt.Errorf("the first of several windows is of kind %q: a sample has one of these", s.Kind)
	case len(s.Sizes) > 0:
		return wrong("sizes", s.Sizes, "each of several windows has one size")
	}
	for i := range s.Views {
		if err := s.Views[i].checkView(); err != nil {
			return InWindow(i+1, err)
		}
	}
	return nil
}

// checkView checks a window after the first one.
func (s *Sampler) checkView() error {
	kinds := kindsThat(func(k *samplerKind) bool { return k.view })
	switch {
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("its kind is %q: after the first, it must be one of %q", s.Kind, kinds)
	case !(s.MinOverlap >= 0 && s.MinOverlap <= 1):
		return wrong("min_overlap", s.MinOverlap, "it must be from 0 to 1")
	case s.MinOverlap > 0 && (s.Kind == WholeChip || s.Whole):
		return wrong("min_overlap", s.MinOverlap, "the window is the whole raster")
	case len(s.Views) > 0:
		return errors.New("it has views of its own")
	case s.PerAsset != 1:
		return wrong("per_asset", s.PerAsset, "the first window says how many samples a raster has")
	case len(s.Sizes) > 0:
		return wrong("sizes", s.Sizes, "each of several windows has one size")
	case s.MaxNoData != nil:
		return wrong("max_nodata", *s.MaxNoData, "it is for the first window")
	}
	one := *s
	one.MinOverlap = 0
	return one.validate()
}

// InWindow says which window of a sample an error is about, by its place in the list.
func InWindow(i int, err error) error { return within(fmt.Sprintf("window %d", i), err) }
