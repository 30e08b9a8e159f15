package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// compileGround finds out where windows on the ground may lie.
func (d *dataset) compileGround(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	sampler := &d.sampler
	switch {
	case len(d.rasters) == 0:
		return fmt.Errorf("spec: sampler: kind %q needs a raster", sampler.Kind)
	case d.table.Array:
		return fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"images of arrays do not say where they lie: windows on the ground are for rasters that do")
	}
	for _, field := range d.rasters {
		if field.TimeAxis {
			return fault.New(fault.Unsupported, "field "+field.Name, fault.NoOffset,
				"it has steps of time: windows on the ground are for rasters without them")
		}
		field.OnGround()
	}
	list, err := d.scenes(ctx, e)
	if err != nil {
		return err
	}
	if err := d.preferred(ctx, list, sampler.Pick); err != nil {
		return err
	}
	if err := d.stepped(ctx, list); err != nil {
		return err
	}
	if err := d.matchable(list); err != nil {
		return err
	}
	options := scenes.Options{Resolution: sampler.Resolution, Edge: sampler.Edge, Samples: sampler.PerEpoch,
		CRS: string(sampler.GeoWindows.CRS), Length: sampler.Length}
	if j := d.table.Joined; j != nil && sampler.Cover != spec.CoverAny {
		options.All = j.Count()
	}
	options.Side, options.Stride = sampler.Side()
	if options.Within, err = d.within(ctx, e); err != nil {
		return err
	}
	options.Part = partOf(&d.source.Subset)
	options.Bad = func(_ *scenes.Scene, err error) error { return d.badScenes.add(e, err) }
	set, err := scenes.New(list, options)
	if err != nil {
		if d.badScenes.first != nil && d.badScenes.n == d.badScenes.of {
			err = d.badScenes.first
		}
		return fault.WithFile(err, d.source.Source)
	}
	d.badScenes.warn(e, d.source.Source)
	if set.Past > 0 {
		e.options.Logger.Warn("scenes reach past the latitudes of UTM, where windows end: give another crs to have "+
			"all of them", "source", d.source.Source, "scenes", set.Past)
	}
	d.ground, d.steps = set, sampler.Length
	to.Kind = set.Ground
	d.hasDigest = true
	set.Digest(d.digest)
	return nil
}

// partOf returns the part of a split by place that a subset uses, or nil.
func partOf(s *spec.Subset) *scenes.Part {
	if s.Split == nil || s.Split.OfRows() {
		return nil
	}
	split, size := s.Split.Hash(), s.Split.Size
	share := slices.IndexFunc(s.Split.Shares, func(p spec.Share) bool { return p.Name == s.Use })
	return &scenes.Part{Size: size, Margin: s.Split.MarginM, Has: func(lon, lat float64) bool {
		return split.OfCell([4]float64{lon, lat, lon, lat}, size) == share
	}}
}

// within returns the areas of Bounds and ROI.
func (d *dataset) within(ctx context.Context, e *Engine) (list []scenes.Area, _ error) {
	sampler := &d.sampler
	if sampler.Bounds != nil {
		code := cmp.Or(int(sampler.BoundsCRS), 4326)
		system, err := crs.Lookup(code)
		if err != nil {
			return nil, fmt.Errorf("spec: sampler: bounds_crs: %w", err)
		}
		box, err := crs.NewBox([4]float64(sampler.Bounds), code)
		if err != nil {
			return nil, fmt.Errorf("spec: sampler: bounds: %w", err)
		}
		list = append(list, scenes.Area{CRS: system, Parts: []orb.Polygon{
			orb.Bound{Min: orb.Point{box.West, box.South}, Max: orb.Point{box.East, box.North}}.ToPolygon(),
		}})
	}
	if sampler.ROI == "" {
		return list, nil
	}
	area, err := regionOf(ctx, string(sampler.ROI), e)
	if err != nil {
		return nil, fault.WithPart(err, "roi", fault.NoOffset)
	}
	return append(list, area), nil
}

// inline is GeoJSON that a spec holds. It opens itself under any name.
type inline string

func (t inline) Open(context.Context, string) (source.Reader, error) { return source.Memory(t), nil }

// regionOf reads the polygons of a ROI.
func regionOf(ctx context.Context, roi string, e *Engine) (area scenes.Area, err error) {
	var opener source.Opener = inline(roi)
	path := "roi"
	if !strings.HasPrefix(strings.TrimLeft(roi, " \t\r\n"), "{") {
		opener = e.options.Opener
		if path, err = e.options.Resolve(roi); err != nil {
			return area, err
		}
	}
	layer, err := vector.Open(ctx, opener, path, vector.Options{Grow: budget.Grow})
	if err != nil {
		return area, err
	}
	defer func() { err = errors.Join(err, layer.Close()) }()
	if area.CRS = layer.CRS; area.CRS == nil {
		return area, fault.New(fault.Unsupported, "CRS", fault.NoOffset, "%s does not say which", path)
	}
	for row := range layer.Len() {
		shape, err := layer.Shape(ctx, uint32(row))
		if err != nil {
			return area, err
		}
		area.Parts = polygons(area.Parts, shape)
	}
	if len(area.Parts) == 0 {
		return area, fault.New(fault.Unsupported, "shapes", fault.NoOffset, "%s has no polygon", path)
	}
	return area, nil
}

// polygons appends the polygons of a shape of package wkb.
func polygons(list []orb.Polygon, shape orb.Geometry) []orb.Polygon {
	switch s := shape.(type) {
	case orb.Polygon:
		return append(list, s)
	case orb.Collection:
		for _, part := range s {
			list = polygons(list, part)
		}
	}
	return list
}

// scenes returns the selected rows with the places of their first raster, but for those that are left out.
func (d *dataset) scenes(ctx context.Context, e *Engine) ([]scenes.Scene, error) {
	count, row := d.selected()
	if count > maxMeasured {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset,
			"%d scenes: windows on the ground see at most %d", count, maxMeasured), d.source.Source)
	}
	list := make([]scenes.Scene, count)
	d.badScenes.of = count
	var mu sync.Mutex // guards d.left
	// At least 4, because reading a header is mostly waiting.
	err := each.Of(ctx, count, max(e.options.Workers, 4), func(ctx context.Context, i int64) error {
		dataset, lead := d.leads(row(i))
		asset, err := d.table.Fields[lead].Asset(ctx, row(i))
		if err == nil {
			err = asset.Fault(asset.Unplaced("windows on the ground need"))
		}
		if err == nil {
			list[i] = scenes.Scene{Row: row(i), Name: asset.Name(), Place: *asset.Place, Dataset: dataset,
				Beside: d.table.Joined != nil && !d.table.Joined.Leads(dataset)}
			return nil
		}
		list[i].Row = -1
		mu.Lock()
		defer mu.Unlock()
		if err := d.badScenes.add(e, err); err != nil {
			return fmt.Errorf("the place of scene %d, which this sampler needs: %w", row(i), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s scenes.Scene) bool { return s.Row < 0 })
	if len(list) == 0 {
		return nil, d.badScenes.first
	}
	return list, nil
}

// leads returns the dataset that a row belongs to, and the column of the table with the raster that has the place of
// the scene.
func (d *dataset) leads(row int64) (dataset, column int) {
	joined := d.table.Joined
	if joined == nil {
		return 0, d.rasters[0].TableColumn
	}
	k, _ := joined.Dataset(row)
	for _, r := range d.rasters {
		if joined.Has(r.TableColumn, k) {
			return k, r.TableColumn
		}
	}
	panic("loader: a dataset of scenes without a field") // openJoined opens those that fields name
}

// add counts a scene, or returns its error: under the policy "error", or if it is not a fault of the scene.
func (l *leftOut) add(e *Engine, err error) error {
	if e.spec.BadSamples == spec.BadError || fault.KindOf(err) == 0 {
		return err
	}
	if l.n++; l.first == nil || err.Error() < l.first.Error() {
		l.first = err
	}
	return nil
}

// warn logs how many scenes are left out.
func (l *leftOut) warn(e *Engine, source string) {
	if l.n > 0 {
		e.options.Logger.Warn("scenes that no window can show are left out", "source", source, "scenes", l.n,
			"first", fault.Line(l.first))
	}
}

// stepped says which scenes are one step of a sequence, and how steps stand.
func (d *dataset) stepped(ctx context.Context, list []scenes.Scene) error {
	if d.sampler.Length == 0 {
		return nil
	}
	for i := range list {
		list[i].Step, list[i].Rank = -1, i
	}
	if column, days := d.sampler.StepColumn(); column != "" {
		groups, err := rows.GroupsOf(ctx, d.table, column, days)
		if err != nil {
			return fmt.Errorf("spec: sampler: step is %q: %w", d.sampler.Step, err)
		}
		for i := range list {
			list[i].Step = groups[list[i].Row]
		}
	}
	if d.sampler.Order == "" {
		return nil
	}
	ranked := slices.Clone(list)
	slices.SortFunc(ranked, func(a, b scenes.Scene) int { return cmp.Compare(a.Row, b.Row) })
	if err := d.preferred(ctx, ranked, d.sampler.Order); err != nil {
		return err
	}
	rank := make(map[int64]int, len(list))
	for i := range ranked {
		rank[ranked[i].Row] = i
	}
	for i := range list {
		list[i].Rank = rank[list[i].Row]
	}
	return nil
}

// nearest reports whether a field takes scenes by their times.
func (d *dataset) nearest() bool {
	return slices.ContainsFunc(d.fields, func(f Field) bool { return f.Match == spec.MatchNearest })
}

// matchable records the times of scenes if a field selects scenes by time. It fails with kind not found if no scene of
// a dataset has the value that Field.Match compares, since the field would be missing in all steps.
func (d *dataset) matchable(list []scenes.Scene) error {
	if !slices.ContainsFunc(d.fields, func(f Field) bool { return f.Match != "" }) {
		return nil
	}
	type has struct{ time, step bool }
	found := make([]has, d.table.Joined.Count())
	for i := range list {
		scene := &list[i]
		if d.nearest() {
			scene.Time = d.clock.at(scene.Row)
			scene.Timed = scene.Time != rows.NoTime
		}
		known := &found[scene.Dataset]
		known.time, known.step = known.time || scene.Timed, known.step || scene.Step >= 0
	}
	for _, field := range d.rasters {
		for place, known := range found {
			lacks := ""
			switch {
			case field.Match == spec.MatchNearest && !known.time:
				lacks = "has a time in a column of one name for both, such as datetime"
			case field.Match == spec.MatchStep && !known.step:
				lacks = fmt.Sprintf("has a value of the step %q", d.sampler.Step)
			}
			if lacks == "" || !d.table.Joined.Leads(place) && !d.holds(field, place) {
				continue
			}
			what := "the dataset of the steps"
			if !d.table.Joined.Leads(place) {
				what = "its dataset"
			}
			return rows.InField(field.Name, fault.New(fault.NotFound, "match", fault.NoOffset,
				"it is %q, and no scene of %s %s", field.Match, what, lacks))
		}
	}
	return nil
}

// holds reports whether a field has rasters in a dataset.
func (d *dataset) holds(f *pixels.Raster, dataset int) bool {
	j := d.table.Joined
	return j == nil || j.Has(f.TableColumn, dataset)
}

// preferred sorts scenes by a rule such as Pick. Equal ones stay in their order, and those without a value come last.
func (d *dataset) preferred(ctx context.Context, list []scenes.Scene, rule string) error {
	pick, err := spec.ParsePick(rule)
	if err != nil || pick.Column == "" {
		return err
	}
	ranks, present, err := rows.Ranks(ctx, d.table, pick.Column)
	if err != nil {
		return fmt.Errorf("spec: sampler: pick or order is %q: %w", rule, err)
	}
	slices.SortStableFunc(list, func(a, b scenes.Scene) int {
		switch {
		case !present[b.Row] && present[a.Row]:
			return -1
		case !present[b.Row]:
			return 0
		case !present[a.Row]:
			return 1
		}
		c := cmp.Compare(ranks[a.Row], ranks[b.Row])
		if pick.Greatest {
			c = -c
		}
		return c
	})
	// The row of a window is then of the first dataset that has a scene there. Datasets whose scenes are steps of one
	// sequence count as one.
	dates := func(s *scenes.Scene) int {
		if d.sampler.Length > 0 && !s.Beside {
			return 0
		}
		return s.Dataset
	}
	slices.SortStableFunc(list, func(a, b scenes.Scene) int { return cmp.Compare(dates(&a), dates(&b)) })
	return nil
}

// windowAsset returns the window of a draw as an asset that lies where it lies and has no pixels.
func (d *dataset) windowAsset(p *shuffle.Plan, draw *shuffle.Draw) catalog.Asset {
	place := p.Place(draw)
	side, _ := d.sampler.Side()
	return catalog.Asset{
		URI: d.source.Source, Place: d.ground.Place(place), Index: &chunk.Index{Height: side, Width: side},
	}
}

// sceneRows returns the rows of the scenes that a field of a draw's window takes pixels from, the preferred ones
// first: in a sequence the rows of a step; padding has no rows. With the mosaic "none" it is the first one.
func (d *dataset) sceneRows(p *shuffle.Plan, draw *shuffle.Draw, f *pixels.Raster, step int) []int64 {
	if d.sampler.Mosaic != spec.MosaicNone {
		return d.all(p.Place(draw), f, step)
	}
	if d.steps == 0 && d.table.Joined == nil {
		return []int64{draw.Row}
	}
	all := d.all(p.Place(draw), f, step)
	return all[:min(len(all), 1)]
}

// all returns what sceneRows returns with every mosaic but "none".
func (d *dataset) all(place shuffle.Place, f *pixels.Raster, step int) []int64 {
	if f.Steps == 0 {
		return d.of(f, d.ground.Rows(nil, place))
	}
	steps := d.ground.Steps(place)
	if step >= len(steps) {
		return nil
	}
	if f.Match == "" {
		return d.of(f, steps[step].Rows)
	}
	has := func(dataset int) bool { return d.holds(f, dataset) }
	if f.Match == spec.MatchStep {
		return d.ground.SameStep(place, &steps[step], has)
	}
	limit := int64(math.MaxInt64)
	if f.MatchDays > 0 {
		limit = int64(f.MatchDays * day)
	}
	return d.ground.Nearest(place, &steps[step], has, limit)
}

// day is a day in microseconds, as scenes.Scene.Time counts.
const day = 24 * 60 * 60 * 1e6

// of returns the rows among some in which a field has rasters.
func (d *dataset) of(f *pixels.Raster, seen []int64) []int64 {
	if d.table.Joined == nil {
		return seen
	}
	var places []int64
	for _, row := range seen {
		if k, _ := d.table.Joined.Dataset(row); d.holds(f, k) {
			places = append(places, row)
		}
	}
	return places
}

// eachScene calls do for the reads of a draw's window on the ground from the scenes that it sees, the preferred ones
// first. Where the window is coarser, a scene is one of its overviews. part is the part of a stack that the field is,
// or -1. It stops when do returns false.
func (e *Engine) eachScene(ctx context.Context, d *dataset, draw *shuffle.Draw, field, part, step int,
	do func(*read) (more bool, _ error)) error {
	window := d.ground.Window(e.plan.Place(draw))
	whole := d.rasters[field]
	sceneRows := d.sceneRows(e.plan, draw, whole, step)
	for i, row := range sceneRows {
		asset, err := d.table.Fields[whole.TableColumn].Asset(ctx, row)
		if err != nil {
			return err
		}
		rd := &read{raster: whole, part: part, row: row, last: i == len(sceneRows)-1}
		if part >= 0 {
			if asset.Parts == nil {
				return asset.Fault(fault.New(fault.Corrupt, "asset", fault.NoOffset, "the stack lost its parts"))
			}
			rd.raster, asset = whole.Parts[part], asset.Parts[part]
			rd.bands = &rd.raster.PickedBands
		}
		if err := rd.raster.Fits(&asset); err != nil {
			return asset.Fault(err)
		}
		if part < 0 {
			if rd.bands, err = d.names.bandsOf(ctx, whole, asset); err != nil {
				return err
			}
		}
		rd.index = asset.Index
		mapping, err := pixels.OnGround(window, &asset)
		if err != nil {
			return err
		}
		if rd.asset, rd.mapping, err = d.coarser(ctx, e, rd.raster, window, asset, mapping); err != nil {
			return err
		}
		var copied bool
		rd.in, copied = rd.raster.Taken(rd.mapping)
		if rd.resampled = !copied; rd.empty() {
			continue
		}
		if goesOn, err := do(rd); err != nil || !goesOn {
			return err
		}
	}
	return nil
}

// eachPiece calls do for a field, or for each part of a stack that it takes bands of, with the part's number or -1.
func eachPiece(f *pixels.Raster, do func(part int, of *pixels.Raster) error) error {
	if f.Parts == nil {
		return do(-1, f)
	}
	for k, part := range f.Parts {
		if part == nil {
			continue
		}
		if err := do(k, part); err != nil {
			return err
		}
	}
	return nil
}

// coarser returns the overview of a scene that has the resolution of a window on the ground, and the mapping to it. m
// is the mapping to the full raster. Without a fitting overview it returns the raster and m.
func (d *dataset) coarser(ctx context.Context, e *Engine, f *pixels.Raster, window warp.Raster, a catalog.Asset,
	m *warp.Mapping) (catalog.Asset, *warp.Mapping, error) {
	overview, err := d.overviewFor(ctx, e, f, string(d.sampler.Overviews), a, m)
	if overview == nil {
		return a, m, err
	}
	mapping, err := pixels.OnGround(window, overview)
	return *overview, mapping, err
}

// overviewFor returns the overview of an asset that a field reads by a rule (spec.AutoOverviews) for a window with this
// mapping to the asset, or nil if it reads the asset itself.
func (d *dataset) overviewFor(ctx context.Context, e *Engine, f *pixels.Raster, rule string, a catalog.Asset,
	m *warp.Mapping) (*catalog.Asset, error) {
	// Overviews were made with what the file declares.
	if !f.WantsOverview(rule, m) || f.NoData != nil {
		return nil, nil
	}
	levels, err := d.overviewsOf(ctx, e.options, a)
	if err != nil {
		return nil, err
	}
	level := pixels.Coarsest(levels.Indexes, m)
	if level < 0 {
		return nil, nil
	}
	overview := pixels.AtOverview(a, levels, level)
	return &overview, nil
}

// overviewBytes bounds the memory of the indexes of overviews, for each dataset. A scene of 10,980 × 10,980 pixels in
// tiles of 512 has four of 11² + 6² + 3² + 2² = 170 chunks, which take 16 bytes each: 8 MiB hold the indexes of about
// 2,000.
const overviewBytes = 8 << 20

// overviewsOf returns the overviews of an asset, from the largest to the smallest. If one is unsupported, such as one
// of other bands, it returns none: the raster itself can be read. One without the mask that the raster has is left out,
// because its masked pixels would count as valid.
func (d *dataset) overviewsOf(ctx context.Context, o resources.Options, a catalog.Asset) (pixels.Levels, error) {
	key := overviewKey{a.URI, a.Member}
	if levels, ok := d.overviews.Get(key); ok { // catalogs have only the indexes of the rasters
		return levels, nil
	}
	levels, err := pixels.Overviews(ctx, o, a)
	if fault.KindOf(err) == fault.Unsupported {
		levels, err = pixels.Levels{}, nil
	}
	if err != nil {
		return levels, a.Fault(err)
	}
	levels.Indexes = slices.DeleteFunc(levels.Indexes,
		func(index *chunk.Index) bool { return a.Index.Mask != nil && index.Mask == nil })
	cost := int64(len(a.URI) + len(a.Member) + 64)
	for _, index := range levels.Indexes {
		for ; index != nil; index = index.Mask {
			cost += 256 + int64(cap(index.Ranges))*16
		}
	}
	if f := levels.File; f != nil {
		cost += 512 + int64(len(f.URI)) + int64(cap(f.Index.Ranges))*16 // with the index that checks its time
	}
	d.overviews.Add(key, levels, cost)
	return levels, nil
}
