package columns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// Compute computes columns of samples from their rasters: see Parse.
type Compute struct {
	// Classes are the classes of categorical rasters by their path below the samples, "" for samples that are files.
	// Their geotiff:stats is the share of each class, in this order, in place of moments and percentiles.
	Classes map[string][]int64
	// Workers is how many rasters are counted at a time for Histograms. The default is the number of processors.
	Workers int
	// Old selects the columns of TACO 0.2: stats are stats:mean, stats:min, stats:max and stats:std, and stac
	// is for levels without stac:crs.
	Old bool

	names      map[string]bool
	kilometres float64
	split      shuffle.Split
}

// Stream adds the columns of rasters in a streaming TACO, in the form of TACO 0.2, and puts the histograms into o.
// opener opens the files of samples.
func (c *Compute) Stream(o *build.Options, opener source.Opener) {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names["stac"], c.names["stats"], c.Old = true, true, true
	o.Histograms = func(ctx context.Context, levels []build.Level) ([]build.Histogram, error) {
		return c.Histograms(ctx, opener, levels)
	}
}

// Check returns an error, without a kind, about members that do not go together.
func (c *Compute) Check() error {
	if len(c.Classes) > 0 && !c.names["stats"] {
		return errors.New("classes are for the extension stats")
	}
	return nil
}

// Inspect implements build.Options.Inspect. Rasters are TIFFs, rumi files, PNGs and JPEGs; other files, and padding,
// have nulls. A raster that cannot be read is an error that names its sample.
//
// Levels with a raster get the columns of the raster. A folder gets the columns about the place of its first raster:
// stac and istac. Level 0 alone gets majortom and split.
func (c *Compute) Inspect(levels []build.Level) build.Inspection {
	rasters := make([][]*Raster, len(levels))
	for k := range levels {
		rasters[k] = make([]*Raster, len(levels[k].Rows))
	}
	inspection := build.Inspection{Columns: func(ctx context.Context) ([]*tables.Table, error) {
		return c.columns(ctx, levels, rasters)
	}}
	if !c.reads() {
		return inspection
	}
	spaces := sync.Pool{New: func() any { return &space{} }} // as many are used as files are read at a time
	inspection.File = func(ctx context.Context, k, row int, r source.Reader) (err error) {
		free := spaces.Get().(*space)
		defer spaces.Put(free)
		below, path := paths(levels, k, row)
		rasters[k][row], err = c.raster(ctx, free, r, below, path)
		return err
	}
	return inspection
}

// columns returns the columns of each level, of its rasters; other files have nil.
func (c *Compute) columns(ctx context.Context, levels []build.Level, rasters [][]*Raster) ([]*tables.Table, error) {
	if err := c.checkClasses(levels, rasters); err != nil {
		return nil, err
	}
	inherit(levels, rasters)
	out := make([]*tables.Table, len(levels))
	for k := range levels {
		set, err := c.level(ctx, levels, rasters, k)
		if err != nil {
			return nil, fault.WithPart(err, "level "+string(rune('0'+k)), fault.NoOffset)
		}
		if len(set.names) > 0 {
			out[k] = set.Table()
		}
	}
	return out, nil
}

// checkClasses refuses classes of rasters that are not there: a path with a mistake would leave the categories in all
// rasters to be averaged like measurements.
func (c *Compute) checkClasses(levels []build.Level, rasters [][]*Raster) error {
	found := map[string]bool{}
	for k := range rasters {
		for i, r := range rasters[k] {
			if r != nil && len(c.Classes) > 0 {
				below, _ := paths(levels, k, i)
				found[below] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.Classes)) {
		switch {
		case found[path]:
		case path == "":
			return fault.New(fault.NotFound, "classes", fault.NoOffset,
				"no sample is a raster itself: name one below the samples, such as label.tif=0-9")
		default:
			return fault.New(fault.NotFound, "classes", fault.NoOffset, "no sample has a raster %q", path)
		}
	}
	return nil
}

// reads reports whether a column needs the rasters.
func (c *Compute) reads() bool {
	return len(c.wanted(true)) > 0 || len(c.wanted(false)) > 0 || c.names["majortom"]
}

// paths returns the ids of a row from the one below level 0 on, and from level 0 on.
func paths(levels []build.Level, k, row int) (below, path string) {
	path = levels[k].Rows[row].ID
	for ; k > 0; k-- {
		below = path
		row = int(levels[k].Rows[row].Parent)
		path = levels[k-1].Rows[row].ID + "/" + path
	}
	return below, path
}

// inherit gives each folder the raster of its first row that has one.
func inherit(levels []build.Level, rasters [][]*Raster) {
	for k := len(levels) - 1; k > 0; k-- {
		for i := range levels[k].Rows {
			up := levels[k].Rows[i].Parent
			if rasters[k][i] != nil && rasters[k-1][up] == nil {
				rasters[k-1][up] = rasters[k][i]
			}
		}
	}
}

// wanted returns the columns of rasters that are computed, about place or not.
func (c *Compute) wanted(place bool) (names []string) {
	extensions := maps.Clone(c.names)
	if c.Old {
		extensions[oldStats], extensions["stats"] = extensions["stats"], false
	}
	for _, column := range columns {
		is := func(extension string) bool { return extensions[extension] }
		if column.place == place && slices.ContainsFunc(column.extensions, is) {
			names = append(names, column.name)
		}
	}
	return names
}

// level returns the columns of level k.
func (c *Compute) level(ctx context.Context, levels []build.Level, rasters [][]*Raster, k int) (*Set, error) {
	set, rows := &Set{}, levels[k].Rows
	files := slices.Clone(rasters[k]) // a folder has no pixels of its own
	ids := make([]string, len(rows))
	for i := range rows {
		if rows[i].Folder {
			files[i] = nil
		}
		if !rows[i].Padding {
			ids[i] = rows[i].ID
		}
	}
	exists := func(r *Raster) bool { return r != nil }
	if slices.ContainsFunc(rasters[k], exists) && !(c.Old && levels[k].Table.Index(CRS) >= 0) {
		set.Rasters(rasters[k], c.wanted(true))
	}
	for _, extension := range []string{"stac", "istac"} {
		if !c.names[extension] {
			continue
		}
		if err := c.times(ctx, set, &levels[k], extension+":"); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(files, exists) {
		set.Rasters(files, c.wanted(false))
	}
	if k > 0 {
		return set, nil
	}
	points, err := centroids(ctx, &levels[0], rasters[0])
	if err != nil {
		return nil, err
	}
	c.samples(set, ids, points)
	return set, nil
}

// centroids returns the centre of each sample: of its raster, or as the column stac:centroid says that it has.
func centroids(ctx context.Context, l *build.Level, rasters []*Raster) ([][2]float64, error) {
	points := make([][2]float64, len(l.Rows))
	var known *tables.Vector
	if i := l.Table.Index(Centroid); i >= 0 && l.Table.Columns()[i].Type.Kind == tables.Binary {
		var err error
		if known, err = l.Table.At(ctx, i); err != nil {
			return nil, err
		}
	}
	for i := range points {
		if points[i] = [2]float64{math.NaN(), math.NaN()}; rasters[i] != nil {
			points[i] = rasters[i].LonLat
		}
		if known == nil || known.Null(i) || !math.IsNaN(points[i][0]) {
			continue
		}
		if x, y, err := wkb.Point(known.Bytes(i)); err == nil && math.Abs(x) <= 180 && math.Abs(y) <= 90 {
			points[i] = [2]float64{x, y}
		}
	}
	return points, nil
}

// samples adds the columns that level 0 alone has. The id of padding is "".
func (c *Compute) samples(set *Set, ids []string, points [][2]float64) {
	if c.names["majortom"] {
		g := newGrid(c.kilometres)
		set.Add(gridCode, build.Texts(len(ids), func(i int) string { return g.code(points[i]) }))
	}
	if c.names[splitName] {
		set.Add(splitName, build.Texts(len(ids), func(i int) string {
			if ids[i] == "" {
				return ""
			}
			return c.split.Shares[c.split.OfText(ids[i])].Name
		}))
	}
}

// The columns of times of the extensions stac and istac, without their prefix.
const (
	timeStart  = "time_start"
	timeEnd    = "time_end"
	timeMiddle = "time_middle"
)

// timestamps is the type of the columns of times: microseconds since 1970, in UTC.
var timestamps = tables.Type{Kind: tables.Timestamp}

// times casts the columns of times that a level has for an extension to timestamps. If there is an end, it adds the
// middle, rounded down to a microsecond as tacotoolbox does. A time is a timestamp, a date, a number
// of microseconds since 1970, or text such as 2024-05-01T10:00:00Z. An end before its start is an error.
func (c *Compute) times(ctx context.Context, set *Set, l *build.Level, prefix string) error {
	start, err := timesOf(ctx, l, prefix+timeStart)
	if start == nil || err != nil {
		return err
	}
	set.Add(prefix+timeStart, start)
	end, err := timesOf(ctx, l, prefix+timeEnd)
	if end == nil || err != nil {
		return err
	}
	set.Add(prefix+timeEnd, end)
	middle, none := make([]int64, len(l.Rows)), make([]bool, len(l.Rows))
	for i := range middle {
		if none[i] = start.Null(i) || end.Null(i); none[i] {
			continue
		}
		first, last := start.Int(i), end.Int(i)
		if first > last {
			return fault.New(fault.Corrupt, fmt.Sprintf("sample %q", l.Rows[i].ID), fault.NoOffset,
				"%s is %s, after %s, which is %s", prefix+timeStart, tables.FormatTimestamp(first), prefix+timeEnd,
				tables.FormatTimestamp(last))
		}
		// Half of the difference is added, because their sum would overflow for times far away.
		middle[i] = first + int64(uint64(last-first)/2)
	}
	if l.Table.Index(prefix+timeMiddle) < 0 {
		set.Add(prefix+timeMiddle, tables.NewInts(timestamps, middle, none))
	}
	return nil
}

// timesOf returns a column as timestamps, or nil if the level does not have it.
func timesOf(ctx context.Context, l *build.Level, name string) (*tables.Vector, error) {
	if l.Table.Index(name) < 0 {
		return nil, nil
	}
	values, err := l.Table.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	switch values.Kind() {
	case tables.Timestamp:
		return values, nil
	case tables.Date, tables.Int64, tables.String:
		values, err = build.Cast(values, timestamps)
		return values, fault.WithPart(err, "column "+name, fault.NoOffset)
	}
	return nil, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "is of type %v, not of times",
		values.Type())
}

// Columns that level 0 alone has.
const (
	gridCode  = "majortom:code"
	splitName = "split"
)

// Extensions are the names that Parse accepts, in the order of the help.
var Extensions = []string{"stac", "istac", "stats", "scaling", "header", "index", "rumi", "majortom", "split"}

// defaultKilometres is the spacing of the grid of majortom where none is given; tacotoolbox has the same.
const defaultKilometres = 100

// Parse reads a list of extensions, such as "stac,stats,majortom=50". Errors have no kind.
func Parse(list string) (*Compute, error) {
	compute := &Compute{names: map[string]bool{}}
	for item := range strings.SplitSeq(list, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if !slices.Contains(Extensions, name) {
			return nil, fmt.Errorf("%q must be one of %s", name, strings.Join(Extensions, ", "))
		}
		if compute.names[name] {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		compute.names[name] = true
		if err := compute.set(name, value, given); err != nil {
			return nil, err
		}
	}
	return compute, nil
}

// set sets the value of an extension.
func (c *Compute) set(name, value string, given bool) (err error) {
	switch {
	case name == "majortom":
		c.kilometres = defaultKilometres
		if given {
			c.kilometres, err = strconv.ParseFloat(value, 64)
		}
		// A code has the spacing in whole kilometres, of four digits, and four digits for a row and a column: rows and
		// columns of 5 km are 4,008 to each side of the zero.
		if err != nil || c.kilometres != float64(int(c.kilometres)) || c.kilometres < 5 || c.kilometres > 9999 {
			return fmt.Errorf("majortom=%s: it must be whole kilometres from 5 to 9999", value)
		}
	case name == splitName:
		c.split, err = parseShares(value)
		return err
	case given:
		return fmt.Errorf("%s takes no value, and has %q", name, value)
	}
	return nil
}

// parseShares reads shares such as "train:0.8/validation:0.2".
func parseShares(text string) (s shuffle.Split, err error) {
	var names []string
	var weights []float64
	for part := range strings.SplitSeq(text, "/") {
		name, share, _ := strings.Cut(part, ":")
		weight, err := strconv.ParseFloat(share, 64)
		if err != nil || name == "" || slices.Contains(names, name) {
			return s, fmt.Errorf("split=%s: it must be shares such as train:0.8/validation:0.2", text)
		}
		names, weights = append(names, name), append(weights, weight)
	}
	if s, err = shuffle.NewSplit(0, names, weights); err == nil {
		err = s.Check()
	}
	return s, err
}

// ParseClasses reads which classes a raster has, for Compute.Classes: "0,1,2" or "0-9" of samples that are files, and
// "label.tif=0-9" of the files label.tif below the samples. Errors have no kind.
func ParseClasses(text string) (path string, classes []int64, err error) {
	if i := strings.LastIndex(text, "="); i >= 0 {
		path, text = text[:i], text[i+1:]
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		lowest, err := strconv.ParseInt(first, 10, 32)
		highest := lowest
		if err == nil && ranged {
			highest, err = strconv.ParseInt(last, 10, 32)
		}
		if err != nil || highest < lowest {
			return "", nil, fmt.Errorf("%q is not a list of classes such as 0,1,2 or label.tif=0-9", text)
		}
		if highest-lowest >= maxClasses-int64(len(classes)) {
			return "", nil, fmt.Errorf("%q has more than %d classes", text, maxClasses)
		}
		for v := lowest; v <= highest; v++ {
			if slices.Contains(classes, v) {
				return "", nil, fmt.Errorf("%q has class %d twice", text, v)
			}
			classes = append(classes, v)
		}
	}
	return path, classes, nil
}

// maxClasses bounds the classes of a raster: each row of geotiff:stats has a number for each.
const maxClasses = 1024
