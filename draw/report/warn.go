package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/store/catalog"
)

// warn adds the warnings and notes about the dataset.
func (m *maker) warn() {
	if n := max(m.nBad, m.Skipped); n > 0 {
		text := plural(n, "sample", "samples") + " cannot be read"
		if m.measured() {
			text = plural(n, "sample", "samples") +
				" cannot be read, or do not fit the first, and are not in the statistics"
			if n == 1 {
				text = "1 sample cannot be read, or does not fit the first, and is not in the statistics"
			}
		}
		m.alarm(text+".", m.badItems(n))
	}
	for i := range m.Report.Fields {
		if field := &m.Report.Fields[i]; field.Kind == catalog.Raster {
			m.warnRaster(field)
		} else if field.Values.Null > 0 {
			m.note(fmt.Sprintf("Field %q has no value in %s.", field.Name, plural(field.Values.Null, "sample",
				"samples")))
		}
	}
	if m.misplaced > 0 {
		m.alarm(plural(m.misplaced, "raster lies", "rasters lie")+
			" at another place on the ground than the first raster of the sample.", withMore(m.elsewhere, m.misplaced))
	}
	if m.unplaced > 0 {
		m.note("Rasters without a place on the ground are paired by their sizes.")
	}
}

func (m *maker) warnRaster(f *Field) {
	mixed := func(t *Tally, what string) {
		if t.Kinds() > 1 {
			m.alarm(fmt.Sprintf("Field %q has assets of different %s.", f.Name, what), f.list(t))
		}
	}
	mixed(&f.Shapes, "shapes")
	mixed(&f.CRS, "CRSs")
	mixed(&f.NoData, "nodata values")
	if f.Assets > 0 && f.NoData.n[none] == f.Assets && len(f.Classes) == 0 {
		m.note(fmt.Sprintf("Field %q declares no nodata value: a fill value would count as data.", f.Name))
	}
	if f.Stats == nil {
		return
	}
	var empty, flat, nan, inf []string
	for i, band := range f.Stats.Bands {
		name, total := f.BandName(i), band.Count+band.NoData+band.NaN+band.Inf
		switch {
		case band.Count == 0:
			empty = append(empty, name)
		case band.Min.String() == band.Max.String():
			flat = append(flat, fmt.Sprintf("%s: %s", name, band.Min))
		}
		if band.NaN > 0 {
			nan = append(nan, fmt.Sprintf("%s: %s", name, draw.Percent(band.NaN, total)))
		}
		if band.Inf > 0 {
			inf = append(inf, fmt.Sprintf("%s: %s", name, draw.Percent(band.Inf, total)))
		}
	}
	for _, e := range []struct {
		what  string
		items []string
	}{
		{"has bands without a valid pixel", empty}, {"has bands of one value", flat},
		{"has NaN that is not nodata", nan}, {"has infinite values", inf},
	} {
		if len(e.items) > 0 {
			m.alarm(fmt.Sprintf("Field %q %s.", f.Name, e.what), short(e.items))
		}
	}
}

func (f *Field) list(t *Tally) (items []string) {
	for _, c := range t.Counts() {
		items = append(items, fmt.Sprintf("%s: %s", c.Name, plural(c.N, "asset", "assets")))
	}
	items = short(items)
	if t.Other > 0 {
		items = append(items, fmt.Sprintf("others: %d", t.Other))
	}
	return items
}

// short returns the first of some items.
func short(items []string) []string {
	return withMore(slices.Clip(items[:min(len(items), maxNamed)]), int64(len(items)))
}

// withMore adds to the first of n items how many more there are.
func withMore(first []string, n int64) []string {
	if hidden := n - int64(len(first)); hidden > 0 && len(first) > 0 {
		return append(first, fmt.Sprintf("and %s more", thousands(hidden)))
	}
	return first
}

func (m *maker) measured() bool {
	return slices.ContainsFunc(m.Report.Fields, func(f Field) bool { return f.Stats != nil })
}

func (m *maker) badItems(n int64) (items []string) {
	for _, row := range slices.Sorted(maps.Keys(m.bad)) {
		items = append(items, fmt.Sprintf("sample %d: %s", row, m.bad[row]))
	}
	return withMore(items, n)
}
