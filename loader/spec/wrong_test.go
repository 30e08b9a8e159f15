package spec_test

import (
	"errors"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
)

// TestMemberErrors: an error about a member says where it stands, its name, its value and the rule, each by itself, and
// its text is made of them.
func TestMemberErrors(t *testing.T) {
	const head = `{"source": "d", "batch_size": 4, `
	for _, test := range []struct {
		spec, where, member, given, rule string
	}{
		{`{"source": "d", "batch_size": 0}`, "spec: ", "batch_size", "0", "it must be from 1 to 1048576"},
		{`{"source": "d", "batch_size": "4"}`, "spec: ", "batch_size", `"4"`, "it must be a whole number"},
		{head + `"sampler": {"kind": "resized_window", "size": 64, "scale": [2, 1]}}`, "spec: ", "scale", "[2,1]",
			"it must be [least, greatest], above 0 and at most 1000000"},
		{head + `"sampler": {"kind": "random_window", "size": 8, "per_asset": -1}}`, "spec: ", "per_asset", "-1",
			"it must be from 1 to 1048576"},
		{head + `"sampler": {"kind": "tile_window", "size": 8, "visits": -1}}`, "spec: ", "visits", "-1",
			"it must be from 1 to 1048576"},
		{head + `"sampler": {"kind": "random_window"}}`, "spec: ", "size", "missing",
			"both sides must be from 1 to 65536 pixels"},
		{head + `"fields": [{"name": "a"}, {"name": "b", "dtype": "float65"}]}`, `spec: field "b": `, "dtype",
			`"float65"`,
			"it must be one of native, float32, float16, bfloat16, uint8, int64, auto"},
		{head + `"fields": [{"name": "b", "pad": 3}]}`, `spec: field "b": `, "pad", "3", "it must be true or false"},
		{`{"batch_size": 4, "sources": [{"name": "x", "source": "d", "weight": -1}, {"source": "e"}]}`,
			`spec: source "x": `, "weight", "-1", "it must be above 0"},
	} {
		_, err := spec.ParseSpec([]byte(test.spec))
		var wrong *fault.MemberError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: got %v; want a MemberError", test.spec, err)
			continue
		}
		got := [4]string{wrong.Where, wrong.Member, wrong.Given(), wrong.Rule}
		if want := [4]string{test.where, test.member, test.given, test.rule}; got != want {
			t.Errorf("%s: got %q; want %q", test.spec, got, want)
		}
		if want := test.where + test.member + " is " + test.given + ": " + test.rule; err.Error() != want {
			t.Errorf("%s: got the text %q; want %q", test.spec, err, want)
		}
	}
}
