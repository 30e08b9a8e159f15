package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/rumi"
)

// Frames compresses the samples of an image into frames, for a caller that writes the file. in has the samples of one
// frame after the other, in the order of the file; write gets each frame in this order. Of o, Frames uses Graph, Level,
// Geozl, MaxCost and Workers. As many frames as there are workers are in memory, which grows with the samples that
// arrive.
func Frames(l rumi.Layout, in io.Reader, o Options, write func(frame []byte) error) error {
	cuts, err := rumi.NewCuts(l)
	if err != nil {
		return err
	}
	generation := max(l.Generation, 1)
	o.Format, o.Tile, o.MaxBytes = [...]string{1: Rumi, 2: Rumi2, 3: Rumi3}[generation], l.TileH, math.MaxInt64
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.fits(&outputImage{rasterMeta: &rasterMeta{}, shape: l.Shape, dtype: l.DType}); err != nil {
		return err
	}
	compressors := make([]frameCompressor, min(o.Workers, cuts.Len()))
	for i := range compressors {
		if compressors[i].enc, err = o.encoder(); err != nil {
			return err
		}
	}
	for start := 0; start < cuts.Len(); start += len(compressors) {
		round := compressors[:min(len(compressors), cuts.Len()-start)]
		var group errgroup.Group
		for k := range round {
			compressor := &round[k]
			if err := compressor.fill(in, cuts.Bytes(start+k)); err != nil {
				return cmp.Or(group.Wait(), fmt.Errorf("samples of frame %d: %w", start+k, err))
			}
			group.Go(crash.Guard(func() (err error) {
				if err = cuts.Check(compressor.samples); err == nil {
					compressor.frame, err = encode(compressor.enc, compressor.samples, l.DType, cuts, start+k)
				}
				return err
			}))
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for k := range round {
			if err := write(round[k].frame); err != nil {
				return err
			}
		}
	}
	switch n, err := io.ReadFull(in, make([]byte, 1)); {
	case n > 0:
		return fault.New(fault.Corrupt, "samples", "they go on behind the last frame, %d", cuts.Len()-1)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// frameCompressor holds what the compression of one frame needs.
type frameCompressor struct {
	enc     *openzl.Encoder
	samples []byte
	frame   []byte
}

// firstSamples is the memory for samples before any has come, in bytes: a tile of 512 by 512 uint16.
const firstSamples = 512 << 10

// fill reads the samples of a frame. It takes memory for twice as many bytes as have come, at most.
func (c *frameCompressor) fill(in io.Reader, size int) error {
	for c.samples = c.samples[:0]; len(c.samples) < size; {
		if have := cap(c.samples); len(c.samples) == have {
			growth := min(size, max(2*have, firstSamples)) - have
			c.samples = slices.Grow(c.samples, growth)
		}
		n := len(c.samples)
		k, err := in.Read(c.samples[n:min(size, cap(c.samples))])
		c.samples = c.samples[:n+k]
		if errors.Is(err, io.EOF) && n+k < size {
			return fault.At(fault.Corrupt, "samples", int64(n+k), "they end after %d of %d bytes", n+k, size)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}
