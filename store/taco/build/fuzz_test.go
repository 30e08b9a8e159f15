package build

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// FuzzDescription promises that any file of --collection is refused with a kind, or becomes a COLLECTION.json in which
// verify finds no violation of an extension, and which is written again as it is.
func FuzzDescription(f *testing.F) {
	real, err := os.ReadFile("../../../testdata/coast/coast_dir/COLLECTION.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	const whole = "id: a\ndataset_version: '1'\ndescription: d\nlicenses: [MIT]\nproviders: [{name: A}]\n" +
		"tasks: [other]\n"
	for _, more := range []string{
		"optical: {sensor: 'sentinel2msi[B8A, b02]'}",
		"columns: {a: {type: int8}, 'l1:b': x}",
		"labels: {classes: [{name: a, category: 1}]}\nsplit: {strategy: random}",
		"publications: [{doi: 10.1/x, citation: c}]",
		"extent: {spatial: [0, 0, 1, 1], temporal: [2024-05-01, 2025-01-01]}",
	} {
		f.Add([]byte(whole + more))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Collection{}
		err := c.SetYAML(b)
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Errorf("no kind: %v", err)
			}
			return
		}
		doc, err := c.document()
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(doc, &members); err != nil {
			t.Fatal(err)
		}
		if said := taco2.Violations(members); len(said) > 0 {
			t.Errorf("%q in %s", said, doc)
		}
		again := &Collection{}
		if err := again.Set(doc); err != nil {
			t.Fatal(err)
		}
		if next, err := again.document(); err != nil || !bytes.Equal(next, doc) {
			t.Errorf("%s, %v, was %s", next, err, doc)
		}
	})
}
