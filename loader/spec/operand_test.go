package spec

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/column"
)

// FuzzOperand compares any value of a column of times with any timestamp. The judge is the difference in nanoseconds,
// in numbers of any size.
func FuzzOperand(f *testing.F) {
	for _, s := range []string{"2020", "2020-02", "2020-02-29", "1969-12-31T23:59:59.9999999995Z", "0000", "9999-12-31",
		"1677-09-21T00:12:43.145224193Z", "1677-09-21T00:12:43.9Z", "1677-09-21T00:12:43Z", "1600",
		"2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.9Z", "2300", "2020-01-01 10:00:00+05:30", "20-1", ""} {
		for _, v := range []int64{0, -1, math.MinInt64, math.MinInt64 + 1, math.MaxInt64} {
			f.Add(s, v, uint8(0))
			f.Add(s, v, uint8(4))
		}
	}
	units := []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, 24 * time.Hour}
	f.Fuzz(func(t *testing.T, text string, v int64, which uint8) {
		unit := units[int(which)%len(units)]
		m, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := OperandOf(m)
		if err != nil {
			t.Fatal(err)
		}
		var at time.Time
		for _, form := range clocks {
			if at, err = time.Parse(form, o.text); err == nil {
				break
			}
		}
		if got := o.Count(unit); (got == nil) != (err == nil) {
			t.Fatalf("%q: %v, package time: %v", text, got, err)
		}
		if err != nil {
			return
		}
		value := new(big.Int).Mul(big.NewInt(v), big.NewInt(int64(unit)))
		want := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(int64(time.Second)))
		want.Add(want, big.NewInt(int64(at.Nanosecond())))
		c, ordered := o.Compare(column.Int, column.Value{Int: v})
		if !ordered || c != value.Cmp(want) {
			t.Fatalf("%d of %v against %q: %d, want %d", v, unit, text, c, value.Cmp(want))
		}
	})
}

// TestEmptyRange promises that integers which float64 rounds to the same number are not taken for an empty range.
func TestEmptyRange(t *testing.T) {
	for bounds, want := range map[[2]string]bool{
		{"9007199254740992", "9007199254740993"}: false,
		{"9007199254740993", "9007199254740992"}: true,
		{"9007199254740993", "9007199254740993"}: true,
		{"1", "1.5"}:                             false,
		{"1.5", "1"}:                             true,
	} {
		r := Range{Name: "a", From: json.RawMessage(bounds[0]), To: json.RawMessage(bounds[1])}
		if got := r.empty(); got != want {
			t.Errorf("%v: empty is %v, want %v", bounds, got, want)
		}
	}
}
