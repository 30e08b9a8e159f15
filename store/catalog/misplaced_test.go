package catalog_test

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// groundRow is what a catalog says of where a raster lies.
type groundRow struct {
	EPSG                   *int64
	CRS                    *string
	Height, Width          *int64
	Scale                  int // the raster has 8 by 4 pixels times this
	MinX, MinY, MaxX, MaxY *float64
	Transform              []float64
}

// place is the place of a raster that the row describes: its transform, unless the bounds contradict it.
func (g *groundRow) place() *catalog.Place {
	code, parameters := 0, ""
	if g.EPSG != nil && *g.EPSG >= 0 && *g.EPSG < 1<<31 {
		code = int(*g.EPSG)
	}
	if g.CRS != nil {
		parameters = *g.CRS
	}
	var box, place *catalog.Place
	if g.MinX != nil && g.MaxY != nil && !math.IsInf(*g.MaxY, 0) {
		box = &catalog.Place{EPSG: code, Boxed: true, Corners: [4]crs.Point{{*g.MinX, *g.MaxY}, {*g.MaxX, *g.MaxY},
			{*g.MinX, *g.MinY}, {*g.MaxX, *g.MinY}}}
	}
	if len(g.Transform) == 6 {
		place = catalog.NewPlace(code, (*[6]float64)(g.Transform), 8*g.Scale, 4*g.Scale)
		place.CRS = parameters
	}
	if place == nil || box != nil && math.Abs(place.Corners[0][0]-box.Corners[0][0]) > 500 {
		return box
	}
	return place
}

// resize gives the raster a size, which the row says.
func (g *groundRow) resize(scale int) {
	height, width := int64(8*scale), int64(4*scale)
	g.Scale, g.Height, g.Width = scale, &height, &width
}

// bound gives the row the bounds of its raster with a transform.
func (g *groundRow) bound(transform *[6]float64) {
	place := catalog.NewPlace(0, transform, 8*g.Scale, 4*g.Scale)
	low, high := place.Corners[0], place.Corners[0]
	for _, c := range place.Corners {
		low = crs.Point{min(low[0], c[0]), min(low[1], c[1])}
		high = crs.Point{max(high[0], c[0]), max(high[1], c[1])}
	}
	g.MinX, g.MinY, g.MaxX, g.MaxY = &low[0], &low[1], &high[0], &high[1]
}

// twins are rasters of the same bounds that lie in other ways: mirrored, or skewed along x or y, where the columns of
// one have what the rows of the other have, or the other has more pixels.
var twins = [...]struct {
	first, other [6]float64 // of 8 by 4 pixels
	scale        int        // the other has so many times more
}{
	{[6]float64{5e5, 10, 0, 4.6e6, 0, -10}, [6]float64{5e5, 10, 0, 4.6e6 - 80, 0, 10}, 1},
	{[6]float64{5e5, 10, 0, 4.6e6, 0, -10}, [6]float64{5e5 + 40, -10, 0, 4.6e6, 0, -10}, 1},
	{[6]float64{5e5, 10, 1, 4.6e6, 0, -10}, [6]float64{5e5, 2, 5, 4.6e6, 0, -10}, 1},
	{[6]float64{5e5, 10, 0, 4.6e6, 1, -10}, [6]float64{5e5, 10, 0, 4.6e6, -20, 0.5}, 1},
	{[6]float64{5e5, 10, 1, 4.6e6, 0, -10}, [6]float64{5e5, 4, 1, 4.6e6, 0, -5}, 2},
	{[6]float64{5e5, 10, 0, 4.6e6, 1, 10}, [6]float64{5e5, 5, 0, 4.6e6, 1, 4.75}, 2},
}

// twin returns the row of one of twins.
func twin(transform [6]float64, scale int) (g groundRow) {
	g.resize(scale)
	g.bound(&transform)
	g.Transform = transform[:]
	return g
}

// drawGround draws a row: places that differ by less than half a pixel of 10 m or by much more, upright, turned and
// rotated, in CRSs of which two have the same numbers.
func drawGround(r *rapid.T) (g groundRow) {
	one := func(name string, often float64, other ...float64) float64 {
		return rapid.SampledFrom(append(slices.Repeat([]float64{often}, 7), other...)).Draw(r, name)
	}
	x, y := 5e5+one("x", 0, 4, 100), 4.6e6+one("y", 0, 100)
	a, e := one("columns", 10, -10), one("rows", -10, 10)
	b, d := one("b", 0, 1), one("d", 0, 1)
	if g.Scale = int(one("scale", 1, 2)); g.Scale > 1 && one("finer pixels", 1, 0) > 0 {
		a, e = a/2, e/2
	}
	if a < 0 { // the same bounds
		x -= a * float64(4*g.Scale)
	}
	if e > 0 {
		y -= e * float64(8*g.Scale)
	}
	if code := one("code", 32630, -2, 25830, 32631, 4711, math.MaxInt32, 1<<31, -1); code != -2 {
		n := int64(code)
		g.EPSG = &n
	} else {
		text := rapid.SampledFrom([]string{"tmerc lon_0=-3 k_0=0.9996 x_0=500000 base=4326",
			"tmerc lon_0=3 k_0=0.9996 x_0=500000 base=4326", "x", "y", ""}).Draw(r, "parameters")
		g.CRS = &text
	}
	if one("bounds", 1, 0) > 0 {
		g.bound(&[6]float64{x + one("other bounds", 0, 1000), a, b, y, d, e})
	}
	if one("transform", 1, 0) > 0 {
		g.Transform = []float64{x, a, b, y, d, e}
	}
	height, width := int64(8*g.Scale), int64(4*g.Scale)
	if one("height", 1, 0) > 0 {
		g.Height = &height
	}
	if g.Width = &width; one("width", 1, 0) == 0 {
		width = 0
	}
	return g
}

// TestMisplacedAgainstAssets: the rows whose places differ are those whose assets lie at other places; and these lie
// where the row says.
func TestMisplacedAgainstAssets(t *testing.T) {
	type row struct {
		URI       string    `parquet:"uri"`
		Index     []byte    `parquet:"chaski:index"`
		EPSG      *int64    `parquet:"epsg,optional"`
		CRS       *string   `parquet:"chaski:crs,optional"`
		Height    *int64    `parquet:"height,optional"`
		Width     *int64    `parquet:"width,optional"`
		MinX      *float64  `parquet:"minx,optional"`
		MinY      *float64  `parquet:"miny,optional"`
		MaxX      *float64  `parquet:"maxx,optional"`
		MaxY      *float64  `parquet:"maxy,optional"`
		Transform []float64 `parquet:"transform,list"`

		Other     string    `parquet:"other"`
		OIndex    []byte    `parquet:"other:chaski:index"`
		OEPSG     *int64    `parquet:"other:epsg,optional"`
		OCRS      *string   `parquet:"other:chaski:crs,optional"`
		OHeight   *int64    `parquet:"other:height,optional"`
		OWidth    *int64    `parquet:"other:width,optional"`
		OMinX     *float64  `parquet:"other:minx,optional"`
		OMinY     *float64  `parquet:"other:miny,optional"`
		OMaxX     *float64  `parquet:"other:maxx,optional"`
		OMaxY     *float64  `parquet:"other:maxy,optional"`
		OTransfor []float64 `parquet:"other:transform,list"`
	}
	index := func(g *groundRow) []byte {
		height, width := 8*g.Scale, 4*g.Scale
		return blob.Append(nil, &chunk.Index{Bands: 1, Height: height, Width: width, ChunkB: 1, ChunkH: height,
			ChunkW: width, DType: chunk.Uint8, Predictor: chunk.NoPredictor,
			Ranges: []chunk.Range{{Len: int64(height * width)}}})
	}
	upright := []float64{5e5, 10, 0, 4.6e6, 0, -10}
	path := filepath.Join(t.TempDir(), "c.parquet")
	rapid.Check(t, func(r *rapid.T) {
		var rows []row
		var said [2][]groundRow
		for i := range 20 {
			a, b := drawGround(r), drawGround(r)
			if i == 0 { // without bounds, rasters with the same transform may have other extents
				b = a
				a.MinX, b.MinX, a.Transform, b.Transform = nil, nil, upright, upright
				a.resize(1)
				b.resize(2)
			}
			if i > 0 && i <= len(twins) {
				pair := twins[i-1]
				a, b = twin(pair.first, 1), twin(pair.other, pair.scale)
			}
			said[0], said[1] = append(said[0], a), append(said[1], b)
			rows = append(rows, row{"a", index(&a), a.EPSG, a.CRS, a.Height, a.Width, a.MinX, a.MinY, a.MaxX, a.MaxY,
				a.Transform, "b", index(&b), b.EPSG, b.CRS, b.Height, b.Width, b.MinX, b.MinY, b.MaxX, b.MaxY,
				b.Transform})
		}
		writeTable(t, path, rows, map[string]string{layout.FieldsKey: `["image", "other"]`})
		table, err := catalog.Open(t.Context(), path, nil, catalog.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer table.Close()
		var want []int64
		for i := range rows {
			var assets [2]catalog.Asset
			known := true
			for field, s := range []*groundRow{&said[0][i], &said[1][i]} {
				if assets[field], err = table.Asset(t.Context(), field, int64(i)); err != nil {
					r.Fatal(err)
				}
				if place := s.place(); !reflect.DeepEqual(place, assets[field].Place) {
					r.Fatalf("row %d field %d: %+v, want %+v", i, field, assets[field].Place, place)
				}
				known = known && s.Height != nil && *s.Width > 0
			}
			if known && catalog.SameGround(&assets[0], &assets[1]) != nil {
				want = append(want, int64(i))
			}
		}
		some := []uint32{0, 3, 4, 9, 13, 19}
		for _, of := range [][]uint32{nil, some} {
			wanted := slices.DeleteFunc(slices.Clone(want), func(row int64) bool {
				return of != nil && !slices.Contains(of, uint32(row))
			})
			var got []int64
			err := table.Misplaced(t.Context(), 0, 1, of, func(row int64, err error) {
				if got = append(got, row); fault.KindOf(err) != fault.Misplaced {
					r.Error(err)
				}
			})
			if err != nil || !slices.Equal(got, wanted) {
				row := append(slices.DeleteFunc(slices.Concat(got, wanted), func(row int64) bool {
					return slices.Contains(got, row) && slices.Contains(wanted, row)
				}), 0)[0]
				r.Fatalf("rows %v, want %v, %v; %s and %s", got, wanted, err, fmt.Sprint(said[0][row].place()),
					fmt.Sprint(said[1][row].place()))
			}
		}
	})
}

// TestColumnsOfPlacesThatLack: a raster lies nowhere without columns of its bounds or its size. Without one of codes it
// may be in the CRS of another.
func TestColumnsOfPlacesThatLack(t *testing.T) {
	type raster struct {
		URI       string    `parquet:"uri"`
		Index     []byte    `parquet:"chaski:index"`
		Height    int64     `parquet:"height"`
		MaxX      float64   `parquet:"maxx"`
		Transform []float64 `parquet:"transform,list"`
	}
	type bounds struct {
		MinX float64 `parquet:"minx"`
		MinY float64 `parquet:"miny"`
		MaxY float64 `parquet:"maxy"`
	}
	type width struct {
		Width int64 `parquet:"width"`
	}
	type other struct {
		URI    string  `parquet:"other"`
		Index  []byte  `parquet:"other:chaski:index"`
		EPSG   int64   `parquet:"other:epsg"`
		Height int64   `parquet:"other:height"`
		Width  int64   `parquet:"other:width"`
		MinX   float64 `parquet:"other:minx"`
		MinY   float64 `parquet:"other:miny"`
		MaxX   float64 `parquet:"other:maxx"`
		MaxY   float64 `parquet:"other:maxy"`
	}
	index := blob.Append(nil, &chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1,
		DType: chunk.Uint8, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 1}}})
	a := raster{"a", index, 1, 5e5 + 10, []float64{5e5, 10, 0, 4.6e6, 0, -10}}
	b, w := bounds{5e5, 4.6e6 - 10, 4.6e6}, width{1}
	o := other{"b", index, 32630, 1, 1, 6e5, 4.6e6 - 10, 6e5 + 10, 4.6e6} // 100 km away
	path := filepath.Join(t.TempDir(), "c.parquet")
	check := func(name string, placed, apart bool) {
		t.Helper()
		table := folder.Open(t, path, catalog.Options{})
		n := 0
		err := table.Misplaced(t.Context(), 0, 1, nil, func(int64, error) { n++ })
		if asset, failed := table.Asset(t.Context(), 0, 0); failed != nil || (asset.Place != nil) != placed ||
			err != nil || (n == 1) != apart {
			t.Errorf("%s: place %v, %d rasters elsewhere, %v, %v", name, asset.Place, n, err, failed)
		}
	}
	footer := map[string]string{layout.FieldsKey: `["image", "other"]`}
	writeTable(t, path, []struct {
		raster
		bounds
		width
		other
	}{{a, b, w, o}}, footer)
	check("all but codes", true, true)
	writeTable(t, path, []struct {
		raster
		width
		other
	}{{a, w, o}}, footer)
	check("one bound", false, false)
	writeTable(t, path, []struct {
		raster
		bounds
		other
	}{{a, b, o}}, footer)
	check("no width", true, false)
}
