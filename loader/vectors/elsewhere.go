package vectors

import (
	"fmt"
	"sync"

	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// manyImages is how many images lie beside the shapes of their file before the log says so. A file may be of a part of
// the scenes, and few of these then come first by chance: of 16 scenes of a half of all, one in 65,536 times.
const manyImages = 16

// elsewhere notices shapes that lie elsewhere than the images, as those of another region or of a wrong CRS do: their
// masks would be empty without a word.
type elsewhere struct {
	mu     sync.Mutex
	images map[string]bool // beside their shapes; nil once one lies among them, or the log has said so
	most   int             // before the log says so
}

// note looks where the image of a picture lies.
func (e *elsewhere) note(p *picture, a *catalog.Asset) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.images == nil {
		return
	}
	minX, minY, maxX, maxY, ok := p.file.layer.Bounds()
	if !ok {
		return
	}
	whole := *p
	height, width := a.Index.Height, a.Index.Width
	whole.Height, whole.Width = height, width
	whole.Transform = gridOf(a.Place, height, width, shuffle.Box{H: height, W: width}, height, width)
	lo, hi := whole.bounds()
	for _, turn := range []float64{0, -p.to.from, p.to.from} {
		if lo[0]+turn <= maxX && minX <= hi[0]+turn && lo[1] <= maxY && minY <= hi[1] {
			e.images = nil
			return
		}
	}
	if e.images[a.URI] = true; len(e.images) < e.most {
		return
	}
	e.images = nil
	corners := func(lo, hi crs.Point) string {
		return fmt.Sprintf("(%.7g, %.7g, %.7g, %.7g)", lo[0], lo[1], hi[0], hi[1])
	}
	p.field.logger.Warn("no image has shapes so far: the shapes lie elsewhere, or in another CRS than the file says",
		"field", p.field.Name, "file", p.file.path, "crs", p.file.from,
		"shapes in", corners(crs.Point{minX, minY}, crs.Point{maxX, maxY}),
		"images", e.most, "such as", a.URI, "in", corners(lo, hi))
}
