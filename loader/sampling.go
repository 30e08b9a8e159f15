package loader

import (
	"github.com/chaski-eo/chaski/loader/spec"
)

// resamples reports whether windows have another size in the tensor.
func (d *dataset) resamples() bool {
	return d.kind.resamples && (d.boxes == nil || d.sampler.Fit == spec.FitResize)
}

// byTile reports whether windows are drawn tile by tile, out of tiles that workers share.
func (d *dataset) byTile() bool { return d.sampler.Kind == spec.TileWindow }

// onGround reports whether windows lie at places on the ground.
func (d *dataset) onGround() bool { return d.sampler.Kind == spec.GeoWindow }

// drawsNoCorner reports whether tickets may not name the corners of windows.
func (d *dataset) drawsNoCorner() bool { return !d.kind.corners || len(d.sampler.Sizes) > 0 }

// sharesChunks reports whether windows of one batch may need the same chunk, and say which before they are read. named
// is for windows whose corners a ticket names.
func (d *dataset) sharesChunks(named bool) bool {
	return d.kind.shares && (d.sampler.PerAsset != 1 || named && !d.drawsNoCorner())
}
