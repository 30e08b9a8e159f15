package vectors

import (
	"context"
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

func (p *picture) Draw(ctx context.Context, dst []byte) error {
	size := p.field.To.Size()
	return p.visit(ctx, func(_ uint32, element [8]byte, shape orb.Geometry) error {
		if !p.Spans(shape, func(y, x0, x1 int) { p.fill(dst, element[:size], y, x0, x1) }) {
			return p.noInverse()
		}
		return nil
	})
}

// noInverse returns the error about a transform that has no inverse.
func (p *picture) noInverse() error {
	return fault.New(fault.Unsupported, "transform", "%v cannot be inverted", p.Transform)
}

// near returns the numbers of the shapes that may lie in a window, in the order of the file.
func (p *picture) near() []uint32 {
	if p.to == nil {
		return p.rows
	}
	lo, hi := p.bounds()
	return p.file.layer.Search(lo[0], lo[1], hi[0], hi[1], p.to.from)
}

// visit calls do with the shapes that may lie in a window, in the order of the file and in the CRS of the image. do may
// change them.
func (p *picture) visit(ctx context.Context,
	do func(row uint32, element [8]byte, shape orb.Geometry) error) error {
	var found vector.Remarks
	for _, row := range p.near() {
		element, ok, err := p.field.element(p.file, row)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		shape, err := p.file.layer.ShapeIn(ctx, row, p.image[1])
		if err != nil {
			return fault.WithFile(err, p.file.path)
		}
		if shape == nil {
			continue
		}
		if shape = p.place(shape); p.to == nil && !p.holds(shape.Bound().Center()) {
			found.Add(outsideImage, "shape ", row)
		}
		if err := do(row, element, shape); err != nil {
			return fault.WithFile(err, p.file.path)
		}
	}
	if p.file != nil {
		p.field.log(p.file.path, found)
	}
	return nil
}

// holds reports whether a point in pixels lies in the image.
func (p *picture) holds(point orb.Point) bool {
	return point[0] >= 0 && point[1] >= 0 && point[0] <= float64(p.image[0]) && point[1] <= float64(p.image[1])
}

func (v *field) Check(ctx context.Context, row int64, a *catalog.Asset) error {
	h, w := a.Index.Height, a.Index.Width
	pic, err := v.picture(ctx, row, a, shuffle.Box{H: h, W: w}, h, w, shuffle.Identity)
	if err != nil {
		return a.Fault(err)
	}
	if v.Ragged() {
		if _, err := pic.Cut(ctx, math.MaxInt64); err != nil {
			return a.Fault(rows.InField(v.Name, err))
		}
		return nil
	}
	for _, number := range pic.near() {
		if _, err := pic.file.layer.Shape(ctx, number); err != nil {
			return a.Fault(rows.InField(v.Name, fault.WithFile(err, pic.file.path)))
		}
	}
	return nil
}
