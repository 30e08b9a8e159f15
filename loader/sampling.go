package loader

import "github.com/chaski-eo/chaski/loader/spec"

// resamples reports whether windows have another size in the tensor.
func (g *windowing) resamples() bool {
	return g.kind.Resamples && (g.boxes == nil || g.sampler.Fit == spec.FitResize)
}

// pooled reports whether chunks of windows come from tiles that workers share: of windows drawn tile by tile, and of
// views that lie beside them.
func (d *dataset) pooled() bool {
	return d.kind.Tiles || d.views != nil && d.views.all[0].kind.Tiles && d.sampler.MinOverlap > 0
}

// drawsNoCorner reports whether tickets may not name the corners of windows.
func (d *dataset) drawsNoCorner() bool {
	return !d.kind.Corners || len(d.sampler.Sizes) > 0 || d.views != nil
}

// sharesChunks reports whether windows of one batch may need the same chunk, and say which before they are read:
// windows of one raster, or chips whose chunks hold several samples. named is for windows whose corners a ticket names.
// Rasters in large pages say nothing before: that would read their pages once more.
func (d *dataset) sharesChunks(named bool) bool {
	windows := d.kind.Shares && (d.sampler.PerAsset != 1 || named && !d.drawsNoCorner())
	if d.views != nil || d.ground != nil || d.table.Announces() {
		return false
	}
	return windows || d.together > 1
}
