package build

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestSetReplaces: a member has what was set last, and nothing of what it had before. Names are taken as they are
// written, and JSON is read as JSON where YAML is not the same.
func TestSetReplaces(t *testing.T) {
	c := &Collection{}
	for _, doc := range []string{
		`{"id":"a","title":"t","providers":[{"name":"A","url":"u"},{"name":"B"}],"extent":{"spatial":[0,0,1,1],` +
			`"temporal":["2020","2021"]},"keywords":["x","y"]}`,
		"{\n\t\"id\": \"b\", \"ID\": 12345678901234567890123, \"said\": \"\\ud83d\\ude00\"\n}",
		"providers: [{name: C}]\nextent: {spatial: [2, 2, 3, 3]}\nkeywords: null\ntaco:sources: {}",
	} {
		if err := c.SetYAML([]byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.document()
	if err != nil {
		t.Fatal(err)
	}
	var one bytes.Buffer
	if err := json.Compact(&one, got); err != nil {
		t.Fatal(err)
	}
	want := `{"id":"b","dataset_version":"","description":"","licenses":null,"providers":[{"name":"C"}],"tasks":null,` +
		`"taco_version":"2.0.0","title":"t","extent":{"spatial":[2,2,3,3],"temporal":null},` +
		`"ID":12345678901234567890123,"said":"\ud83d\ude00"}`
	if one.String() != want {
		t.Errorf("got %s, want %s", &one, want)
	}
}
