package convert_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
)

// TestFrames: frames come in the order of the file and hold the samples that went in, whatever the number of workers.
func TestFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for _, workers := range []int{1, 3} {
		l := rumi.Layout{Shape: [3]int{3, 50, 70}, DType: chunk.Uint16, TileH: 16, TileW: 16, Generation: 3, Times: 2}
		l.Unit = rumi.UnitTHWB
		pixels := make([]byte, 2*3*50*70*2)
		for i := range pixels {
			pixels[i] = byte(r.IntN(3))
		}
		cut, err := rumi.NewTiler(pixels, l)
		if err != nil {
			t.Fatal(err)
		}
		var samples, got []byte
		for i := range cut.Len() {
			samples = cut.AppendTile(samples, i)
		}
		d := openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()})
		o := convert.Options{Graph: "auto", Level: 3, Workers: workers}
		err = convert.Frames(l, bytes.NewReader(samples), o, func(frame []byte) error {
			outs, err := d.Decode(frame)
			if err == nil {
				got = append(got, outs[0].Data...)
			}
			return err
		})
		if err != nil || !bytes.Equal(got, samples) {
			t.Errorf("%d workers: %d bytes of %d, %v", workers, len(got), len(samples), err)
		}
	}
}

// TestFramesFollowBytes: a layout of gigantic frames takes no memory that its samples have not filled half of, and too
// few or too many samples are refused.
func TestFramesFollowBytes(t *testing.T) {
	const side = 65535
	l := rumi.Layout{Shape: [3]int{1, side, side}, DType: chunk.Float64, TileH: side, TileW: side}
	o := convert.Options{Graph: "auto", Level: 3, Workers: 2}
	none := func([]byte) error { return errors.New("a frame") }
	for _, size := range []int{1000, 8 << 20} {
		in := make([]byte, size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := convert.Frames(l, bytes.NewReader(in), o, none)
		runtime.ReadMemStats(&after)
		// All blocks that hold the samples on their way to size: each is twice as large as the one before, four times
		// size in all. The race detector adds a little.
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, fault.Corrupt) || took > uint64(5*size)+8<<20 {
			t.Errorf("%d bytes take %d, %v", size, took, err)
		}
	}
	small := rumi.Layout{Shape: [3]int{1, 4, 4}, DType: chunk.Uint8, TileH: 4, TileW: 4}
	err := convert.Frames(small, bytes.NewReader(make([]byte, 17)), o, func([]byte) error { return nil })
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "they go on behind the last frame, 0") {
		t.Error("a sample too many is taken")
	}
}
