package steps

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzState: a state that parses is written and read again unchanged. Any run refuses it, or
// resumes between two steps.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"spec":"a","seed":0,"epoch":3,"samples":4096}`), int64(9000), 32, false)
	f.Add([]byte(`{"version":1,"spec":"a","seed":0,"epoch":3,"samples":96,`+
		`"run":{"samples":100,"batch_size":8,"last":"drop","data":"#ab"}}`), int64(50), 16, true)
	f.Add([]byte(`{"version":1,"samples":9223372036854775807,"run":{"samples":9223372036854775807,"batch_size":1}}`),
		int64(1), 1, false)
	now := State{Version: Version, Spec: "b", Seed: 1, Run: `{"batch_size":16,"samples":50}`}
	f.Fuzz(func(t *testing.T, b []byte, n int64, g int, drop bool) {
		s, err := ParseState(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseState(text)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v, written and read %+v: %v", s, again, err)
		}
		if n < 1 || n > 1<<62 || g < 1 || g > 1<<20 || Count(n, g, drop) == 0 {
			return
		}
		if next, _, err := s.Resume(now, n, g, drop, false); err == nil {
			if step, err := next.Step(n, g); err != nil || step >= Count(n, g, drop) && next.Samples > 0 {
				t.Errorf("%+v goes on as %+v: step %d, %v", s, next, step, err)
			}
		}
	})
}

// TestOrderOfAnotherRun: settings that only add to a batch do not change which samples come.
func TestOrderOfAnotherRun(t *testing.T) {
	for part, want := range map[string]bool{
		"windows":              false,
		"fields.image.pattern": false,
		"sampler.per_asset":    true,
		"data":                 true,
	} {
		with, err := NewParts(map[string]any{"samples": 11, part: "x"})
		without, err2 := NewParts(map[string]any{"samples": 11})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		_, other := State{Version: Version, Spec: "a", Run: with}.Differences(State{
			Version: Version, Spec: "b", Run: without,
		})
		if other != want {
			t.Errorf("%s: another order is %v, want %v", part, other, want)
		}
	}
}
