package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/store/catalog"
)

// warn adds the warnings and notes about the dataset.
func (m *maker) warn() {
	if n := max(m.nBad, m.Skipped); n > 0 {
		text := plural(n, "sample", "samples") + " cannot be read"
		if slices.ContainsFunc(m.Report.Fields, func(f Field) bool { return f.Stats != nil }) {
			text += ", or not together with the first, and count in no statistics"
		}
		var items []string
		for _, row := range slices.Sorted(maps.Keys(m.bad)) {
			items = append(items, fmt.Sprintf("sample %d: %s", row, m.bad[row]))
		}
		m.alarm(text+".", withMore(items, n))
	}
	for i := range m.Report.Fields {
		if field := &m.Report.Fields[i]; field.Kind == catalog.Raster {
			m.warnRaster(field)
		} else if field.Missing > 0 {
			m.note(fmt.Sprintf("Field %q has no value in %s.", field.Name, plural(field.Missing, "sample", "samples")))
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
	for _, mixed := range []struct {
		what  string
		tally *Tally
	}{{"shapes", &f.Shapes}, {"CRSs", &f.CRS}, {"nodata values", &f.NoData}} {
		counts := mixed.tally.Counts()
		if len(counts) < 2 {
			continue
		}
		var items []string
		for _, c := range counts[:min(len(counts), maxNamed)] {
			items = append(items, fmt.Sprintf("%s: %s", c.Name, plural(c.N, "asset", "assets")))
		}
		m.alarm(fmt.Sprintf("Field %q has assets of different %s.", f.Name, mixed.what),
			withMore(items, int64(len(counts))))
	}
	if f.Assets > 0 && f.NoData.counts[none] == f.Assets && !f.Mask {
		m.note(fmt.Sprintf("Field %q declares no nodata value: a fill value would count as data.", f.Name))
	}
	if f.Stats == nil {
		return
	}
	bands := map[string][]string{}
	for i, band := range f.Stats.Bands {
		name, total := f.BandName(i), band.Count+band.NoData+band.NaN+band.Inf
		add := func(what, item string) { bands[what] = append(bands[what], item) }
		switch {
		case band.Count == 0:
			add("has bands without a valid pixel", name)
		case band.Min.String() == band.Max.String():
			add("has bands of one value", fmt.Sprintf("%s: %s", name, band.Min))
		}
		if band.NaN > 0 {
			add("has NaN that is not nodata", fmt.Sprintf("%s: %s", name, percent(band.NaN, total)))
		}
		if band.Inf > 0 {
			add("has infinite values", fmt.Sprintf("%s: %s", name, percent(band.Inf, total)))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(bands)) {
		items := bands[what]
		m.alarm(fmt.Sprintf("Field %q %s.", f.Name, what),
			withMore(slices.Clip(items[:min(len(items), maxNamed)]), int64(len(items))))
	}
}

// withMore adds to the first of n items how many more there are.
func withMore(first []string, n int64) []string {
	if hidden := n - int64(len(first)); hidden > 0 && len(first) > 0 {
		return append(first, fmt.Sprintf("and %s more", thousands(hidden)))
	}
	return first
}
