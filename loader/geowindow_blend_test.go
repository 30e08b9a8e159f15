package loader_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestGeoWindowBlends: with mean and median a pixel is that of all scenes in which it is valid, and all of them are
// explained; labels have the first valid one.
func TestGeoWindowBlends(t *testing.T) {
	dir := t.TempDir()
	const n = 64
	value := func(i, x, y int) int { // 0: nodata
		if (x+2*y)%5 == i || (x+y)%11 == 0 {
			return 0
		}
		return 1 + (x*(3+i)+y*(7-i)+50*i*i)%200
	}
	for i := range 4 {
		pix := make([]byte, n*n)
		for k := range pix {
			pix[k] = byte(value(i, k%n, k/n))
		}
		o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16, NoData: "0",
			Geo: tiff.Geo{EPSG: 32719, Transform: [6]float64{300000, 20, 0, 7e6, 0, -20}, HasTransform: true}}
		var b bytes.Buffer
		if err := tog.Write(&b, pix, o); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, strconv.Itoa(i)+".tif"), b.Bytes())
	}
	for _, rule := range []string{spec.MosaicMean, spec.MosaicMedian} {
		s := loader.Spec{Source: dir, BatchSize: 8, Seed: 1, Geo: true, Fields: []loader.Field{
			{Name: "image", DType: "float32", Resample: spec.Bilinear, Validity: "ok"},
			{Name: "label", DType: "native", ByPosition: true}},
			Sampler: loader.Sampler{Kind: spec.GeoWindow,
				GeoWindows: spec.GeoWindows{SizeM: 320, Resolution: 20, PerEpoch: 8, Mosaic: rule}}}
		e, err := loader.Open(t.Context(), s, loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ticket := steps.StepTicket(0, 0, 8, 0, 1)
		b, err := e.Start(t.Context(), ticket, false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		explained, err := e.Explain(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		at := floatsOf(b.Tensor("geo.transform"))
		for k := range b.Rows {
			if len(explained[k].Assets) != 5 { // 4 of the image, 1 of the label: that scene holds the window
				t.Errorf("%s: row %d reads %d scenes", rule, k, len(explained[k].Assets))
			}
			x0, y0 := int(at[6*k]-300000)/20, int(7e6-at[6*k+3])/20
			for i := range 256 {
				var values []float64
				for scene := range 4 {
					if v := value(scene, x0+i%16, y0+i/16); v != 0 {
						values = append(values, float64(v))
					}
				}
				want, label := 0., 0.
				if len(values) > 0 {
					label = values[0]
					slices.Sort(values)
					want = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
					if rule == spec.MosaicMean {
						want = 0
						for _, v := range values {
							want += v / float64(len(values))
						}
					}
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(b.Tensor("image").Data[4*(256*k+i):]))
				ok := b.Tensor("ok").Data[256*k+i] == 1
				if ok != (len(values) > 0) || math.Abs(float64(got)-want) > 1e-4 ||
					b.Tensor("label").Data[256*k+i] != byte(label) {
					t.Fatalf("%s: row %d, pixel %d is %v, %t, want %v of %v", rule, k, i, got, ok, want, values)
				}
			}
		}
		b.Release()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
