package vector_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// TestManyPartsTakeWhatIsCharged: while texts of many small parts are read, the memory that is in use is what was
// charged, beside some times the text; and the work, told by all memory that was ever made, follows the text.
func TestManyPartsTakeWhatIsCharged(t *testing.T) {
	race.SkipCovered(t)
	via := func(regions string) string {
		return `{"_via_img_metadata":{"a":{"filename":"a.tif","regions":` + regions + `,"file_attributes":{}}}}`
	}
	numbered := func(n int, form string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, form, i)
		}
		return strings.TrimSuffix(out.String(), ",")
	}
	var names, ends string
	for i := range 20 {
		name := strings.Repeat(string(rune('a'+i)), 10_000)
		names, ends = names+"<"+name+">", "</"+name+">"+ends
	}
	rect := `{"shape_attributes":{"name":"rect","x":1,"y":1,"width":5,"height":5},"region_attributes":{`
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	voc := func(around, text string) string {
		return "<annotation>" + around + names + strings.Repeat("<a/>"+text, 150_000) + ends + "</object></annotation>"
	}
	const gj = `{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},"geometry":` +
		`{"type":"MultiPolygon","coordinates":[`
	points := `[{"shape_attributes":{"name":"polygon","all_points_x":[` + strings.Repeat("1,", 300_000) + `1]}}]`
	for name, text := range map[string]string{
		"VIA, empty regions":           via("[" + strings.Repeat("{},", 300_000) + "{}]"),
		"VIA 1, empty regions":         via("{" + numbered(100_000, `"%d":{},`) + "}"),
		"VIA, attributes":              via("[" + rect + numbered(100_000, `"a%x":0,`) + "}}]"),
		"VIA, points":                  via(points),
		"LabelMe, empty points":        `{"shapes":[{"points":[` + strings.Repeat("[],", 300_000) + `[]]}]}`,
		"LabelMe, empty shapes":        `{"shapes":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		"LabelMe, deep":                `{"shapes":[{"points":` + deep + `}]}`,
		"VOC, blanks below long names": voc("<object>", " "),
		"VOC, texts below long names":  voc("<object>", "x"),
		"VOC, the image's long names":  voc("", "x"),
		"GeoJSON, empty lists":         gj + strings.Repeat("[],", 300_000) + "[]]}}]}",
		"GeoJSON, empty rings":         gj + strings.Repeat("[[]],", 200_000) + "[]]}}]}",
		"GeoJSON, positions":           gj + strings.Repeat("[[[1,2]]],", 100_000) + "[]]}}]}",
		"COCO, deep":                   `{"images":[{"id":1}],"annotations":[{"image_id":1,"x":` + deep + `}]}`,
		"box, image behind":            `{"a":[` + strings.Repeat(`{"b":[1,2,3,4]},`, 100_000) + `{}],"n":"x"}`,
		"box, empty objects":           `{"a":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		"box, many in a list":          `{"a":{"b":[` + strings.Repeat("1,", 400_000) + `1],"c":[1]}}`,
		"box, lists in a list":         `{"a":{"b":[` + strings.Repeat("[],", 300_000) + `[]],"c":[[],[]]}}`,
		"box, frames of XML":           strings.Repeat("<a><b>1 2 3 4</b></a>", 50_000),
	} {
		var at, before runtime.MemStats
		charged, uncharged, calls := int64(0), int64(0), 0
		runtime.GC()
		runtime.ReadMemStats(&before)
		grow := func(_ context.Context, n int64) error {
			if calls++; calls%32 == 1 { // a collection takes some 10 ms
				runtime.GC()
				runtime.ReadMemStats(&at)
				uncharged = max(uncharged, int64(at.HeapAlloc)-int64(before.HeapAlloc)-charged)
			}
			charged += n
			return nil
		}
		open := source.OpenOne(func(context.Context) (source.Reader, error) { return source.Memory(text), nil })
		// An object of three bytes is decoded by some hundreds, which are garbage.
		o := vector.Options{OneImage: true, Class: true, Grow: grow}
		if strings.HasPrefix(name, "box") {
			o = vector.Options{Box: map[string]string{"x y w h": "a/b"}, Column: "a/c", Image: "n", Grow: grow}
		}
		taken.Check(t, len(text), 5*taken.FactorJSON, func() { _, _ = vector.Open(t.Context(), open, "a", o) })
		if most := int64(8<<20 + 8*len(text)); uncharged > most {
			t.Errorf("%s, %d bytes: %d bytes of memory are not charged", name, len(text), uncharged)
		}
	}
}
