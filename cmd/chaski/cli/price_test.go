package cli

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestPlanPrices: the price is that of the bytes and requests of all epochs.
func TestPlanPrices(t *testing.T) {
	workplace(t)
	r := chaski(t.Context(), "plan", "--json", "--price-per-gb", "90000", "--price-per-1000-requests", "4", "--epochs",
		"3", "--batch", "2", "--window", "20x30", "--bad-samples", "skip", "chips")
	var got struct {
		Total struct{ Bytes, Requests float64 }
		Price struct {
			Bytes, Requests, Egress, Asking, Total float64
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); r.code != 0 || err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	egress, asking := 3*got.Total.Bytes*90000/1e9, 3*got.Total.Requests*4/1000
	p := &got.Price
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }
	if got.Total.Bytes == 0 || p.Bytes != 3*got.Total.Bytes || p.Requests != 3*got.Total.Requests ||
		!near(p.Egress, egress) || !near(p.Asking, asking) || !near(p.Total, egress+asking) {
		t.Errorf("%+v, not %v and %v", got, egress, asking)
	}
	r = chaski(t.Context(), "plan", "--price-per-gb", "0.09", "--batch", "2", "--bad-samples", "skip", "chips")
	if r.code != 0 || !strings.Contains(r.out, "per_gb: 0.09") || !strings.Contains(r.out, "epochs: 1") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--epochs", "2"}, {"--price-per-gb", "-1"}, {"--price-per-gb", "nan"}} {
		if r := chaski(t.Context(), append(append([]string{"plan"}, args...), "chips")...); r.code != 2 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
