//go:build datadog

package zstd

import "github.com/DataDog/zstd"

// Name is the decoder's name, for reports of measurements.
const Name = "datadog"

// Decoder decompresses frames, one after the other.
type Decoder struct{ ctx zstd.Ctx }

// New returns a decoder for one worker.
func New() *Decoder { return &Decoder{zstd.NewCtx()} }

func (d *Decoder) into(dst, src []byte) (int, error) {
	return d.ctx.DecompressInto(dst, src)
}
