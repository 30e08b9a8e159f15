package loader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

// compileGround finds out where windows on the ground may lie.
func (d *dataset) compileGround(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	sampler := &d.sampler
	switch {
	case len(d.rasters) == 0:
		return fmt.Errorf("spec: sampler: kind %q needs a raster", sampler.Kind)
	}
	for _, field := range d.rasters {
		if field.TimeAxis {
			return fault.New(fault.Unsupported, "field "+field.Name,
				"it has steps of time: windows on the ground are for rasters without them")
		}
	}
	for _, view := range d.ofViews() {
		for _, field := range view.rasters {
			field.OnGround()
		}
	}
	if err := d.checkLeads(); err != nil {
		return err
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
	d.ground, d.steps = set.Finder, sampler.Length
	for _, view := range d.ofViews() {
		if view != d {
			side, _ := view.sampler.Side()
			view.ground, view.steps = set.View(side, view.sampler.Resolution, d.sideOf(view)), d.steps
		}
	}
	to.Kind = set.Ground
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
func (g *windowing) within(ctx context.Context, e *Engine) (list []scenes.Area, _ error) {
	sampler := &g.sampler
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
	if area.Parts, area.CRS, err = shapes.Polygons(ctx, opener, path); err != nil {
		return area, err
	}
	if area.CRS == nil {
		return area, fault.New(fault.Unsupported, "CRS", "%s does not say which", path)
	}
	if len(area.Parts) == 0 {
		return area, fault.New(fault.Unsupported, "shapes", "%s has no polygon", path)
	}
	return area, nil
}

// checkLeads returns an error if one of several datasets has no raster that says where its scenes lie.
func (d *dataset) checkLeads() error {
	if d.table.Joined == nil { // compileFields has chosen one
		return nil
	}
	for k := range d.table.Joined.Count() {
		mine := slices.DeleteFunc(slices.Clone(d.rasters), func(r *pixels.Raster) bool { return !d.holds(r, k) })
		if len(mine) > 0 && !slices.ContainsFunc(mine, func(r *pixels.Raster) bool { return !r.MayLack() }) {
			return noLead(&mine[0].Field)
		}
	}
	return nil
}

// scenes returns the selected rows with the places of their first raster, but for those that are left out.
func (d *dataset) scenes(ctx context.Context, e *Engine) ([]scenes.Scene, error) {
	count := d.rows.Len(d.table.N)
	if count > maxMeasured {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset",
			"%d scenes: windows on the ground see at most %d", count, maxMeasured), d.source.Source)
	}
	list := make([]scenes.Scene, count)
	d.badScenes.of = count
	var mu sync.Mutex // guards d.badScenes
	// At least 4, because reading a header is mostly waiting.
	err := each.Of(ctx, count, max(e.options.Workers, 4), func(ctx context.Context, i int64) error {
		row := d.rows.At(i)
		number, lead := d.leads(row)
		asset, err := d.table.Fields[lead].Asset(ctx, row)
		if err == nil {
			err = asset.Fault(asset.Unplaced("windows on the ground need"))
		}
		if err == nil {
			list[i] = scenes.Scene{Row: row, Name: asset.Name(), Place: *asset.Place, Dataset: number,
				Beside: d.table.Joined != nil && !d.table.Joined.Leads(number)}
			return nil
		}
		list[i].Row = -1
		mu.Lock()
		defer mu.Unlock()
		if err := d.badScenes.add(e, err); err != nil {
			return fmt.Errorf("the place of scene %d, which this sampler needs: %w", row, err)
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

// matchable records the times of scenes if a field selects scenes by time. It fails with kind not found if all scenes
// of a dataset lack the value that Field.Match compares: the field would be missing in all steps.
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
			return rows.InField(field.Name, fault.New(fault.NotFound, "match",
				"it is %q, and no scene of %s %s", field.Match, what, lacks))
		}
	}
	return nil
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

// checkGround compares the places of the rasters of all selected rows, where a catalog knows them. It logs how many
// rows are misplaced. With the policy "error" the first of them is its error, because the run would meet it anyway, but
// hours later.
func (d *dataset) checkGround(ctx context.Context, e *Engine) error {
	if len(d.rasters) < 2 || d.kind.Ground {
		return nil
	}
	lead := d.rasters[0]
	for _, field := range d.rasters[1:] {
		if field.Ground == spec.IgnoreGround {
			continue
		}
		count, first := 0, error(nil)
		err := d.table.Misplaced(ctx, lead.TableColumn, field.TableColumn, d.rows, func(_ int64, err error) {
			if count++; first == nil {
				first = err
			}
		})
		if err != nil {
			return err
		}
		if count == 0 {
			continue
		}
		e.options.Logger.Warn("rasters of samples lie at different places on the ground", "source", d.source.Source,
			"field", field.Name, "samples", count, "first", fault.Line(first))
		if e.spec.BadSamples == spec.BadError {
			return rows.InField(field.Name, first)
		}
	}
	return nil
}
