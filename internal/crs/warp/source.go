package warp

// Kernel is a way to make a pixel of a window from the raster's pixels around its place.
type Kernel uint8

const (
	// Nearest takes the pixel that holds the place.
	Nearest Kernel = iota
	// Bilinear takes the four pixels around the place. The nearest one stands in for missing ones.
	Bilinear
	// Antialias weights all pixels that a pixel of the window covers, by a tent; missing ones have no
	// weight. A result is missing if more than half of its weight is.
	Antialias
)

// slack covers the nudge and the rounding of the places in a cell.
const slack = 2 * nudge

// Source returns the box around all pixels of the raster that a kernel takes; an empty one if the
// window lies off the raster.
func (m *Mapping) Source(k Kernel) (all Box) {
	for i := range m.cells {
		all = all.join(m.boxOf(k, &m.cells[i]))
	}
	return all
}

func (m *Mapping) boxOf(k Kernel, c *pixelCell) Box {
	low, high := c.at[0][0], c.at[0][0]
	for _, corner := range [...]sourcePlace{c.at[0][1], c.at[1][0], c.at[1][1]} {
		low = sourcePlace{min(low.x, corner.x), min(low.y, corner.y)}
		high = sourcePlace{max(high.x, corner.x), max(high.y, corner.y)}
	}
	y, x := slack+m.reach(k, m.radiusY), slack+m.reach(k, m.radiusX)
	box := Box{int((low.y - y) >> 32), int((low.x - x) >> 32), int((high.y+y)>>32) + 1, int((high.x+x)>>32) + 1}
	raster := m.raster
	return Box{max(box.Y0, raster.Y0), max(box.X0, raster.X0), min(box.Y1, raster.Y1), min(box.X1, raster.X1)}
}

// reach returns how far from a place the centres of pixels lie that a kernel takes, less the half pixel to their
// edges, in units of places.
func (m *Mapping) reach(k Kernel, radius float64) int64 {
	switch k {
	case Bilinear:
		return half
	case Antialias:
		return int64(min(radius, maxSide)*one) - half
	}
	return 0
}
