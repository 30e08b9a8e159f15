package lonlat

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestAtVectors: results equal Python's to the bit, and PROJ's to about a millimetre.
func TestAtVectors(t *testing.T) {
	b := testfile.Read(t, "../../../testdata/lonlat.json")
	var all [][7]any
	if err := json.Unmarshal(b, &all); err != nil || len(all) < 50 {
		t.Fatal(len(all), err)
	}
	for _, v := range all {
		num := func(i int) float64 { return v[i].(float64) }
		lon, lat, ok, err := At(int64(num(0)), num(1), num(2))
		if err != nil || !ok {
			t.Fatalf("%v: %v, %v", v, ok, err)
		}
		for i, got := range []float64{lon, lat} {
			want, err := strconv.ParseFloat(v[5+i].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%v: got %x, Python %x", v[:5], got, want)
			}
			if d := math.Abs(math.Remainder(got-num(3+i), 360)); !(d < 1e-8) {
				t.Errorf("%v: got %v", v[:5], got)
			}
		}
	}
}

// TestAtSeams: a point on the edge of two UTM zones gets the same place from both.
func TestAtSeams(t *testing.T) {
	// 6 degrees east and 50 north, in zones 31 and 32, from PROJ.
	for _, c := range [][3]float64{{32631, 714984.2367, 5542944.0186}, {32632, 285015.7633, 5542944.0186}} {
		lon, lat, ok, err := At(int64(c[0]), c[1], c[2])
		if err != nil || !ok || math.Abs(lon-6) > 1e-6 || math.Abs(lat-50) > 1e-6 {
			t.Errorf("EPSG:%v: %v, %v, %v, %v", c[0], lon, lat, ok, err)
		}
	}
}

func TestAtRefuses(t *testing.T) {
	for _, epsg := range []int64{0, -1, 3031, 32600, 32661, 32700, 32761, 25827, 26924, 2154, math.MaxInt64} {
		if _, _, _, err := At(epsg, 0, 0); err == nil {
			t.Errorf("EPSG:%d is taken", epsg)
		}
	}
	for _, epsg := range []int64{4326, 3857, 32633, 32733} {
		for _, at := range [][2]float64{
			{math.Inf(1), 0},
			{0, math.Inf(1)},
			{math.NaN(), 0},
			{0, math.NaN()},
			{1e300, 0},
			{0, -1e300},
			{500000, 1e9},
			{500000, 12_600_000},
		} {
			if lon, lat, ok, _ := At(epsg, at[0], at[1]); ok && (at[1] != 12_600_000 || epsg == 32633) {
				t.Errorf("EPSG:%d: %v is %v, %v", epsg, at, lon, lat)
			}
		}
	}
	for _, c := range [][3]float64{{190, 10, -170}, {-180.5, 0, 179.5}, {180, 0, -180}, {-180, 0, -180}} {
		if lon, lat, ok, _ := At(4326, c[0], c[1]); !ok || lon != c[2] || lat != c[1] {
			t.Error(fmt.Sprint(c, lon, lat, ok))
		}
	}
}
