package fault_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cputime"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestWithoutSecrets names what is hidden and what stays. The tests of python/ read the same table.
func TestWithoutSecrets(t *testing.T) {
	b := testfile.Read(t, "testdata/secrets.json")
	var table []struct{ Text, Want string }
	if err := json.Unmarshal(b, &table); err != nil || len(table) == 0 {
		t.Fatalf("%d cases: %v", len(table), err)
	}
	for _, c := range table {
		if got := fault.WithoutSecrets(c.Text); got != c.Want {
			t.Errorf("%q became %q, want %q", c.Text, got, c.Want)
		}
	}
}

// TestWithoutSecretsOfLongTexts promises that time grows with the length of a text: a rule that looks back over the
// text at each URI needs 10 s of a processor for one of 64 KiB; they take 40 ms each.
func TestWithoutSecretsOfLongTexts(t *testing.T) {
	for _, piece := range []string{"a-", "ab:/", "ab://x:y", "ab://x:y?", "ab:///", "http://[", "?a", "?http://", "&sig=",
		"&x-amz-", "abfs://a", "a-:/a", "@:/", "\\", " ", "ab%3A%2F", "%25", "ab:\\/", "ab%3A%2F%40", "ab:\\",
		"/vsia/", "/vsia/x:y?", "%3F"} {
		text := strings.Repeat(piece, 1<<16/len(piece))
		for _, text := range []string{text + "@?=", "@?=://" + text, "ab://?@=" + text, text + "?@ ab:/",
			"ab%3A%2F" + text} {
			begun := cputime.Used()
			fault.WithoutSecrets(text)
			if took := cputime.Used() - begun; took > 4*time.Second {
				t.Errorf("%q again and again takes %v", piece, took)
			}
		}
	}
}

// TestWithoutSecretsKeepsJSON promises that JSON stays JSON, whatever its strings have, and however often the text
// passes: an error and the log that shows it hide secrets. What is left of one URI may look like a password of another
// one, so that a later pass may hide more.
func TestWithoutSecretsKeepsJSON(t *testing.T) {
	piece := rapid.SampledFrom([]string{"https://", "u:p@", "host/", "?", "sig=p", "&", "\"", "\\", "\n", " ", "key=", "é",
		"AccountKey=", "/", "/vsis3/", ":", "@", `:\/`, "%3A%2F", "%40", "%3F", "2F%"})
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
