package arrays

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestPlainText: bare words are put in quotes outside of strings.
func TestPlainText(t *testing.T) {
	const text = `{"a":[NaN,-Infinity,Infinity,-1.5],"NaN \" Infinity\\":"-Infinity\"NaN","b":N,"c":-`
	const want = `{"a":["NaN","-Infinity","Infinity",-1.5],"NaN \" Infinity\\":"-Infinity\"NaN","b":N,"c":-`
	got, values, err := plainText([]byte(text))
	if err != nil || string(got) != want || values != 8 {
		t.Errorf("%s, %d values, %v", got, values, err)
	}
	if _, _, err := plainText(bytes.Repeat([]byte{','}, maxValues+1)); fault.KindOf(err) != fault.Limit {
		t.Errorf("more values than the bound: %v", err)
	}
}
