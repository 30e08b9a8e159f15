package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestSpec(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Default any `json:"default"`
		} `json:"properties"`
	}
	r := chaski(t.Context(), "spec", "--schema")
	if err := json.Unmarshal([]byte(r.out), &schema); err != nil || r.code != 0 {
		t.Fatalf("exit %d: %v: %s", r.code, err, r.err)
	}
	if got := schema.Properties["bad_samples"].Default; got != "error" {
		t.Errorf("the default of bad_samples is %v", got)
	}
	path := filepath.Join(t.TempDir(), "spec.json")
	for _, c := range []struct{ spec, out, err string }{
		{`{"source": "d", "batch_size": 4}`, `"bad_samples":"error"`, ""},
		{`{"source": "d", "batch_size": 0}`, "", "spec: batch_size"},
		{`{"source": "d", "batch_size": 4, "shufle": true}`, "", "shufle"},
	} {
		testfile.Write(t, path, []byte(c.spec))
		r := chaski(t.Context(), "spec", path)
		if (r.code == 0) != (c.err == "") || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) {
			t.Errorf("%s: exit %d: %s%s", c.spec, r.code, r.out, r.err)
		}
	}
	if r := chaski(t.Context(), "spec"); r.code != 2 {
		t.Errorf("without arguments: exit %d", r.code)
	}
}
