package build

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tables"
)

// TestNewExtent: extents of generation 1 as their writers have them, and those whose times are not known.
func TestNewExtent(t *testing.T) {
	for from, want := range map[string]string{
		`{"spatial":[1,2,3,4],"temporal":[1514764800000,1514764800500]}`: `["2018-01-01T00:00:00Z",` +
			`"2018-01-01T00:00:00.5Z"]`,
		`{"spatial":[[1,2,3,4]],"temporal":[[-1000.0,1.5148512e12]]}`: `["1969-12-31T23:59:59Z",` +
			`"2018-01-02T00:00:00Z"]`,
		`{"spatial":[[1,2,3,4]],"temporal":[["2018-01-01","2018-01-02"]]}`: `["2018-01-01","2018-01-02"]`,
		`{"spatial":[1,2,3,4],"temporal":[1514764800000,null]}`:            `null`,
		`{"spatial":[1,2,3,4],"temporal":[["2018-01-01",null]]}`:           `null`,
		// chaski writes this for unknown times.
		`{"spatial":[1,2,3,4],"temporal":[0,253402300799000]}`:      `null`,
		`{"spatial":[1,2,3,4],"temporal":[0,253402300800000]}`:      `null`,
		`{"spatial":[1,2,3,4],"temporal":[-9223372036854775808,0]}`: `null`,
		`{"spatial":[1,2,3,4],"temporal":[5]}`:                      `null`,
		`{"spatial":[1,2,3,4]}`:                                     `null`,
	} {
		want = `{"spatial":[1,2,3,4],"temporal":` + want + `}`
		if got := string(newExtent(json.RawMessage(from))); got != want {
			t.Errorf("%s becomes %s, want %s", from, got, want)
		}
	}
	for _, from := range []string{`5`, `{"spatial":{}}`, `{"spatial":["a"]}`, `{}`} {
		if got := newExtent(json.RawMessage(from)); got != nil {
			t.Errorf("%s becomes %s", from, got)
		}
	}
}

// TestOldDocument: times of TACO 2 in each form of ISO 8601 become milliseconds, and no member is written twice.
func TestOldDocument(t *testing.T) {
	for _, c := range []struct {
		from []string
		want []int64
	}{
		{[]string{"2018-01-01T00:00:00.0015Z", "2018-01-01T01:00:00+01:00"}, []int64{1514764800001, 1514764800000}},
		{[]string{"2018-01-01", "2018-01-01"}, []int64{1514764800000, 1514764800000 + 24*60*60*1000 - 1}},
		{[]string{"1969-12-31T23:59:59.9995", "2018-01-01 00:00"}, []int64{-1, 1514764800000}},
		{nil, []int64{0, 253402300799000}},
	} {
		d := &Collection{Tasks: []string{"regression"}, More: map[string]json.RawMessage{"task": []byte(`"x"`)},
			Extent: &Extent{Spatial: []float64{1, 2, 3, 4}, Temporal: c.from}}
		b, err := d.oldDocument()
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Task   string
			Extent struct{ Temporal []int64 }
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(doc.Extent.Temporal, c.want) || doc.Task != "Regression" ||
			strings.Count(string(b), `"task":`) != 1 {
			t.Errorf("%q: %s", c.from, b)
		}
	}
	for _, text := range []string{"..", "", "2018", "2018-01-01/2018-01-02"} {
		d := &Collection{Tasks: []string{"regression"}, Extent: &Extent{Temporal: []string{"2018-01-01", text}}}
		if _, err := d.oldDocument(); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}

// TestExtentOf: times count without points of the same extension, and not without any points.
func TestExtentOf(t *testing.T) {
	points := tables.NewBytes(tables.Type{Kind: tables.Binary},
		append([]byte{1, 1, 0, 0, 0}, make([]byte, 16)...), []uint32{0, 21}, nil)
	times := tables.NewInts(tables.Type{Kind: tables.Timestamp}, []int64{1e6}, nil)
	of := func(name string, v *tables.Vector) *Level {
		return &Level{Table: tables.FromVectors([]string{name}, []*tables.Vector{v})}
	}
	second := []string{"1970-01-01T00:00:01Z", "1970-01-01T00:00:01Z"}
	for want, levels := range map[*Extent][]*Level{
		{Spatial: []float64{0, 0, 0, 0}, Temporal: second}: {of("istac:time_end", times), of("stac:centroid", points)},
		{Spatial: []float64{0, 0, 0, 0}}:                   {of("istac:centroid", points)},
		nil:                                                {of("stac:time_start", times)},
	} {
		if got, err := extentOf(context.Background(), levels); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
	}
}

// TestWithoutNulls: members that are null go, elements stay, and numbers keep their digits. What is nested takes time
// for its size, not for its size times its depth.
func TestWithoutNulls(t *testing.T) {
	deep := strings.Repeat(`[`, 9_000) + `"` + strings.Repeat("<", 1_000_000) + `"` + strings.Repeat(`]`, 9_000)
	for from, want := range map[string]string{
		`null`: "", `{"a":null,"b":{"c":null},"d":[null,{"e":null}]}`: `{"b":{},"d":[null,{}]}`,
		`[12345678901234567890.10,1e400,"\u00e9&"]`: `[12345678901234567890.10,1e400,"é&"]`, deep: deep,
	} {
		if got := string(withoutNulls(json.RawMessage(from))); got != want {
			t.Errorf("%.100s becomes %.100s, want %.100s", from, got, want)
		}
	}
}
