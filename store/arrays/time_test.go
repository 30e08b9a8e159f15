package arrays

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimeOrigins: a moment that package time writes in each of its forms is that moment.
func TestTimeOrigins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		zone := time.FixedZone("", 60*(r.IntN(28*60)-14*60))
		moment := time.Date(1600+r.IntN(600), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60),
			r.IntN(60), 1e6*r.IntN(1000), zone)
		for layout, exact := range map[string]time.Duration{
			"2006-01-02 15:04:05.000 -07:00": time.Millisecond, "2006-1-2T15:04:05-0700": time.Second,
			"2006-01-02 15:04Z07:00": time.Minute,
		} {
			text := moment.Format(layout)
			if got, ok := originOf(text); !ok || !got.Equal(moment.Truncate(exact)) {
				t.Fatalf("%s is %v, %v, want %v", text, got, ok, moment.Truncate(exact))
			}
		}
	}
	midnight := time.Date(1999, 3, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"1999-03-01": midnight, "1999-3-1 UTC": midnight, "1999-03-01 0:0:0. GMT": midnight,
		"1999-03-01 05 +5": midnight, "1999-02-28 19:00 -5": midnight,
		"1999-02-29": {}, "1999-13-01": {}, "1999-00-01": {}, "1999-03-01 24:00": {}, "1999-03-01 10:60": {},
		"1999-03-01 10:00:60": {}, "1999-03": {}, "03-01-1999 x": {}, "": {},
	} {
		if got, ok := originOf(text); ok == want.IsZero() || ok && !got.Equal(want) {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	if got, ok := originOf("0001-01-01"); !ok || !got.IsZero() { // the zero time is a moment like others
		t.Errorf("0001-01-01 is %v, %v", got, ok)
	}
}

// TestTimeUnits: a number of a unit is that many durations after the origin, to the microsecond. Numbers that no
// timestamp can hold are null.
func TestTimeUnits(t *testing.T) {
	origin := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, unit := range timeUnits {
		for _, plural := range []string{name, name + "s"} {
			text, _ := json.Marshal(plural + " since 2001-02-03 04:05:06")
			times, err := (&Meta{Attrs: Object{"units": text}}).cfTime()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 7, -3, 100_000} {
				want := origin.Add(time.Duration(n) * unit).Round(time.Microsecond).UnixMicro()
				if got := times.value(float64(n)); got.Null || got.Int != want {
					t.Errorf("%d %s: %v, want %d", n, plural, got, want)
				}
			}
			for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
				if got := times.value(n); !got.Null {
					t.Errorf("%v %s: %v", n, plural, got)
				}
			}
		}
	}
	for units, calendar := range map[string]string{
		"days since 2001-02-03": "noleap", "months since 2001-02-03": "", "days since yesterday": "",
		"days since 1500-01-01": "standard",
	} {
		meta := &Meta{Attrs: Object{"units": json.RawMessage(fmt.Sprintf("%q", units)),
			"calendar": json.RawMessage(fmt.Sprintf("%q", calendar))}}
		if times, err := meta.cfTime(); err == nil {
			t.Errorf("%s in the calendar %q: %v", units, calendar, times)
		}
	}
	if times, err := (&Meta{Attrs: Object{"units": json.RawMessage(`"metres"`)}}).cfTime(); times != nil || err != nil {
		t.Errorf("metres: %v, %v", times, err)
	}
}
