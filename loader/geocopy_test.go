package loader_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// copied is a scene of TestGeoWindowCopies: n by n pixels of 10 m, from pixel (y, x) of the map on.
type copied struct {
	y, x, n int
	pix     []byte
}

// at returns what a scene has at a pixel of the map: 0 is nodata.
func (c *copied) at(y, x int) byte {
	if y, x = y-c.y, x-c.x; y < 0 || x < 0 || y >= c.n || x >= c.n {
		return 0
	}
	return c.pix[y*c.n+x]
}

// TestGeoWindowCopies: windows on the grid of their scenes have the pixels of the first scene that has one, whatever
// the field's kernel, cast and order of rows, and windows of one scene, of several and past the edge alike. Nothing is
// resampled, and no pixel around the window is read.
func TestGeoWindowCopies(t *testing.T) {
	const n, west, north = 48, 50000, 460000 // in pixels of 10 m
	for _, nodata := range []bool{false, true} {
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(1, 2))
		var all []copied
		half := &spec.Normalize{Scale: []float64{0.5}, Offset: []float64{1}}
		for i, at := range [][2]int{{0, 0}, {3, 40}, {-7, 21}} {
			c := copied{at[0], at[1], n, make([]byte, n*n)}
			for k := range c.pix {
				if c.pix[k] = byte(1 + random.IntN(250)); nodata && random.IntN(9) == 0 {
					c.pix[k] = 0
				}
			}
			place := [6]float64{float64(west+c.x) * 10, 10, 0, float64(north-c.y) * 10, 0, -10}
			o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16,
				Geo: tiff.Geo{EPSG: 32630, Transform: place, HasTransform: true}}
			if nodata {
				o.NoData = "0"
			}
			var b bytes.Buffer
			if err := tog.Write(&b, c.pix, o); err != nil {
				t.Fatal(err)
			}
			testfile.Write(t, filepath.Join(dir, fmt.Sprint(i, ".tif")), b.Bytes())
			all = append(all, c)
		}
		fill := spec.Float(77)
		for _, f := range []loader.Field{
			{DType: "native"}, {DType: "native", Fill: &fill},
			{DType: "float32"}, {DType: "float32", Resample: "antialias"},
			{DType: "float32", Resample: "nearest", Normalize: half},
			{DType: "float32", Normalize: half, Fill: &fill},
		} {
			t.Run(fmt.Sprintf("nodata=%v %s %s normalize=%v fill=%v", nodata, f.DType, f.Resample, f.Normalize != nil,
				f.Fill != nil), func(t *testing.T) {
				checkCopies(t, dir, f, func(y, x int) (byte, bool) {
					for i := range all {
						if v := all[i].at(y+north, x-west); v != 0 {
							return v, true
						}
					}
					return 0, false
				})
			})
		}
	}
}

// checkCopies compares windows of scenes with want, which has the value of a pixel of the map.
func checkCopies(t *testing.T, dir string, f loader.Field, want func(y, x int) (byte, bool)) {
	f.Name, f.Validity = "image", "ok"
	s := loader.Spec{Source: dir, Fields: []loader.Field{f}, BatchSize: 8, Shuffle: true, Seed: 3,
		Sampler: loader.Sampler{Kind: spec.GeoWindow,
			GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, PerEpoch: 64, Edge: true}}}
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for step := range e.Steps() {
		ticket := steps.StepTicket(0, step, 8, 0, 1)
		b, err := e.Start(t.Context(), ticket, false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := e.Explain(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		for k := range b.Rows {
			at := e.Plan().Place(&rows[k].Draw)
			for _, a := range rows[k].Assets {
				if a.Resampled || a.Window.H > 16 || a.Window.W > 16 {
					t.Fatalf("row %d reads %v of %s, resampled: %v", k, a.Window, a.URI, a.Resampled)
				}
			}
			for i := range 256 {
				v, ok := want(int(at.Y)+i/16, int(at.X)+i%16)
				value := float32(v)
				if f.Normalize != nil {
					value = value/2 + 1
				}
				if !ok {
					value = 0
				}
				if !ok && f.Fill != nil {
					value = float32(*f.Fill)
				}
				var got float32
				if data := b.Tensor("image").Data; f.DType == "native" {
					got = float32(data[256*k+i])
				} else {
					got = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(256*k+i):]))
				}
				if seen := b.Tensor("ok").Data[256*k+i] == 1; got != value || seen != ok {
					t.Fatalf("row %d at %v: pixel %d is %v (%v), want %v (%v)", k, at, i, got, seen, value, ok)
				}
			}
		}
		b.Release()
	}
}
