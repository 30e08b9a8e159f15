package zarr

import (
	"context"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// window is a box of an image, sample by sample.
type window struct {
	box chunk.Box
	dst []byte
}

// Put implements pixels.Sink.
func (w *window) Put(x *chunk.Index, i int, samples []byte) {
	part, strides, size := x.Box(i), x.Strides(i), x.DType.Size()
	for b := max(part.B0, w.box.B0); b < min(part.B1, w.box.B1); b++ {
		for y := max(part.Y0, w.box.Y0); y < min(part.Y1, w.box.Y1); y++ {
			for col := max(part.X0, w.box.X0); col < min(part.X1, w.box.X1); col++ {
				from := strides.Plane(b-part.B0) + (y-part.Y0)*strides.Y + (col-part.X0)*strides.X
				to := ((b-w.box.B0)*(w.box.Y1-w.box.Y0)+y-w.box.Y0)*(w.box.X1-w.box.X0) + col - w.box.X0
				copy(w.dst[to*size:(to+1)*size], samples[from*size:])
			}
		}
	}
}

// readWindow reads a box of an image as runs do, in C order.
func readWindow(ctx context.Context, r *pixels.Reader, x *chunk.Index, box chunk.Box) ([]byte, error) {
	w := &window{box, make([]byte, (box.B1-box.B0)*(box.Y1-box.Y0)*(box.X1-box.X0)*x.DType.Size())}
	return w.dst, r.Read(ctx, catalog.Asset{Index: x}, box, nil, w, nil)
}

// windowReader returns a reader of windows.
func windowReader(o source.Opener) *pixels.Reader {
	return pixels.NewReader(resources.Options{Opener: o}.WithDefaults())
}
