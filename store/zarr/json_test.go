package zarr

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/chaski-eo/chaski/fault"
)

// TestPlainText: bare words are put in quotes outside of strings, wherever the reader's buffer ends.
func TestPlainText(t *testing.T) {
	const text = `{"a":[NaN,-Infinity,Infinity,-1.5],"NaN \" Infinity\\":"-Infinity\"NaN","b":N,"c":-`
	const want = `{"a":["NaN","-Infinity","Infinity",-1.5],"NaN \" Infinity\\":"-Infinity\"NaN","b":N,"c":-`
	for _, buffer := range []int{0, 16, 21, 1 << 10} {
		p := newPlainText(strings.NewReader(text), buffer, 100)
		got, err := io.ReadAll(p)
		if err != nil || string(got) != want || p.values != 8 {
			t.Errorf("a buffer of %d: %s, %d values, %v", buffer, got, p.values, err)
		}
		if err := iotest.TestReader(newPlainText(strings.NewReader(text), buffer, 100), []byte(want)); err != nil {
			t.Errorf("a buffer of %d: %v", buffer, err)
		}
	}
}

// TestFailingReferences: an error of the file of references is handed on, and not taken for a damaged file.
func TestFailingReferences(t *testing.T) {
	gone := fault.New(fault.NotFound, "object", fault.NoOffset, "gone")
	for _, text := range []string{"", `{"version":1,"refs":{"a`, `{".zgroup":"{}"}`} {
		in := io.MultiReader(strings.NewReader(text), iotest.ErrReader(gone))
		_, err := parseReferences(t.Context(), in, func(int, int64) error { return nil })
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", text, err)
		}
	}
}
