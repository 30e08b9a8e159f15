package ground

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/shuffle"
)

// Steps implements scenes.Finder.
func (s *Set) Steps(p shuffle.Place) []scenes.Step {
	var list []scenes.Step
	places := map[int64]int{} // the place in list by Scene.Step
	leads := func(f *mapFootprint) bool { return !f.beside }
	seen := s.inside(p, leads)
	if len(seen) == 0 {
		seen = s.covering(p, leads)
	}
	for _, i := range seen {
		scene := &s.scenes[i]
		step, ok := places[scene.Step]
		if scene.Step < 0 || !ok {
			if len(list) == s.length {
				continue // a scene of a step of the list may follow
			}
			step = len(list)
			list = append(list, scenes.Step{First: i})
			places[scene.Step] = step
		}
		list[step].Rows = append(list[step].Rows, scene.Row)
	}
	slices.SortStableFunc(list, func(a, b scenes.Step) int {
		return cmp.Compare(s.scenes[a.First].Rank, s.scenes[b.First].Rank)
	})
	return list
}

// At implements scenes.Finder.
func (s *Set) At(p shuffle.Place, step *scenes.Step) []int64 {
	seen := s.inside(p, func(f *mapFootprint) bool { return !f.beside })
	if value := s.scenes[step.First].Step; value >= 0 {
		return s.valued(seen, value)
	}
	if _, ok := slices.BinarySearch(seen, step.First); ok {
		return step.Rows
	}
	return nil
}

// SameStep implements scenes.Finder.
func (s *Set) SameStep(p shuffle.Place, step *scenes.Step, has func(row int64) bool) []int64 {
	return s.valued(s.having(p, has), s.scenes[step.First].Step)
}

// having returns the numbers of the scenes that have a pixel of a window and whose rows has reports true for.
func (s *Set) having(p shuffle.Place, has func(row int64) bool) []int32 {
	hasScene := func(i int32) bool { return has(s.scenes[i].Row) }
	seen := s.inside(p, func(f *mapFootprint) bool { return slices.ContainsFunc(f.scenes, hasScene) })
	return slices.DeleteFunc(seen, func(i int32) bool { return !hasScene(i) })
}

// Nearest implements scenes.Finder.
func (s *Set) Nearest(p shuffle.Place, step *scenes.Step, has func(row int64) bool, within int64) []int64 {
	first := &s.scenes[step.First]
	if !first.Timed {
		return nil
	}
	seen := s.having(p, has)
	nearest, least := int32(-1), uint64(within)
	for _, i := range seen {
		scene := &s.scenes[i]
		if !scene.Timed {
			continue
		}
		// The difference of two int64 fits a uint64.
		off := uint64(max(scene.Time, first.Time)) - uint64(min(scene.Time, first.Time))
		if off < least || off == least && nearest < 0 {
			nearest, least = i, off
		}
	}
	switch {
	case nearest < 0:
		return nil
	case s.scenes[nearest].Step < 0:
		return []int64{s.scenes[nearest].Row}
	}
	return s.valued(seen, s.scenes[nearest].Step)
}

// valued returns the rows of the scenes among some that have a value of Scene.Step that is not negative.
func (s *Set) valued(seen []int32, value int64) (rows []int64) {
	for _, i := range seen {
		if value >= 0 && s.scenes[i].Step == value {
			rows = append(rows, s.scenes[i].Row)
		}
	}
	return rows
}

// WithPixels implements scenes.Finder.
func (s *Set) WithPixels(p shuffle.Place, rows []int64) []int64 {
	seen := s.inside(p, nil)
	if len(seen) == 0 {
		return rows
	}
	sorted := make([]int64, len(seen))
	for k, i := range seen {
		sorted[k] = s.scenes[i].Row
	}
	slices.Sort(sorted)
	return slices.DeleteFunc(rows, func(row int64) bool {
		_, found := slices.BinarySearch(sorted, row)
		return !found
	})
}

// inside returns the numbers of the scenes that have a pixel of a window, in their order. keep is as for covering.
func (s *Set) inside(p shuffle.Place, keep func(*mapFootprint) bool) []int32 {
	return s.within(s.Maps[p.Map], s.bound(p).Pad(-beside*s.size), keep)
}
