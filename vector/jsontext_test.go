package vector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// anything reads a value through the methods of a text; below a depth as encoding/json does.
func anything(t *jsonText, depth int) (out any, err error) {
	b, err := t.next()
	switch {
	case err != nil:
		return nil, err
	case b == '{' && depth > 0:
		members := map[string]any{}
		return members, t.object(func(key string) (err error) {
			members[key], err = anything(t, depth-1)
			return err
		})
	case b == '[' && depth > 0:
		all := []any{}
		err := t.elements('[', ']', func(int) error {
			one, err := anything(t, depth-1)
			all = append(all, one)
			return err
		})
		return all, err
	}
	return out, t.decode(&out)
}

// FuzzJSONText: a value, an annotation, and what objects and lists hold are those of the decoder of encoding/json, with
// the same end in the text; and what it refuses is refused. The text is read in pieces of any size.
func FuzzJSONText(f *testing.F) {
	annotation := `{"id": 1, "image_id": 7, "category_id": 2, "iscrowd": 0, "bbox": [1, -2.5, 3e2, 4],
		"area": 1.5, "segmentation": [[1, 1, 3, 1, 3.25, 3]]}`
	seeds := []string{annotation, cocoText, "", " ", "{}", "[]", "5", "-0", "01", "-", "1.", "1.e3", "1e", "1E+5",
		"5x", "tru", "truex", "nul", "falsy", `"a`, `"\u12`, `"\ud83d\ude00"`, `"\x"`, "\"\x01\"", "\"\xff\"", "[1,]",
		"[1 2]", "[,1]", `{"a":1,}`, `{"a" 1}`, `{,}`, `{5: 1}`, "{]", "[}", "\v1", "[1]]", `{"a": {"b": [[], {}]}}`,
		`{"a": 1, "a": 2}`, `{"bbox": [1, null]}`, `{"bbox": null}`, `{"bbox": [1e999]}`, `{"bbox": [[1]]}`,
		`{"bbox": [1, 2], "bbox": [3]}`, `{"BBOX": [5]}`, `{"bbo\u0078": [5]}`, `{"i` + "\u017f" + `crowd": 1}`,
		`{"iscrowd": true, "segmentation": {"size": [2, 2], "counts": "04"}}`, `{"category_id": 1.0}`,
		`{"category_id": -9223372036854775809}`, `{"category_id": "1"}`, `{"category_id": null}`, "null", "[null]",
		`{"image_id": "\"}", "segmentation" : null }`, `{"x": 1, "image_id": 3} ,`, "[0.1,-0.0,123456789012345678]"}
	for _, depth := range []int{maxDepth, maxDepth + 1} {
		seeds = append(seeds, strings.Repeat("[", depth)+strings.Repeat("]", depth),
			`{"segmentation":`+strings.Repeat("[", depth-1)+strings.Repeat("]", depth-1)+"}")
	}
	for i, s := range seeds {
		f.Add([]byte(s), byte(3*i))
		f.Add([]byte(" "+s+"\n, {"), byte(255-i))
	}
	f.Fuzz(func(t *testing.T, b []byte, size byte) {
		text := func() *jsonText {
			var in io.Reader = bytes.NewReader(b)
			if size%2 == 1 {
				in = iotest.HalfReader(in)
			}
			return newJSONText(in, int(size))
		}
		judge := func(what string, to any, got *jsonText, value any, err error) {
			d := json.NewDecoder(bytes.NewReader(b))
			wrong := d.Decode(to)
			if (wrong == nil) != (err == nil) {
				t.Fatalf("%s of %.200q: %v, want %v", what, b, err, wrong)
			}
			if err != nil {
				return
			}
			want := reflect.ValueOf(to).Elem().Interface()
			if g, w := fmt.Sprintf("%+v", value), fmt.Sprintf("%+v", want); g != w || got.offset() != d.InputOffset() {
				t.Fatalf("%s of %.200q: %s to %d, want %s to %d", what, b, g, got.offset(), w, d.InputOffset())
			}
		}
		in := text()
		raw, err := in.value()
		judge("value", new(json.RawMessage), in, json.RawMessage(raw), err)
		in = text()
		var one cocoAnnotation
		err = one.read(in)
		judge("annotation", new(cocoAnnotation), in, one, err)
		if n := bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")); n < maxDepth {
			in = text()
			all, err := anything(in, 3)
			judge("members", new(any), in, all, err)
		}
	})
}

// TestJSONTextFails: an error of the source is what the reader of the text gets, after what came before it.
func TestJSONTextFails(t *testing.T) {
	failed := errors.New("the disk is gone")
	in := newJSONText(io.MultiReader(strings.NewReader(`[1, 2`), iotest.ErrReader(failed)), 3)
	if _, err := in.value(); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestRoom: lists grow to what the rest of the file needs, by a quarter at least and to four times at most.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		have, n     int
		whole       float64
		least, most int
	}{{0, 1, 1e9, 1, 64}, {1000, 1, 1, 1250, 1600}, {1000, 1, 2, 2000, 2500}, {1000, 1, 1e9, 4000, 5000},
		{1000, 9000, 1, 10000, 11000}} {
		got := room(make([]byte, c.have), c.n, c.whole)
		if len(got) != c.have || cap(got) < c.least || cap(got) > c.most {
			t.Errorf("%+v: %d of %d", c, len(got), cap(got))
		}
	}
}
