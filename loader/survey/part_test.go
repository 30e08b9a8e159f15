package survey_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/survey"
)

// FuzzPart: any bytes are refused with a kind, or are a part that is written again as it was read.
func FuzzPart(f *testing.F) {
	f.Add([]byte(`{"samples":3,"skipped":0}`))
	f.Add([]byte(`{"samples":2,"skipped":1,"fields":[{"name":"image","bands":null,"state":"Q0hLUwEBAQ=="}]}`))
	f.Add([]byte(`{"samples":-2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := survey.ReadPart(bytes.NewReader(b))
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		again, err := survey.ReadPart(&out)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%+v, want %+v: %v", again, p, err)
		}
	})
}
