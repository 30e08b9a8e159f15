package pixels

import (
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// gdalVirtual is what GDAL reads of a virtual raster: its samples, which of them are valid, all samples as float32
// with -7 where they are not valid, and these of a window of a row, a column, a height and a width.
type gdalVirtual struct {
	corpus.File
	ValidSHA256  string `json:"valid_sha256"`
	FilledSHA256 string `json:"filled_sha256"`
	WindowSHA256 string `json:"window_sha256"`
	Window       [4]int
}

// TestVirtualRastersOfGDAL: one reader, which keeps open the last few arrays, reads of virtual rasters what GDAL does,
// in any order, and again after another caller had it. Time goes into the clock of the reader.
func TestVirtualRastersOfGDAL(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "vrt")
	o := resources.Options{}.WithDefaults()
	defer o.CloseOpener()
	list := corpus.Rows[gdalVirtual](t, dir)
	r := BorrowReader(o)
	for round := range 3 {
		if round == 2 {
			r.GiveBack()
			if r = BorrowReader(o); r.below != nil || len(r.arrays) > 0 || r.Clock != nil {
				t.Error("a borrowed reader has arrays, or a clock")
			}
		}
		var stages resources.Stages
		clock := stages.Clock()
		r.SetClock(clock)
		for i := range list {
			want := list[i]
			if round == 1 {
				want = list[len(list)-1-i]
			}
			a, _, err := catalog.OpenAsset(t.Context(), o.Opener, filepath.Join(dir, want.Path), o.MaxChunkBytes)
			if err != nil {
				t.Fatal(err)
			}
			x := a.Index
			bands, d := first(x.DataBands()), x.DType
			read := func(win shuffle.Box, convert einops.Convert) (samples, valid string) {
				c := &Converters{Base: convert, Nodata: true}
				if err := r.Planes(t.Context(), a, bands, win, c, convert.To.Size()); err != nil {
					t.Fatalf("%s: %v", want.Path, err)
				}
				return corpus.SHA256(r.Resample.In), corpus.SHA256(r.Resample.InValid)
			}
			all, floats := shuffle.Box{H: x.Height, W: x.Width},
				einops.Convert{From: d, To: chunk.Float32, FillNoData: true, Fill: -7}
			samples, valid := read(all, einops.Convert{From: d, To: d})
			filled, _ := read(all, floats)
			window, _ := read(shuffle.Box{Y: want.Window[0], X: want.Window[1], H: want.Window[2], W: want.Window[3]},
				floats)
			if samples != want.SHA256 || valid != want.ValidSHA256 || filled != want.FilledSHA256 ||
				window != want.WindowSHA256 {
				t.Errorf("%s, round %d: other samples, or another validity", want.Path, round)
			}
		}
		clock.Stop()
		spent := stages.Spent()
		if chunks, _ := stages.Decoded(); chunks <= int64(3*len(list)) || spent[resources.StageRead] <= 0 ||
			spent[resources.StageScatter] <= 0 || spent[resources.StageDecode] <= 0 {
			t.Errorf("the stages of %d chunks are %v", chunks, spent)
		}
		if len(r.arrays) != maxArrays || r.below.Clock != clock || r.HeldBytes() != MaxRun {
			t.Errorf("it holds %d arrays, and says %d bytes", len(r.arrays), r.HeldBytes())
		}
	}
	r.GiveBack()
}

// TestNaNWithoutAMask: NaN is nodata of floats where the converters say so, unless a mask says what is missing.
func TestNaNWithoutAMask(t *testing.T) {
	for mask := range 2 {
		for _, d := range []chunk.DType{chunk.Float32, chunk.Uint8} {
			for _, says := range []bool{false, true} {
				x := small(d, 0)
				if mask > 0 {
					x.Mask = small(chunk.Uint8, 0)
				}
				c := &Converters{Nodata: true, NaN: says}
				want := says && mask == 0 && d == chunk.Float32
				if c.key(x).nan != want || mask == 0 && c.Miss(x) != want || mask > 0 && !c.Miss(x) {
					t.Errorf("%v, %d masks, NaN is missing %v: %+v, may miss %v", d, mask, says, c.key(x), c.Miss(x))
				}
			}
		}
	}
}

// TestCRSsOfAStack: a part lies in a stack if both have one CRS, or CRSs with codes that can be converted. A CRS that
// is not known may be the other one.
func TestCRSsOfAStack(t *testing.T) {
	const zone30, zone31 = "tmerc lon_0=-3 k_0=0.9996 x_0=500000 base=4326",
		"tmerc lon_0=3 k_0=0.9996 x_0=500000 base=4326"
	for _, c := range []struct {
		stack, part       int
		stackCRS, partCRS string
		kind              fault.Kind // 0: it lies there
		same              bool       // on the same grid
	}{
		{32630, 32630, "", "", 0, true}, {0, 0, "", "", 0, true}, {32630, 0, "", "", 0, true},
		{0, 0, zone30, zone30, 0, true}, {0, 0, zone30, zone31, fault.Misplaced, false},
		{32630, 0, "", zone30, 0, true}, {32630, 0, "", zone31, fault.Misplaced, false},
		{0, 32630, zone30, "", 0, true}, {0, 32630, zone31, "", fault.Misplaced, false},
		{32630, 32631, "", "", fault.Misplaced, false}, // 6 degrees away
		{25830, 32630, "", "", 0, false}, {32630, 999999, "", "", fault.Unsupported, false},
		{999999, 32630, "", "", fault.Unsupported, false}, {999999, 999999, "", "", 0, true},
	} {
		place := func(epsg int, parameters string) *catalog.Place {
			place := catalog.NewPlace(epsg, &[6]float64{500000, 10, 0, 5000000, 0, -10}, 4, 4)
			place.CRS = parameters
			return place
		}
		a := catalog.Asset{URI: "a", Index: small(chunk.Uint8, 0), Place: place(c.stack, c.stackCRS)}
		a.Parts = []catalog.Asset{{URI: "b", Index: small(chunk.Uint8, 0), Place: place(c.part, c.partCRS)}}
		lay, err := (&Raster{}).NewLay(&a, 0)
		if fault.KindOf(err) != c.kind || err == nil && c.same && !lay.Same || c.kind == 0 && err != nil {
			t.Errorf("%+v: %+v, %v", c, lay.Same, err)
		}
	}
}
