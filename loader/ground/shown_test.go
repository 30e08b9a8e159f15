package ground

import (
	"errors"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/scenes"
)

// TestNoSceneIsLost: a scene that a map cannot show as it is (it folds there, or lies past the latitudes of UTM) beside
// one that it can is an error, or is left out by Options.Bad, with the scene's name. All others have the cells of their
// area, which the maps with equal areas and a count of pixels by their latitudes say.
func TestNoSceneIsLost(t *testing.T) {
	const r = 20_000.
	good := scenes.Scene{Row: 0, Name: "good", Place: sceneAt(0, 4326, 2, 55, 0.1, 80, 80).Place}
	scene := func(epsg int, x, y, size float64, h, w int) scenes.Scene {
		s := sceneAt(1, epsg, x, y, size, h, w)
		s.Name = "other"
		return s
	}
	const globe = 510.07e12 // m²
	for name, c := range map[string]struct {
		scene scenes.Scene
		crs   string
		area  float64 // of the two together; 0: the other one is not shown
	}{
		"world on Europe":          {scene(4326, -180, 90, 0.5, 360, 720), "EPSG:3035", 0},
		"web Mercator on Europe":   {scene(3857, -20037508, 20037508, 20000, 2003, 2003), "EPSG:3035", 0},
		"world on a zone":          {scene(4326, -180, 90, 0.5, 360, 720), "EPSG:32630", 0},
		"antipode of Europe":       {scene(4326, -175, -45, 0.1, 140, 140), "EPSG:3035", 0},
		"seam of Albers":           {scene(4326, 80, 30, 0.1, 100, 100), "EPSG:5070", 0},
		"small, at the seam":       {scene(4326, 83.5, 30, 0.01, 100, 100), "EPSG:5070", 0},
		"small, beside its middle": {scene(4326, 83.2, 30, 0.01, 100, 100), "EPSG:5070", 0},
		"small, at the antipode":   {scene(4326, -170.5, -51.5, 0.01, 100, 100), "EPSG:3035", 0},
		"small, around it":         {scene(4326, -170.8, -51.3, 0.01, 100, 100), "EPSG:3035", 0},
		"past UTM":                 {scene(3413, 0, -2e5, 100, 1000, 1000), scenes.UTM, 0},
		"past UTM in the south":    {scene(3031, 1e5, -2e5, 100, 1000, 1000), scenes.UTM, 0},
		"half the world":           {scene(4326, -180, 90, 0.5, 180, 720), "EPSG:3035", globe / 2},
		"world, equal areas":       {scene(4326, -180, 90, 0.5, 360, 720), "EPSG:6933", globe},
	} {
		o := scenes.Options{Side: 8, Resolution: r, CRS: c.crs, Edge: true}
		list := []scenes.Scene{good, c.scene}
		s, err := New(list, o)
		if c.area > 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if area := float64(s.Ground.Cells()) * r * r; math.Abs(area/c.area-1) > 0.01 {
				t.Errorf("%s: the area is %.4g m², want %.4g", name, area, c.area)
			}
			continue
		}
		if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Kind != fault.Unsupported || f.File != "other" {
			t.Errorf("%s: %v", name, err)
		}
		left := 0
		o.Bad = func(s *scenes.Scene, err error) error {
			if left++; s.Name != "other" || fault.KindOf(err) != fault.Unsupported {
				t.Errorf("%s: %s: %v", name, s.Name, err)
			}
			return nil
		}
		alone, err := New(list[:1], o)
		if err != nil {
			t.Fatal(name, err)
		}
		s, err = New(list, o)
		if err != nil || left != 1 || s.Ground.Cells() != alone.Ground.Cells() {
			t.Errorf("%s: %d are left out, %v", name, left, err)
		}
	}
}

// TestPastUTM: scenes of which a part lies past the latitudes of UTM are counted, and the rest of them has windows.
func TestPastUTM(t *testing.T) {
	list := []scenes.Scene{sceneAt(0, 4326, 12, 85, 0.01, 300, 200), sceneAt(1, 4326, 12, -79, 0.01, 300, 200),
		sceneAt(2, 4326, 12, 50, 0.01, 100, 100)}
	s, err := New(list, scenes.Options{Side: 8, Resolution: 1000, CRS: scenes.UTM, Edge: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Past != 2 {
		t.Errorf("%d scenes reach past UTM", s.Past)
	}
	for _, run := range s.Ground.Runs {
		c := s.Maps[run.Map].CRS
		size := float64(s.Ground.Cell) * 1000
		at := []crs.Point{{(float64(run.X) + 0.5) * size, -(float64(run.Y) + 0.5) * size}}
		c.Inverse(at, at)
		if lat := at[0][1]; lat > 84.01 || lat < -80.01 {
			t.Errorf("a cell at latitude %v", lat)
		}
	}
}
