package pixels

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	_ "github.com/chaski-eo/chaski/store/catalog/virtual"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
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
			bands, d := num.Range[int](0, x.DataBands()), x.DType
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

// TestSourcesShareTiles: what a worker decodes of a source of a virtual raster, another has as a tile, with the pixels
// of the file itself; also where a window needs more rows of it, and beside a cache that has no room.
func TestSourcesShareTiles(t *testing.T) {
	file := filepath.Join(corpus.Testdata(t), "demo", "coast.tif")
	o := resources.Options{}.WithDefaults()
	defer o.CloseOpener()
	plain, _, err := catalog.OpenAsset(t.Context(), o.Opener, file, o.MaxChunkBytes)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.vrt")
	text := fmt.Sprintf(`<VRTDataset rasterXSize="%d" rasterYSize="%d"><VRTRasterBand dataType="UInt16" band="1">
		<SimpleSource><SourceFilename>%s</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>
		</VRTDataset>`, plain.Index.Width, plain.Index.Height, file)
	testfile.Write(t, path, []byte(text))
	shown, _, err := catalog.OpenAsset(t.Context(), o.Opener, path, o.MaxChunkBytes)
	if err != nil {
		t.Fatal(err)
	}
	c := &Converters{Base: einops.Convert{From: plain.Index.DType, To: plain.Index.DType}}
	read := func(a catalog.Asset, win shuffle.Box, tiles *TileCache) (samples string, chunks int64) {
		var stages resources.Stages
		r := BorrowReader(o) // of another worker
		defer r.GiveBack()
		r.SetClock(stages.Clock())
		r.Share = Shared{Tiles: tiles, Order: 1}
		if tiles == nil {
			r.Share = Shared{}
		}
		if err := r.Planes(t.Context(), a, []int{0}, win, c, a.Index.DType.Size()); err != nil {
			t.Fatal(err)
		}
		chunks, _ = stages.Decoded()
		return corpus.SHA256(r.Resample.In), chunks
	}
	for _, bound := range []int64{1 << 30, 1} {
		tiles := NewPlannedTiles(bound, budget.New(1<<31))
		for i, win := range []shuffle.Box{{H: 20, W: 90}, {Y: 2, H: 20, W: 90}, {Y: 5, X: 9, H: 90, W: 70},
			{Y: 5, H: 90, W: 90}, {Y: 3, X: 4, H: 20, W: 70}} {
			want, _ := read(plain, win, nil)
			alone, most := read(shown, win, nil)
			got, chunks := read(shown, win, tiles)
			if got != want || alone != want {
				t.Errorf("window %d: other samples than of the file", i)
			}
			if shares := bound > 1 && i >= 2; (chunks < most) != shares {
				t.Errorf("window %d, at most %d bytes: %d chunks are decoded, %d alone", i, bound, chunks, most)
			}
		}
		if len(tiles.By) > 0 != (bound > 1) || tiles.Held > bound {
			t.Errorf("%d tiles take %d of %d bytes", len(tiles.By), tiles.Held, bound)
		}
		tiles.Close()
	}
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
