package vectors

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Remarks on the shapes of a field, beside those on a file of package vector. The rule for all formats: content of a
// file that a batch drops, or shows in another way than its writer meant, is an error or a remark.
const (
	noShapes vector.Remark = "no image has shapes so far: files have none, or the shapes lie elsewhere or in another " +
		"CRS than the file says"
	noValue       vector.Remark = "shapes without a value are left out: unnamed gives them a class"
	otherClass    vector.Remark = "shapes of classes that classes does not name are left out"
	background    vector.Remark = "shapes of the value 0 are drawn as where no shape is: classes gives the first one 1"
	outsideImage  vector.Remark = "shapes lie mostly outside of their image"
	otherImage    vector.Remark = "labels name another image than the one that they are of"
	otherNames    vector.Remark = "no image has shapes: the file of the field names others"
	someNames     vector.Remark = "images that the file does not name are without shapes, and it names others"
	unusedClasses vector.Remark = "classes has names that no shape has"
)

// log logs remarks on a file, each unless the log has it of another file of the field.
func (v *field) log(path string, found vector.Remarks) {
	for _, remark := range slices.Sorted(maps.Keys(found)) {
		if _, said := v.remarks.LoadOrStore(remark, true); !said {
			v.logger.Warn(string(remark), "field", v.Name, "file", path, "shapes", found[remark].N,
				"such as", found[remark].First)
		}
	}
}

// manyImages is how many images lie beside the shapes of their file before the log says so. A file may be of a part of
// the scenes, and few of these then come first by chance: where a sixth of 64 images has objects, one in 100,000
// times.
const manyImages = 64

// elsewhere notices shapes that lie elsewhere than the images, as shapes of another region or in a wrong CRS do, and
// files without shapes: masks would be empty without a word.
type elsewhere struct {
	mu     sync.Mutex
	images map[string]bool // beside their shapes; nil once one lies among them, or the log has said so
	most   int             // before the log says so
}

// expect sets how many images there are.
func (v *field) expect(n int64) { v.beside.most = int(min(max(n, 1), manyImages)) }

// note looks where the image of a picture lies.
func (e *elsewhere) note(ctx context.Context, p *picture, a *catalog.Asset) {
	e.mu.Lock()
	done := e.images == nil
	e.mu.Unlock()
	if done {
		return
	}
	meets, details := p.meets(ctx, a)
	e.mu.Lock()
	defer e.mu.Unlock()
	if meets || e.images == nil {
		e.images = nil
		return
	}
	if e.images[cmp.Or(a.Member, a.URI)] = true; len(e.images) < e.most {
		return
	}
	e.images = nil
	if _, said := p.field.remarks.LoadOrStore(noShapes, true); !said {
		details = append([]any{"field", p.field.Name, "images", e.most, "such as", a.URI}, details...)
		p.field.logger.Warn(string(noShapes), details...)
	}
}

// meets reports whether shapes may lie in the image of a picture. details are for the log, where none does.
func (p *picture) meets(ctx context.Context, a *catalog.Asset) (ok bool, details []any) {
	if p.file == nil {
		return false, nil
	}
	details = []any{"file", p.file.path}
	if p.to == nil {
		for _, row := range p.rows {
			shape, err := p.file.layer.ShapeIn(ctx, row, p.image[1]) // drawing meets the error again
			if err != nil || shape == nil {
				continue
			}
			image := orb.Bound{Max: orb.Point{float64(p.image[0]), float64(p.image[1])}}
			if bound := p.place(shape).Bound(); !bound.IsEmpty() && bound.Intersects(image) {
				return true, nil
			}
		}
		return false, details
	}
	minX, minY, maxX, maxY, ok := p.file.layer.Bounds()
	if !ok {
		return false, details
	}
	whole := *p
	height, width := a.Index.Height, a.Index.Width
	whole.Height, whole.Width = height, width
	whole.Transform = gridOf(a.Place, height, width, shuffle.Box{H: height, W: width}, height, width)
	lo, hi := whole.bounds()
	for _, turn := range []float64{0, -p.to.from, p.to.from} {
		if lo[0]+turn <= maxX && minX <= hi[0]+turn && lo[1] <= maxY && minY <= hi[1] {
			return true, nil
		}
	}
	corners := func(lo, hi crs.Point) string {
		return fmt.Sprintf("(%.7g, %.7g, %.7g, %.7g)", lo[0], lo[1], hi[0], hi[1])
	}
	return false, append(details, "crs", p.file.from, "in", corners(lo, hi),
		"shapes in", corners(crs.Point{minX, minY}, crs.Point{maxX, maxY}))
}
