package dataset

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/dryrun"
)

// price holds the prices of a store for reading.
type price struct {
	perGB, perRequests float64
	epochs             int64
}

const (
	perGBFlag, perRequestsFlag, epochsFlag = "price-per-gb", "price-per-1000-requests", "epochs"

	gigabyte = 1e9 // as stores count egress
)

func (p *price) add(fl *pflag.FlagSet) {
	fl.Float64Var(&p.perGB, perGBFlag, 0, "`PRICE` of 1 GB (10^9 bytes) that is read, in any currency")
	fl.Float64Var(&p.perRequests, perRequestsFlag, 0, "`PRICE` of 1000 requests")
	console.CountVar(fl, &p.epochs, epochsFlag, 1, 1, "with a price: epochs of the run")
}

// check checks the flags.
func (p *price) check(fl *pflag.FlagSet) error {
	for name, v := range map[string]float64{perGBFlag: p.perGB, perRequestsFlag: p.perRequests} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return console.Usagef("--%s is %v: it must be 0 or more", name, v)
		}
	}
	if fl.Changed(epochsFlag) && !p.asked() {
		return console.Usagef("--%s counts for prices only: give --%s or --%s", epochsFlag, perGBFlag, perRequestsFlag)
	}
	return nil
}

func (p *price) asked() bool { return p.perGB > 0 || p.perRequests > 0 }

// priceReport is the cost of a run, in the currency of the flags.
type priceReport struct {
	PerGB       float64 `json:"per_gb"`
	PerRequests float64 `json:"per_1000_requests"`
	Epochs      int64   `json:"epochs"`
	// Bytes and Requests count the whole run.
	Bytes    int64   `json:"bytes"`
	Requests int64   `json:"requests"`
	Egress   float64 `json:"egress"`
	Asking   float64 `json:"asking"`
	Total    float64 `json:"total"`
}

// of returns the cost of a run whose epochs are like this one, or nil if no price is set.
func (p *price) of(epoch *dryrun.Work) *priceReport {
	if !p.asked() {
		return nil
	}
	work := epoch.Times(float64(p.epochs))
	r := &priceReport{PerGB: p.perGB, PerRequests: p.perRequests, Epochs: p.epochs}
	r.Bytes, r.Requests = work.Bytes, work.Requests
	r.Egress, r.Asking = float64(work.Bytes)/gigabyte*p.perGB, float64(work.Requests)/1000*p.perRequests
	r.Total = r.Egress + r.Asking
	return r
}
