package cli

import (
	"strings"
	"testing"
)

// TestMalformedFlagValues checks that the error about a flag's value names the flag, the value and the rule.
func TestMalformedFlagValues(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--memory is "12x": it must be a whole number`, []string{"serve", "--memory", "12x"}},
		{`--memory is "99999999999999999999": it must be a whole number of at most 64 bits`,
			[]string{"serve", "--memory", "99999999999999999999"}},
		{`--seed is "-1": it must be a whole number from 0`, []string{"plan", "--seed", "-1", "x.tif"}},
		{`--bands is "0,b": it must be whole numbers, such as 0,2`, []string{"plan", "--bands", "0,b", "x.tif"}},
		{`--seconds is "a": it must be a number`, []string{"bench", "decode", "--seconds", "a", "x.tif"}},
		{`--seconds is "1e999": it must be a number, and at most 1.8e308`,
			[]string{"bench", "decode", "--seconds", "1e999", "x.tif"}},
		{`--max-chunk is "0": it must be at least 1`, []string{"plan", "--max-chunk", "0", "x.tif"}},
		{`--max-chunk is "x": it must be a whole number`, []string{"plan", "--max-chunk", "x", "x.tif"}},
		{`--idle-timeout is "5": it must be a duration, such as 30s or 5m`, []string{"serve", "--idle-timeout", "5"}},
		{`--timestamp is "x": it must be milliseconds since 1970, or a time with a time zone such as ` +
			`2026-11-20T12:00:00Z`, []string{"info", "--timestamp", "x", "x.tif"}},
		{`--timestamp is "3..2": it ends before it begins`, []string{"info", "--timestamp", "3..2", "x.tif"}},
		{`--json is "maybe": it must be true or false`, []string{"info", "--json=maybe", "x.tif"}},
		{`--where is "": it is empty; leave the flag out instead`, []string{"ls", "--where", "", "x.tacozip"}},
		{"unknown flag: --jsn", []string{"info", "--jsn", "x.tif"}},
	} {
		if r := chaski(t.Context(), c.args...); r.code != 2 || !strings.HasPrefix(r.err, "chaski: "+c.want+"\n") {
			t.Errorf("%q: exit code %d, %q; want %q", c.args, r.code, r.err, c.want)
		}
	}
}
