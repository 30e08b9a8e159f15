package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// canonical returns the JSON of a spec with some members.
func canonical(t *testing.T, members string) []byte {
	t.Helper()
	s, err := ParseSpec([]byte(`{"source":"d","batch_size":4,` + members + `}`))
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestShortWindowsAndRows: a short form is the spec of the long one, and its JSON has none.
func TestShortWindowsAndRows(t *testing.T) {
	const square = `"sampler":{"kind":"random_window","height":64,"width":64}`
	ground := func(members string) string {
		return `"sampler":{"kind":"geo_window","size_m":80,"resolution":10,` + members + `}`
	}
	const polygon = `{"type":"Polygon","coordinates":[[[1,2],[3,4],[1,4],[1,2]]]}`
	collected := `{"type":"FeatureCollection","features":[{"type":"Feature","properties":null,"geometry":` +
		polygon + `}]}`
	for short, long := range map[string]string{
		`"sampler":64`:                             square,
		`"sampler":[64,64]`:                        square,
		`"sampler":[64,32]`:                        `"sampler":{"kind":"random_window","height":64,"width":32}`,
		`"sampler":{"kind":"chip","size":[64,32]}`: `"sampler":{"kind":"chip","height":64,"width":32}`,
		`"sampler":{"kind":"grid","size":64,"stride":[32,16]}`: `"sampler":{"kind":"grid","height":64,"width":64,` +
			`"stride_y":32,"stride_x":16}`,
		`"sampler":{"kind":"grid","size":64,"overlap":[0,16]}`: `"sampler":{"kind":"grid","height":64,"width":64,` +
			`"stride_y":64,"stride_x":48}`,
		`"sampler":{"kind":"grid","size":64,"overlap":0}`: `"sampler":{"kind":"grid","height":64,"width":64}`,
		`"sampler":{"kind":"resized_window","size":64,"scale":[0.5,1]}`: `"sampler":{"kind":"resized_window",` +
			`"height":64,"width":64,"scale_min":0.5,"scale_max":1}`,
		`"sampler":{"kind":"tile_window","size":64,"tile":128,"visits":3}`: `"sampler":{"kind":"tile_window",` +
			`"height":64,"width":64,"tile_height":128,"tile_width":128,"per_asset":3}`,
		ground(`"crs":3035`):                                   ground(`"crs":"EPSG:3035"`),
		ground(`"overviews":true`):                             ground(`"overviews":"all"`),
		ground(`"overviews":false`):                            ground(`"overviews":"none"`),
		ground(`"roi":` + polygon):                             ground(`"roi":` + quoted(t, collected)),
		ground(`"roi":` + collected):                           ground(`"roi":` + quoted(t, collected)),
		ground(`"bounds":[0,0,1,1],"bounds_crs":"EPSG:32630"`): ground(`"bounds":[0,0,1,1],"bounds_crs":32630`),
		`"where":"a < 1"`:                                      `"where":[{"sql":"a < 1"}]`,
		`"where":["a < 1",["b","==",true],["c","in",[false,"x<y"]],{"column":"d","op":"<","value":2}]`: `"where":[` +
			`{"sql":"a < 1"},{"column":"b","op":"==","value":1},{"column":"c","op":"in","value":[0,"x<y"]},` +
			`{"column":"d","op":"<","value":2}]`,
		`"where":["a < 1"],"datetime":"2020-01-01/2020-02-01","bbox":[0,1,2,3],"bbox_crs":"epsg:32633"`: `"where":[` +
			`{"sql":"a < 1"},{"bbox":[0,1,2,3],"bbox_crs":32633},{"datetime":"2020-01-01/2020-02-01"}]`,
		`"where":[{"concat":[{"paths":1,"where":"a"}]}]`: `"where":[{"concat":[{"paths":1,"where":[{"sql":"a"}]}]}]`,
		`"split":"train"`: `"split":{"by":"given"},"use":"train"`,
		// Not in the order of their names.
		`"use":"val","split":{"by":"hash","shares":{"train":0.6,"val":0.3,"a":0.1}}`: `"use":"val","split":{"by":` +
			`"hash","shares":[{"name":"train","weight":0.6},{"name":"val","weight":0.3},{"name":"a","weight":0.1}]}`,
		`"use":"b","split":{"by":"date","column":"d","ranges":{"b":[null,"2020"],"a":["2020",null]}}`: `"use":"b",` +
			`"split":{"by":"date","column":"d","ranges":[{"name":"b","to":"2020"},{"name":"a","from":"2020"}]}`,
		`"use":"a","split":{"by":"cell","size":2,"shares":{"a":1},"crs":"epsg"}`: `"use":"a","split":{"by":"cell",` +
			`"size":2,"shares":[{"name":"a","weight":1}],"lonlat":true}`,
		`"tables":{"l.csv":"a","m.csv":{"b":"a"}}`: `"tables":[{"path":"l.csv","on":"a","column":"a"},` +
			`{"path":"m.csv","on":"a","column":"b"}]`,
		`"strata":"c"`:                                `"strata":{"column":"c"}`,
		`"strata":{"column":"c","until":7}`:           `"strata":{"column":"c","until":"length","length":7}`,
		`"timestamp":5`:                               `"timestamp":[0,5]`,
		`"timestamp":"1970-01-01T00:00:00.005999Z"`:   `"timestamp":[0,5]`,
		`"timestamp":[4,"1970-01-01T01:00:01+01:00"]`: `"timestamp":[4,1000]`,
	} {
		if a, b := canonical(t, short), canonical(t, long); !bytes.Equal(a, b) {
			t.Errorf("%s is\n%s, not\n%s", short, a, b)
		}
	}
	const sources = `"sources":[{"name":"a","source":"a","sampler":%,"where":"x"},{"name":"b","source":"b"}],"until":#`
	with := func(sampler, until string) []byte {
		text := strings.NewReplacer("%", sampler, "#", until).Replace(sources)
		s, err := ParseSpec([]byte(`{"batch_size":4,` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(s)
		return b
	}
	long := with(`{"kind":"random_window","height":8,"width":8}`, `"length","length":5`)
	if a := with("8", "5"); !bytes.Equal(a, long) {
		t.Errorf("%s, not %s", a, long)
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestShortAndLong: what is given in both forms, and short forms that stand for nothing, are refused.
func TestShortAndLong(t *testing.T) {
	for members, want := range map[string]string{
		`"sampler":{"kind":"random_window","size":8,"height":8}`:                   "its sides are given beside it",
		`"sampler":{"kind":"chip","size":0}`:                                       "size is 0: it must be at least 1",
		`"sampler":{"kind":"grid","size":8,"stride":[0,4]}`:                        "stride is [0,4]",
		`"sampler":{"kind":"grid","size":8,"overlap":8}`:                           "overlap is 8: it must be from 0",
		`"sampler":{"kind":"grid","size":8,"overlap":-2}`:                          "overlap is -2",
		`"sampler":{"kind":"grid","size":8,"stride":2,"overlap":2}`:                "a stride or an overlap, not both",
		`"sampler":{"kind":"random_window","size":8,"overlap":2}`:                  "overlap is a member",
		`"sampler":{"kind":"random_window","size":8,"visits":2}`:                   "visits is a member of kind",
		`"sampler":{"kind":"resized_window","size":8,"scale":[0,0]}`:               "scale is [0,0]: both",
		`"sampler":{"kind":"resized_window","size":8,"scale":[1,2],"scale_max":1}`: "given beside",
		`"sampler":{"kind":"grid","size":8,"overlap":[null,2]}`:                    "overlap is [null,2]: it must",
		`"bbox":[0,1,2,3],"bbox_crs":"null"`:                                       `bbox_crs is "null": it must`,
		`"bbox_crs":32633`:                                                         "but there is no bbox",
		`"datetime":" "`:                                                           "a condition is empty",
		`"where":""`:                                                               "a condition is empty",
		`"split":"train","use":"val"`:                                              "already names the part",
		`"split":" "`:                                                              "leave it out for all samples",
		`"tables":{"l.csv":7}`:                                                     `a column of the dataset`,
		`"tables":{"l.csv":{"a":"b","c":"d"}}`:                                     `as one pair`,
		`"tables":[{"path":"l.csv","on":""}]`:                                      `needs path and on`,
		`"strata":{"column":"c","until":-1}`:                                       `until is "-1"`,
		`"strata":{"column":"c","until":7,"length":7}`:                             `until is "7"`,
		`"use":"a","split":{"by":"hash","shares":{"a":1,"b":0}}`:                   `share "b" is 0`,
		`"use":"a","split":{"by":"hash","shares":{"a":1,"a":1}}`:                   "split.shares.a is given twice",
		`"timestamp":"2026-01-01T00:00:00"`:                                        "a time with a time zone",
	} {
		_, err := ParseSpec([]byte(`{"source":"d","batch_size":4,` + members + `}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", members, err, want)
		}
	}
}

// TestHostileSpecs: specs of 1 MiB cost little memory for their text, and errors about them are short.
func TestHostileSpecs(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes of text, which one goroutine reads")
	}
	long := strings.Repeat("é", 100_000)
	fill := func(before, each, after string) string {
		n := (maxSpecBytes - len(before) - len(after) - 100) / len(each)
		return before + strings.TrimSuffix(strings.Repeat(each, n), ",") + after
	}
	numbered := func(format string) string {
		var b strings.Builder
		for i := range 50_000 {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	nested := fill(`"sampler":`+strings.Repeat("[", 9000), "1,", strings.Repeat("]", 9000))
	for text, want := range map[string]string{
		nested:                                                                   "it must be a window",
		fill(`"fields":[`, "{},", "]"):                                           "it must have at most 1000",
		fill(`"sources":[`, "{},", "]"):                                          "it must have at most 1000",
		fill(`"where":[`, `"a",`, "]"):                                           "it must have at most 1000",
		`"fields":{` + numbered(`"f%d":"c",`) + "}":                              "fields has 50000 elements",
		`"split":{"shares":{` + numbered(`"s%d":1,`) + "}}":                      "split.shares has 50000 elements",
		fill(`"where":[["a","in",[`, "1,", ",null]]]"):                           "value null is neither",
		`"fields":{"` + long + `":1}`:                                            `é…": it is 1`,
		`"fields":[{"name":"` + long + `","dtype":1}]`:                           `é…": dtype is 1`,
		fill(`"where":[["a","==",[`, "1,", "]]]"):                                "… is neither a number nor",
		`"fields":{"a":{"sizes":{"` + long + `":"x"}}}`:                          `é… is "x"`,
		fill(`"sources":[{"name":"`+long+`","fields":[`, `{"name":"a"},`, "]}]"): "at most 1000",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseSpec([]byte(`{"source":"d","batch_size":4,` + text + `}`))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.40s…: %.300v, want %s", text, err, want)
		}
		// 200 times the text: it is copied at each level, and an operand takes 64 bytes for the 2 of "1,".
		if n := after.TotalAlloc - before.TotalAlloc; n > 200*maxSpecBytes {
			t.Errorf("%.40s…: %d bytes were allocated", text, n)
		}
	}
}
