package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// endless is a TIFF of one PackBits strip of any size, which is made while it is read: every sample is its row
// modulo 251. It notes what is read.
type endless struct {
	head          []byte
	w, size, most int64
	bytes         int64
}

// newEndless returns a strip of h rows of w bytes; w must be a multiple of 128.
func newEndless(h, w int64) *endless {
	const dir = 16
	size := h * w / 128 * 129
	fields := []ifdwrite.Field{
		ifdwrite.Longs(256, uint32(w)), ifdwrite.Longs(257, uint32(h)), ifdwrite.Shorts(258, 8),
		ifdwrite.Shorts(259, 32773), ifdwrite.Shorts(262, 1),
		ifdwrite.Long8s(273, 0), ifdwrite.Shorts(277, 1), ifdwrite.Longs(278, uint32(h)), ifdwrite.Long8s(279,
			uint64(size)),
	}
	at := ifdwrite.End(dir, fields)
	binary.LittleEndian.PutUint64(fields[5].Data, uint64(at))
	head := ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, dir), dir, fields)
	return &endless{head: head, w: w, size: int64(len(head)) + size}
}

func (e *endless) Open(context.Context, string) (source.Reader, error) { return e, nil }

func (e *endless) Size() int64 { return e.size }

func (e *endless) Close() error { return nil }

func (e *endless) ReadAt(_ context.Context, p []byte, off int64) error {
	for i := range p {
		at := off + int64(i)
		if at < int64(len(e.head)) {
			p[i] = e.head[at]
			continue
		}
		if at -= int64(len(e.head)); at%129 == 0 {
			p[i] = 127 // 128 bytes as they are
		} else {
			p[i] = byte((at/129*128 + at%129 - 1) / e.w % 251)
		}
	}
	e.most = max(e.most, int64(len(p)))
	e.bytes += int64(len(p))
	return nil
}

// allocated returns the bytes of memory that f takes, whether it keeps them or not: more than its peak.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestPiecesHoldLittle: of a strip of 256 MiB, as large in the file, a window takes a few MiB of memory, in reads of
// 4 MiB, and nothing behind it is read.
func TestPiecesHoldLittle(t *testing.T) {
	race.SkipCovered(t)
	const h, w = 1 << 16, 4096
	e := newEndless(h, w)
	for _, y := range []int{0, 1 << 13} {
		var a *raster.Array
		var err error
		e.most, e.bytes = 0, 0
		held := allocated(func() {
			a, err = raster.Read(t.Context(), []string{"/e.tif"},
				raster.ReadOptions{Y: raster.Selection{Slice: true, Start: y, Stop: y + 2},
					X: raster.Selection{Slice: true, Start: w - 3, Stop: w}, Options: Options{Opener: e}})
		})
		if err != nil {
			t.Fatal(err)
		}
		v, next := byte(y%251), byte((y+1)%251)
		if !bytes.Equal(a.Data, []byte{v, v, v, next, next, next}) {
			t.Errorf("row %d: %v", y, a.Data)
		}
		// A buffer of 4 MiB of stored bytes, a piece of 4 MiB, the header, and what Read itself takes.
		if held > 10<<20 {
			t.Errorf("row %d: %d bytes of memory", y, held)
		}
		if need := int64(y+2) * w / 128 * 129; e.most > pixels.MaxRun || e.bytes > need+pixels.MaxRun+128<<10 {
			t.Errorf("row %d: %d bytes read, %d at once; %d are needed", y, e.bytes, e.most, need)
		}
	}
}

// TestPiecesOfDeflateHoldLittle: a strip of 200 MB of DEFLATE, whose last row is read.
func TestPiecesOfDeflateHoldLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the memory of one read of 200 MB; nothing runs beside it")
	}
	const h, w = 10_000, 20_000
	path := writeStrip(t, h, w)
	var a *raster.Array
	var err error
	held := allocated(func() {
		a, err = raster.Read(t.Context(), []string{path},
			raster.ReadOptions{Y: raster.Selection{Slice: true, Start: h - 1, Stop: h},
				X: raster.Selection{Slice: true, Start: 0, Stop: 2}})
	})
	if err != nil || !bytes.Equal(a.Data, []byte{(h - 1) % 251, (h - 1) % 251}) {
		t.Fatalf("%v %v", a, err)
	}
	if held > 10<<20 {
		t.Errorf("%d bytes of memory", held)
	}
}

// TestARunOnPiecesHoldsLittle: random windows of a strip of 100 MB hold what the forecast says, and far less than the
// strip.
func TestARunOnPiecesHoldsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("one worker decodes 100 MB, which takes the race detector 12 s")
	}
	const h, w = 5000, 20_000
	path := writeStrip(t, h, w)
	s := Spec{Source: path, BatchSize: 2, Shuffle: true, Seed: 5,
		Sampler: Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32, PerAsset: 4}, Windows: true}
	stages := &resources.Stages{}
	e, err := Open(t.Context(), s, Options{Workers: 1, Stages: stages})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fc, err := e.Forecast(t.Context(), dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fc.Memory.Worker < 8<<20 || fc.Memory.Worker > 9<<20 || fc.Total.Chunks != 4 || fc.Total.Bad != 0 {
		t.Errorf("the forecast is %+v", fc)
	}
	l, err := NewLoader(e, LoaderOptions{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	batches, down := 0, int64(0)
	held := allocated(func() {
		for {
			b, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			data := b.Tensor("image").Data
			for k, v := range data {
				first, row := data[k/(32*32)*32*32], k/32%32 // of the sample
				if (int(v)-int(first)+251)%251 != row {
					t.Errorf("batch %d: %d at %d", batches, v, k)
					return
				}
			}
			for window := range slices.Chunk(b.Tensor(spec.WindowMember).Int64(), 4) {
				down += window[0] + 32 // rows of the strip, down to the last one of the window
			}
			batches++
			b.Release()
		}
	})
	if _, decoded := stages.Decoded(); decoded != down*w || fc.Total.Decoded != down*w {
		t.Errorf("%d rows of %d bytes are needed; the run decoded %d bytes, the forecast was %d", down, w, decoded,
			fc.Total.Decoded)
	}
	if batches != 2 || held > fc.Memory.Total() || held > 24<<20 {
		t.Errorf("%d batches; %d bytes of memory, forecast %d", batches, held, fc.Memory.Total())
	}
}
