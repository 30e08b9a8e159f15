package spec

import (
	"cmp"
	"fmt"
	"slices"
)

// Values of Field.Match.
const (
	MatchStep    = "step"
	MatchNearest = "nearest"
)

// PickColumns returns the columns that the source's own sampler needs: of boxes, or for Pick, Order and Step.
func (s *Source) PickColumns() (names []string) {
	switch {
	case s.Sampler == nil:
		return nil
	case s.Sampler.Kind != GeoWindow:
		return s.Sampler.BoxColumns()
	}
	g := &s.Sampler.GeoWindows
	names = append(names, g.rules()...)
	if c, _ := g.StepColumn(); c != "" {
		names = append(names, c)
	}
	return names
}

// Leading returns the datasets of Field.Scenes whose scenes are the steps of sequences: the source of the spec (""),
// and those that share a field with it, or with another one of them.
func Leading(fields []Field) []string {
	list := []string{""}
	for grown := true; grown; {
		grown = false
		for i := range fields {
			if !fields[i].leads(list) {
				continue
			}
			for _, p := range fields[i].Scenes {
				if !slices.Contains(list, p) {
					list, grown = append(list, p), true
				}
			}
		}
	}
	return list
}

// leads reports whether a field has rasters in one of some datasets.
func (f *Field) leads(datasets []string) bool {
	return f.Scenes == nil && slices.Contains(datasets, "") ||
		slices.ContainsFunc(f.Scenes, func(p string) bool { return slices.Contains(datasets, p) })
}

// Still reports whether the field, one of some fields, has no axis t in sequences of scenes.
func (f *Field) Still(fields []Field) bool { return f.Match == "" && !f.leads(Leading(fields)) }

// validateMatches checks Field.Match of some fields, whose sampler is g.
func validateMatches(g *Sampler, fields []Field) error {
	for i := range fields {
		field := &fields[i]
		wrong := ""
		switch {
		case field.MatchDays != 0 && field.Match != MatchNearest:
			wrong = fmt.Sprintf("match_days is %v: it is for match %q", field.MatchDays, MatchNearest)
		case field.Match == "":
			continue
		case field.Match != MatchStep && field.Match != MatchNearest:
			wrong = fmt.Sprintf("match is %q: it must be %q or %q", field.Match, MatchStep, MatchNearest)
		case !(field.MatchDays >= 0 && field.MatchDays <= maxMatchDays):
			wrong = fmt.Sprintf("match_days is %v: it must be from 0 to %d", field.MatchDays, maxMatchDays)
		case g.Length == 0:
			wrong = fmt.Sprintf("match is %q: it is for sequences of scenes: give their length", field.Match)
		case field.leads(Leading(fields)):
			wrong = fmt.Sprintf("match is %q: it is for scenes of other datasets than that of the steps", field.Match)
		case field.Match == MatchStep && g.Step == "":
			wrong = fmt.Sprintf("match is %q, and no step is given: each scene is a step of its own", field.Match)
		}
		if wrong != "" {
			return fmt.Errorf("field %q: %s", field.Name, wrong)
		}
	}
	return nil
}

// maxMatchDays is the bound of Field.MatchDays: a thousand years.
const maxMatchDays = 366_000

// validateGround returns an error for settings that windows on the ground exclude.
func (s *Spec) validateGround() error {
	samplers := []*Sampler{&s.Sampler}
	subsets := []*Subset{&s.Subset}
	var walk func(list []Source)
	walk = func(list []Source) {
		for i := range list {
			samplers, subsets = append(samplers, list[i].Sampler), append(subsets, &list[i].Subset)
			walk(list[i].Sources)
		}
	}
	walk(s.Sources)
	for i, subset := range subsets {
		if subset.Split != nil && !subset.Split.OfRows() && cmp.Or(samplers[i], samplers[0]).Kind != GeoWindow {
			return fmt.Errorf("split by %q is for the sampler %q: others take \"cell\"", ByPlace, GeoWindow)
		}
	}
	joined := slices.IndexFunc(s.Fields, func(f Field) bool {
		return f.Scenes != nil || f.Match != "" || f.MatchDays != 0
	})
	for _, sampler := range samplers {
		switch {
		case joined < 0:
		case cmp.Or(sampler, samplers[0]).Kind != GeoWindow:
			name := "scenes"
			if s.Fields[joined].Scenes == nil {
				name = "match"
			}
			return fmt.Errorf("field %q: %s is for the sampler %q", s.Fields[joined].Name, name, GeoWindow)
		}
		if err := validateMatches(cmp.Or(sampler, samplers[0]), s.Fields); err != nil {
			return err
		}
	}
	onGround := func(sampler *Sampler) bool { return sampler != nil && sampler.Kind == GeoWindow }
	if !slices.ContainsFunc(samplers, onGround) {
		return nil
	}
	for _, subset := range subsets {
		switch {
		case subset.Time != nil:
			return fmt.Errorf("time is not for the sampler %q: give it a length", GeoWindow)
		case subset.Strata != nil:
			return fmt.Errorf("strata are not for the sampler %q: its windows are drawn by area", GeoWindow)
		}
	}
	if s.Windows {
		return fmt.Errorf("windows is true: they are in pixels of a file, and windows of %q lie on the ground: "+
			"take geo", GeoWindow)
	}
	return nil
}
