package ground

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/clip"
	"github.com/paulmach/orb/planar"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Map is one CRS in which windows lie.
type Map struct {
	CRS *crs.CRS

	strip orb.Bound // the longitudes and latitudes of its cells
	reach orb.Bound // and of the scenes that their windows may see
	feet  []mapFootprint
	boxes []boxtree.Box // of feet, until tree is made
	tree  *boxtree.Tree
	// The longitudes and latitudes that its footprints have of reach. Outlines of zones, bounds and roi are drawn
	// this far only: a map may lack a place beyond.
	feetBound orb.Bound
}

// mapFootprint is a footprint on a map, and the scenes that have it, by their numbers.
type mapFootprint struct {
	pieces  []orb.Polygon
	scenes  []int32
	dataset int
	beside  bool // Scene.Beside of all of them
}

// Set is where windows may lie, and the scenes that they see. It is safe for concurrent use.
type Set struct {
	Maps   []*Map
	Ground *shuffle.Ground
	// Past counts the scenes that reach past the latitudes of UTM: windows end there.
	Past int

	scenes []scenes.Scene
	side   int     // of a window in its pixels
	size   float64 // of a pixel
	length int     // of sequences

	// A Place counts pixels of the first window of a sample: their size, and how many a window has along a side.
	unit float64
	span int64
}

// View implements scenes.Finder.
func (s *Set) View(side int, size float64, span int) scenes.Finder {
	view := *s
	view.side, view.size, view.span = side, size, int64(span)
	return &view
}

const (
	// share is how many cells lie along a window: windows of 256 pixels have cells of 16, so less than a tenth of
	// the window's side is lost at the edge of a scene.
	share = 16
	// maxSpans bounds the spans of cells that footprints are drawn as: 8 million take 96 MB for a while. Where there
	// would be more, cells are twice as large.
	maxSpans = 8 << 20
	// maxCell is the side of the largest cell in pixels: 2^20 pixels of 10 m are a quarter of the way around the Earth.
	maxCell = 1 << 20
	// maxScenes bounds the scenes: each takes some 200 bytes.
	maxScenes = 1 << 24
	// beside is how much of a pixel at the rim of a window a scene may cover without being a step of its sequence: less
	// than a half, because a pixel is a scene's that has its centre, by an eighth that outlines may be off.
	beside = 3. / 8
)

func init() {
	scenes.New = func(list []scenes.Scene, o scenes.Options) (*scenes.Set, error) {
		set, err := New(list, o)
		if err != nil {
			return nil, err
		}
		return &scenes.Set{Ground: set.Ground, Past: set.Past, Finder: set}, nil
	}
}

// New returns the set of some scenes. Those that come first are preferred. It fails with fault.Unsupported if the place
// of a scene is known too roughly, and with fault.NotFound if no window fits.
func New(list []scenes.Scene, o scenes.Options) (*Set, error) {
	if len(list) > maxScenes {
		return nil, fault.New(fault.Limit, "dataset", "%d scenes: windows on the ground see at most %d",
			len(list), maxScenes)
	}
	set := &Set{scenes: list, side: o.Side, size: o.Resolution, length: o.Length, unit: o.Resolution,
		span: int64(o.Side)}
	prints, err := footprints(list, &o)
	if err != nil {
		return nil, err
	}
	if err := set.makeMaps(prints, &o); err != nil {
		return nil, err
	}
	fine := max(o.Side/share, 1)
	for fine < maxCell && set.spans(float64(fine)*o.Resolution) > maxSpans {
		fine *= 2
	}
	ground := &shuffle.Ground{Side: o.Side, Cell: cmp.Or(o.Stride, fine), Scene: set.first}
	// The negation also refuses NaN, for which every comparison is false.
	if n := set.spans(float64(ground.Cell) * o.Resolution); !(n <= 4*maxSpans) {
		return nil, fault.New(fault.Limit, "dataset", "the scenes are %.3g rows of cells of %v m high: at most %d are "+
			"kept", n, float64(ground.Cell)*o.Resolution, 4*maxSpans)
	}
	for i, m := range set.Maps {
		found, err := m.cells(ground.Cell, &o)
		if err == nil && o.Part != nil && len(found) > 0 {
			found, err = m.ofPart(found, ground.Cell, fine, &o)
		}
		if err != nil {
			return nil, err
		}
		for _, line := range found {
			run := shuffle.CellRun{Map: int32(i), Y: line.y, X: line.x0, N: line.x1 - line.x0}
			ground.Runs = append(ground.Runs, run)
		}
	}
	if len(ground.Runs) == 0 {
		return nil, nothingFits(&o)
	}
	if ground.Samples = o.Samples; o.Stride == 0 && ground.Samples == 0 {
		part := float64(ground.Cell) / float64(o.Side)
		ground.Samples = max(int64(math.Round(float64(ground.Cells())*part*part)), 1)
	}
	set.Ground = ground
	return set, nil
}

// nothingFits returns the error about a set without windows.
func nothingFits(o *scenes.Options) error {
	what := "no scene lies within bounds and roi"
	if !o.Edge && o.Stride == 0 {
		what = fmt.Sprintf("no window of %v m fits into the scenes within bounds and roi: "+
			"with edge=true windows may reach past the scenes", float64(o.Side)*o.Resolution)
	}
	if o.Part != nil {
		what += ", or none lies in the part of the split: its squares must be larger than a window and the margin"
	}
	return fault.New(fault.NotFound, "dataset", "%s", what)
}

// maxTurns bounds longitudes of scenes: -180 to 180 degrees, and a turn more at each side for those that count on.
const maxTurns = 540

// sceneFootprint is a place that one or several scenes have.
type sceneFootprint struct {
	place  catalog.Place
	ring   orb.Ring    // in its own CRS
	at     orb.Polygon // longitudes and latitudes
	bound  orb.Bound   // of at
	scenes []int32

	dataset int
	beside  bool
}

// footprints returns the places of the scenes of each dataset, each once.
func footprints(all []scenes.Scene, o *scenes.Options) (list []sceneFootprint, _ error) {
	type key struct {
		place   catalog.Place
		dataset int
	}
	known := map[key]int{}
	var prints []sceneFootprint
	for i, scene := range all {
		place := key{scene.Place, scene.Dataset}
		number, ok := known[place]
		if !ok {
			number = len(prints)
			known[place] = number
			prints = append(prints, sceneFootprint{place: scene.Place, dataset: scene.Dataset, beside: scene.Beside})
		}
		prints[number].scenes = append(prints[number].scenes, int32(i))
	}
	for i := range prints {
		footprint := &prints[i]
		err := footprint.locate()
		if err == nil {
			list = append(list, *footprint)
		} else if err = bad(o, all, footprint, err); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// bad decides about the scenes of a footprint that has an error.
func bad(o *scenes.Options, all []scenes.Scene, f *sceneFootprint, err error) error {
	for _, i := range f.scenes {
		named := fault.WithFile(err, all[i].Name)
		if o.Bad == nil {
			return named
		}
		if err := o.Bad(&all[i], named); err != nil {
			return err
		}
	}
	return nil
}

// locate finds out where a footprint lies.
func (f *sceneFootprint) locate() error {
	corners := &f.place.Corners
	f.ring = orb.Ring{orb.Point(corners[0]), orb.Point(corners[1]), orb.Point(corners[3]), orb.Point(corners[2]),
		orb.Point(corners[0])}
	system, err := crs.Lookup(f.place.EPSG)
	if err != nil {
		return err
	}
	if f.at, err = lonlat(orb.Polygon{f.ring}, system); err != nil {
		return err
	}
	if f.at == nil {
		return fault.New(fault.Unsupported, "place", "it lies at %v: windows on the ground need "+
			"scenes that lie on the map of their CRS, and not around a pole", &f.place)
	}
	f.bound = f.at.Bound()
	if b := &f.bound; !(b.Min[0] >= -maxTurns && b.Max[0] <= maxTurns) {
		return fault.New(fault.Unsupported, "place",
			"it lies at %v: longitudes are -%d to %[2]d degrees", &f.place, maxTurns)
	}
	return nil
}

// makeMaps makes the maps, and puts the footprints on them: on all that show it, or on none if one cannot.
func (s *Set) makeMaps(prints []sceneFootprint, o *scenes.Options) error {
	if o.CRS == scenes.UTM {
		kept := make([]sceneFootprint, 0, len(prints))
		for i := range prints {
			some, every := prints[i].pastUTM()
			if every {
				if err := bad(o, s.scenes, &prints[i], errPastUTM(&prints[i].place)); err != nil {
					return err
				}
				continue
			}
			if some {
				s.Past += len(prints[i].scenes)
			}
			kept = append(kept, prints[i])
		}
		prints = kept
		s.zones(prints)
	} else if err := s.oneMap(o.CRS); err != nil {
		return err
	}
	placed := make([][]orb.Polygon, len(s.Maps))
	for i := range prints {
		footprint := &prints[i]
		clear(placed)
		for k, chart := range s.Maps {
			pieces, err := chart.place(footprint, o.Resolution/8)
			if err == nil {
				placed[k] = pieces
				continue
			}
			if err := bad(o, s.scenes, footprint, err); err != nil {
				return err
			}
			clear(placed)
			break
		}
		for k, pieces := range placed {
			if len(pieces) > 0 {
				s.Maps[k].add(footprint, pieces)
			}
		}
	}
	s.Maps = slices.DeleteFunc(s.Maps, func(one *Map) bool { return len(one.feet) == 0 })
	for _, chart := range s.Maps {
		chart.tree = boxtree.New(chart.boxes)
		chart.boxes = nil
	}
	return nil
}

// add puts a footprint on the map.
func (m *Map) add(f *sceneFootprint, pieces []orb.Polygon) {
	b := orb.MultiPolygon(pieces).Bound()
	m.boxes = append(m.boxes, boxtree.Around(b.Min[0], b.Min[1], b.Max[0], b.Max[1]))
	if len(m.feet) == 0 {
		m.feetBound = orb.Bound{Min: orb.Point{math.Inf(1), math.Inf(1)}, Max: orb.Point{math.Inf(-1), math.Inf(-1)}}
	}
	m.see(f.bound)
	m.feet = append(m.feet, mapFootprint{pieces, f.scenes, f.dataset, f.beside})
}

// see enlarges the bounds of the map's footprints by a box of longitudes and latitudes.
func (m *Map) see(b orb.Bound) {
	for _, turn := range turns {
		west, east := max(b.Min[0]+turn, m.reach.Min[0]), min(b.Max[0]+turn, m.reach.Max[0])
		if west > east {
			continue
		}
		m.feetBound.Min = orb.Point{min(m.feetBound.Min[0], west), min(m.feetBound.Min[1], b.Min[1])}
		m.feetBound.Max = orb.Point{max(m.feetBound.Max[0], east), max(m.feetBound.Max[1], b.Max[1])}
	}
}

// The latitudes that UTM shows.
const south, north = -80, 84

// zones adds a map for each zone of UTM that scenes lie in.
func (s *Set) zones(prints []sceneFootprint) {
	var has [121]bool // by 2·zone, and 1 more in the south
	for i := range prints {
		bound := &prints[i].bound
		for x := math.Floor(bound.Min[0] / 6); x*6 < bound.Max[0]; x++ {
			zone := 1 + floor(math.Mod(math.Mod(x+30, 60)+60, 60))
			if bound.Max[1] > 0 {
				has[2*zone-1] = true
			}
			if bound.Min[1] < 0 {
				has[2*zone] = true
			}
		}
	}
	for i, lies := range has {
		if !lies {
			continue
		}
		zone, code, lo, hi := (i+1)/2, 32600, 0., float64(north)
		if i%2 == 0 {
			code, lo, hi = 32700, south, 0
		}
		system, ok := crs.ByCode(code + zone)
		if !ok {
			panic(fmt.Sprintf("ground: EPSG:%d is not known", code+zone))
		}
		west := float64(6*zone - 186)
		strip := orb.Bound{Min: orb.Point{west, lo}, Max: orb.Point{west + 6, hi}}
		// Windows reach past the strip by no more than their diagonal. A degree of longitude has 11 km at 84 degrees.
		deg := min(1.5*float64(s.side)*s.size/11_000, 20)
		shown := orb.Bound{Min: orb.Point{west - deg, max(lo-deg, -89)},
			Max: orb.Point{west + 6 + deg, min(hi+deg, 89)}}
		s.Maps = append(s.Maps, &Map{CRS: system, strip: strip, reach: shown})
	}
}

// oneMap adds the map of a CRS.
func (s *Set) oneMap(name string) error {
	system, ok := crs.ByName(name)
	switch {
	case !ok || system.Code() == 0:
		return fmt.Errorf("spec: sampler: crs is %q: it must be \"utm\" or a known code such as \"EPSG:3035\"", name)
	case system.Geographic() || system.Unit() != 1:
		return fmt.Errorf("spec: sampler: crs is %q: windows are in metres, and it is not: give \"utm\" or a map in "+
			"metres", name)
	}
	if _, err := crs.NewTransform(wgs84, system); err != nil {
		return fmt.Errorf("spec: sampler: crs: %w", err)
	}
	// The ends are left out by 0.1 mm, because a place on them lies at either side of the map.
	globe := orb.Bound{Min: orb.Point{-180 + 1e-9, -90}, Max: orb.Point{180 - 1e-9, 90}}
	s.Maps = append(s.Maps, &Map{CRS: system, strip: globe, reach: globe})
	return nil
}

// place returns a footprint on the map.
func (m *Map) place(f *sceneFootprint, off float64) ([]orb.Polygon, error) {
	if f.place.EPSG == m.CRS.Code() { // to the bit
		ring := slices.Clone(f.ring)
		round(ring)
		return []orb.Polygon{{ring}}, nil
	}
	pieces, err := m.on(f.at, off, m.reach)
	if err != nil {
		return nil, err
	}
	if wide := m.CRS.Width(); wide > 0 && f.bound.Max[0]-f.bound.Min[0] < 180 {
		for _, p := range pieces {
			if b := p.Bound(); b.Max[0]-b.Min[0] > wide*3/4 {
				return nil, fault.New(fault.Unsupported, "place",
					"it lies across the edge of the map %v: give another crs", m.CRS)
			}
		}
	}
	return pieces, nil
}

// spans returns about how many spans of cells the footprints are drawn as.
func (s *Set) spans(cell float64) float64 {
	count := 0.
	for _, m := range s.Maps {
		for _, f := range m.feet {
			b := orb.MultiPolygon(f.pieces).Bound()
			count += (b.Max[1]-b.Min[1])/cell + 1
		}
	}
	return count
}

// cells returns the cells of the map, of pixels a side.
func (m *Map) cells(pixels int, o *scenes.Options) (cells, error) {
	grid := lattice{size: float64(pixels) * o.Resolution, touched: o.Stride > 0}
	var found, before cells
	for dataset := range max(o.All, 1) {
		var list []span
		for _, foot := range m.feet {
			if o.All > 0 && foot.dataset != dataset {
				continue
			}
			for _, polygon := range foot.pieces {
				bound := polygon.Bound()
				if lo := max(-bound.Min[0], bound.Max[0], -bound.Min[1], bound.Max[1]) / grid.size; !(lo < 1<<28) {
					return nil, fault.New(fault.Limit, "dataset",
						"cells of %v m are too small for a scene at %v", grid.size, bound)
				}
				list = grid.draw(list, polygon)
			}
		}
		joint := joined(list)
		if !o.Edge && o.Stride == 0 {
			// One cell more than the window reaches: a cell counts by its centre, so half of it may lie outside.
			joint = joint.shrunk(int32((o.Side/2+pixels-1)/pixels) + 1)
		}
		if found = joint; dataset > 0 {
			found = before.both(joint)
		}
		before = found
	}
	var list []span
	areas, used := o.Within, 0
	if o.CRS == scenes.UTM {
		used = 1
		areas = append([]scenes.Area{{CRS: wgs84, Parts: []orb.Polygon{m.outline()}}}, areas...)
	}
	for i, area := range areas {
		if len(found) == 0 {
			return nil, nil
		}
		grid.only, list = found.bound(), nil
		for _, p := range area.Parts {
			outline, err := lonlat(p, area.CRS)
			if err != nil {
				return nil, err
			}
			if outline == nil {
				return nil, fault.New(fault.Unsupported, "place",
					"bounds or roi lie around a pole, or off the map of %v", area.CRS)
			}
			pieces, err := m.on(outline, o.Resolution/8, m.near(o))
			if err != nil {
				return nil, err
			}
			for _, piece := range pieces {
				n := len(list)
				if list = grid.draw(list, piece); len(list) == n && i >= used {
					list = grid.drawSmall(list, piece)
				}
			}
		}
		found = found.both(joined(list))
	}
	return found, nil
}

// outline returns the longitudes and latitudes of a zone: a cell belongs to the zone of its centre.
func (m *Map) outline() orb.Polygon {
	bound := m.strip
	// 0.1 degrees more, as sides bend: a degree of latitude is never shorter than 110 km, and cells are small.
	bound.Min[1], bound.Max[1] = max(bound.Min[1], m.feetBound.Min[1]-0.1), min(bound.Max[1], m.feetBound.Max[1]+0.1)
	return bound.ToPolygon()
}

// near returns the longitudes and latitudes around the footprints that decide about cells.
func (m *Map) near(o *scenes.Options) orb.Bound {
	// A cell of a grid is touched by a footprint at one end and by a polygon at the other, at most its diagonal away:
	// a degree of longitude has 11 km at 84 degrees.
	deg := 0.1 + 1.5*float64(o.Stride)*o.Resolution/11_000
	return overlap(m.feetBound.Pad(deg), m.reach)
}

// floor returns the greatest int that is not above v.
func floor(v float64) int { return int(math.Floor(v)) }

// Window implements scenes.Finder.
func (s *Set) Window(p shuffle.Place) warp.Raster {
	r := s.size
	return warp.Raster{
		CRS: s.Maps[p.Map].CRS, Height: s.side, Width: s.side,
		Transform: [6]float64{float64(p.X) * s.unit, r, 0, -float64(p.Y) * s.unit, 0, -r},
	}
}

// Place implements scenes.Finder.
func (s *Set) Place(p shuffle.Place) *catalog.Place {
	w := s.Window(p)
	return catalog.NewPlace(w.CRS.Code(), &w.Transform, w.Height, w.Width)
}

// bound returns the window at a place in units of its map.
func (s *Set) bound(p shuffle.Place) orb.Bound {
	coord := func(v int64) float64 { return float64(v) * s.unit }
	return orb.Bound{Min: orb.Point{coord(p.X), coord(-p.Y - s.span)}, Max: orb.Point{coord(p.X + s.span), coord(-p.Y)}}
}

// Rows implements scenes.Finder.
func (s *Set) Rows(rows []int64, p shuffle.Place) []int64 {
	for _, i := range s.covering(p, nil) {
		rows = append(rows, s.scenes[i].Row)
	}
	return rows
}

// covering returns the numbers of the scenes that a window sees, in their order. keep (nil: all) says which
// footprints count.
func (s *Set) covering(p shuffle.Place, keep func(*mapFootprint) bool) []int32 {
	return s.within(s.Maps[p.Map], s.bound(p), keep)
}

// within returns the numbers of the scenes that have a point in a box of a map, in their order.
func (s *Set) within(m *Map, b orb.Bound, keep func(*mapFootprint) bool) []int32 {
	box := boxtree.Around(b.Min[0], b.Min[1], b.Max[0], b.Max[1])
	var list []int32
	for _, k := range m.tree.Search(nil, &box) {
		f := &m.feet[k]
		if f.meets(b) && (keep == nil || keep(f)) {
			list = append(list, f.scenes...)
		}
	}
	slices.Sort(list)
	return list
}

// meets reports whether a footprint has a point in a box.
func (f *mapFootprint) meets(b orb.Bound) bool {
	for _, polygon := range f.pieces {
		bounds := polygon.Bound()
		if !bounds.Intersects(b) {
			continue
		}
		if b.Contains(bounds.Min) && b.Contains(bounds.Max) || len(clip.Ring(b, slices.Clone(polygon[0]))) > 0 {
			return true
		}
	}
	return false
}

// first returns the row that names a window: of the scenes at its middle the first or, where none is, of all that it
// sees.
func (s *Set) first(p shuffle.Place) int64 {
	middle := s.bound(p).Center()
	list := s.covering(p, func(f *mapFootprint) bool {
		return slices.ContainsFunc(f.pieces, func(q orb.Polygon) bool { return planar.PolygonContains(q, middle) })
	})
	if len(list) == 0 {
		list = s.covering(p, nil)
	}
	if len(list) == 0 { // a grid window may touch a footprint by less than the tolerance of the two tests
		return s.scenes[s.Maps[p.Map].feet[0].scenes[0]].Row
	}
	return s.scenes[list[0]].Row
}

// Digest implements scenes.Finder.
func (s *Set) Digest(w io.Writer) {
	var b []byte
	number := func(v int64) { b = binary.LittleEndian.AppendUint64(b, uint64(v)) }
	for _, m := range s.Maps {
		number(int64(m.CRS.Code()))
	}
	number(int64(s.Ground.Cell))
	number(s.Ground.Samples)
	for _, run := range s.Ground.Runs {
		number(int64(run.Map))
		number(int64(run.Y))
		number(int64(run.X))
		number(int64(run.N))
	}
	number(int64(len(s.scenes)))
	for i := range s.scenes {
		scene := &s.scenes[i]
		number(scene.Row)
		number(int64(scene.Place.EPSG))
		for _, p := range scene.Place.Corners {
			number(int64(math.Float64bits(p[0])))
			number(int64(math.Float64bits(p[1])))
		}
		if scene.Dataset > 0 {
			number(int64(scene.Dataset))
		}
		if s.length > 0 {
			number(scene.Step)
			number(int64(scene.Rank))
		}
		if scene.Timed {
			number(scene.Time)
		}
	}
	_, _ = w.Write(b)
}
