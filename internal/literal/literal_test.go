package literal

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
)

// texts are values as Python and NumPy print them. Python itself says what they are: see TestJSON.
var texts = map[string]string{
	`['Arable land', "Farmer's field", 'a "b"', 'a\'b"c']`:                             "",
	`[(135, 522), (245.5, -1e3)]`:                                                      "",
	`{'type': 'Polygon', 'coordinates': [[1, 2]], 'x': None, 'ok': True, 'no': False}`: "",
	`(1,)`:                    "",
	`[]`:                      "",
	`['a', ['b', ('c', {})]]`: "",
	`['\u00e9t\xe9', 'a\tb\\c', 'd\ne', 'ü']`:   "",
	`["x", 1.5, null, true]`:                    `["x", 1.5, null, true]`,
	"['Arable land' 'Marine waters'\n 'Urban']": `["Arable land", "Marine waters", "Urban"]`, // NumPy
	"[0.5 1.  -2.25]":                           `[0.5, 1, -2.25]`,
	"[[1 2]\n [3 4]]":                           `[[1, 2], [3, 4]]`,
}

func TestJSON(t *testing.T) {
	python, err := exec.LookPath("python3")
	for text, want := range texts {
		if want == "" {
			if err != nil {
				continue
			}
			program := "import ast, json, sys; print(json.dumps(ast.literal_eval(sys.argv[1])))"
			out, err := exec.Command(python, "-c", program, text).Output()
			if err != nil {
				t.Fatal(err)
			}
			want = string(out)
		}
		got, ok := JSON(text)
		var a, b any
		if !ok || json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
			t.Errorf("%s: %s, %v", text, got, ok)
			continue
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %s, want %s", text, x, y)
		}
	}
	for _, text := range []string{"", "a", "'a'", "['a'", "[a]", "[1, b]", "{'a', 'b'}", "[1]]", "[array([1])]",
		"['a\\", "[foo'a']"} {
		if got, ok := JSON(text); ok {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, ok := JSON(text)
		if ok && !json.Valid(out) {
			t.Fatalf("%q: %q is no JSON", text, out)
		}
		if json.Valid([]byte(text)) && ok {
			again, _ := JSON(string(out))
			if !bytes.Equal(again, out) {
				t.Fatalf("%q: %q, then %q", text, out, again)
			}
		}
	})
}
