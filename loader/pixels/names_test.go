package pixels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// TestErrorsOfLongNames: a file may have names of megabytes, and errors about them stay readable: they say what else
// is wrong.
func TestErrorsOfLongNames(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	_, missing := PickBands([]string{long, "B04"}, []string{"B08"})
	_, twice := PickBands([]string{long, "B04", long}, []string{long})
	r := &Raster{naming: naming{names: []string{"B04", long}, namesOf: "a.tif"}}
	o := &Raster{naming: naming{names: []string{long}, namesOf: "b.tif"}}
	for say, err := range map[string]error{
		`no band "B08"; there are ["xxx`: missing,
		`"B04"`:                          twice,
		`in a.tif it is "B04"`:           SameNames([]string{long}, "a.tif", []string{"B04"}),
		`is "B04", in a.tif`:             SameNames([]string{"B04"}, "a.tif", []string{long}),
		"is band 1 of a.tif, and band 0": r.SameOrder(o),
	} {
		if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), say) || fault.KindOf(err) == 0 {
			t.Errorf("%.500v, want %q", err, say)
		}
	}
}

// TestNamesThatErrorsList: an error lists the names of up to 64 bands, and says if there are more.
func TestNamesThatErrorsList(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 200} {
		var names, quoted []string
		for i := range n {
			names = append(names, fmt.Sprint("B", i))
			quoted = append(quoted, strconv.Quote(names[i]))
		}
		want := "there are [" + strings.Join(quoted[:min(n, 64)], " ")
		if n > 64 {
			want += " …"
		}
		_, err := PickBands(names, []string{"x"})
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), want+"]") {
			t.Errorf("%d names: %v", n, err)
		}
	}
}

// TestOrderOfBands: sources agree if each band that both name has the same number in both.
func TestOrderOfBands(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 4, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		first, other := names.Draw(t, "first"), names.Draw(t, "other")
		if len(first) > 1 && rapid.Bool().Draw(t, "bands without names") {
			first[0], first[len(first)-1] = "", ""
		}
		var places []string
		for i, name := range first {
			for k := range other {
				if name == other[k] && name != "" && i != k {
					places = append(places, fmt.Sprintf("%q is band %d of a.tif, and band %d of b.tif", name, i, k))
				}
			}
		}
		err := (&Raster{naming: naming{names: first, namesOf: "a.tif"}}).
			SameOrder(&Raster{naming: naming{names: other, namesOf: "b.tif"}})
		if (err == nil) != (places == nil) || err != nil && !strings.Contains(err.Error(), places[0]) {
			t.Fatalf("%q and %q: %v; want %q", first, other, err, places)
		}
	})
}

// TestNamesOfAField: a field shows the names that it picks, or the names of the first asset for the bands that it picks
// by number. Other assets must have the names only if the field takes all bands, in the order of the first asset.
func TestNamesOfAField(t *testing.T) {
	asset := &catalog.Asset{URI: "a.tif", Index: small(chunk.Uint8, 0), Names: []string{"r", "g", "b"}}
	two := &catalog.Asset{URI: "a.tif", Index: asset.Index, Names: asset.Names[:2]} // of three bands
	unnamed := &catalog.Asset{URI: "a.tif", Index: asset.Index}
	fill := spec.Float(0)
	for name, c := range map[string]struct {
		field        spec.Field
		asset        *catalog.Asset
		shown, names []string
	}{
		"all bands":           {spec.Field{}, asset, asset.Names, asset.Names},
		"all, by position":    {spec.Field{ByPosition: true}, asset, asset.Names, nil},
		"by name":             {spec.Field{BandNames: []string{"b", "r"}}, asset, []string{"b", "r"}, nil},
		"by number":           {spec.Field{Bands: []int{2, 0}}, asset, []string{"b", "r"}, nil},
		"by number, unnamed":  {spec.Field{Bands: []int{2, 0}}, unnamed, nil, nil},
		"a name is missing":   {spec.Field{Bands: []int{2, 0}}, two, nil, nil},
		"the names are there": {spec.Field{Bands: []int{1, 0, 1}}, two, []string{"g", "r", "g"}, nil},
		"a look-up table": {spec.Field{Bands: []int{1}, Fill: &fill,
			LUT: &spec.LUT{To: []spec.Values{{1, 2}, {3, 4}}}}, asset, nil, nil},
	} {
		c.field.DType, c.field.Layout = "native", spec.DefaultLayout
		x := c.asset.Index
		r, err := NewRaster(c.field, 0, x)
		if err != nil {
			t.Fatal(err)
		}
		r.Expect(c.asset)
		if !slices.Equal(r.Shown, c.shown) || !slices.Equal(r.names, c.names) || (r.namesOf == "") != (c.names == nil) {
			t.Errorf("%s: shows %q, expects %q of %q", name, r.Shown, r.names, r.namesOf)
		}
	}
}
