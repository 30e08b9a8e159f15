package spec_test

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/loader/spec"
)

// TestScenesThatAreRefused: a field without a dataset has no rasters, and a source of a mixture does not have scenes of
// its own.
func TestScenesThatAreRefused(t *testing.T) {
	ground := spec.Sampler{Kind: spec.GeoWindow, GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, Length: 2}}
	image := spec.Field{Name: "image"}
	labels := spec.Field{Name: "labels", Scenes: []string{"labels/"}}
	mixed := func(f spec.Field) spec.Spec {
		s := spec.Spec{Fields: []spec.Field{image, labels}}
		s.Sources = []spec.Source{{Source: "a/"}, {Source: "b/", Fields: []spec.Field{f}}}
		return s
	}
	for _, c := range []struct {
		s    spec.Spec
		want string
	}{
		{spec.Spec{Source: "a/", Fields: []spec.Field{image, {Name: "labels", Scenes: []string{}}}},
			`field "labels": scenes is empty`},
		{mixed(spec.Field{Name: "labels", Scenes: []string{"other/"}}),
			`field "labels": scenes, match, match_days,`},
		{mixed(spec.Field{Name: "labels", Match: "nearest"}), `field "labels": scenes, match, match_days,`},
		{mixed(spec.Field{Name: "labels", MatchDays: 2}), `field "labels": scenes, match, match_days,`},
	} {
		c.s.BatchSize, c.s.Sampler = 1, ground
		if err := c.s.WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
