package fault_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestWithoutSecrets names what is hidden and what stays.
func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"https://u:p@host/a.tif: corrupt":                   "https://…@host/a.tif: corrupt",
		"https://u:p@ss@host/a.tif":                         "https://…@host/a.tif",
		"https://u:p/s:s@host/a.tif":                        "https://…@host/a.tif",
		"http:/u:p@host/a":                                  "http:/…@host/a",
		"https://host:8080/a@b":                             "https://host:8080/a@b",
		"https://host/a:b@c":                                "https://host/a:b@c",
		"https://host/a.tif?sig=p&x=p: header":              "https://host/a.tif?…: header",
		`{"a":"https://host/a?x=1\u0026sig=p","b":2}`:       `{"a":"https://host/a?…","b":2}`,
		"https://host/my file.tif?sv=1&sig=p: not found":    "https://host/my file.tif?sv=1&sig=…: not found",
		"AccountName=a;AccountKey=p==;EndpointSuffix=x":     "AccountName=a;AccountKey=…;EndpointSuffix=x",
		"C:/data/a@b.tif?":                                  "C:/data/a@b.tif?",
		"a.tif?b@c: key=3 is not a column, token=… neither": "a.tif?b@c: key=3 is not a column, token=… neither",
	} {
		if got := fault.WithoutSecrets(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestWithoutSecretsKeepsJSON promises that JSON stays JSON, whatever its strings have, and however often the text
// passes: an error and the log that shows it hide secrets. What is left of one URI may look like a password of another
// one, so that a later pass may hide more.
func TestWithoutSecretsKeepsJSON(t *testing.T) {
	piece := rapid.SampledFrom([]string{"https://", "u:p@", "host/", "?", "sig=p", "&", "\"", "\\", "\n", " ", "key=", "é",
		"AccountKey=", "/", ":", "@"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		b, err := json.Marshal(map[string]any{"a": text, "b": []string{text, "end"}, "c": 1})
		if err != nil {
			t.Fatal(err)
		}
		got := string(b)
		for range 3 {
			before := got
			got = fault.WithoutSecrets(got)
			var v map[string]any
			if err := json.Unmarshal([]byte(got), &v); err != nil || len(v) != 3 {
				t.Errorf("%s became %s: %v", before, got, err)
			}
		}
	})
}
