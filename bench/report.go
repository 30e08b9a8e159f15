// Package bench measures the decoding of whole files, the loading of batches in this process, and the streaming of
// batches into Python. A report has the settings, the machine and every round, so others can repeat a number
// and check it.
//
// A measurement has a warm-up and then a number of rounds of at least a given time. Files are read through the cache
// of the operating system, so they come from memory after the warm-up if they fit. MB means 10^6 bytes of
// decoded pixels.
package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/stats/moments"
)

// Rounds are the rounds of a measurement.
type Rounds struct {
	// Count rounds of at least Time each. Default 5 of 1 s.
	Count int
	Time  time.Duration
	// Progress is called after every round.
	Progress func(done, total int)
}

func (r *Rounds) setDefaults() {
	r.Count, r.Time = cmp.Or(r.Count, 5), cmp.Or(r.Time, time.Second)
	if r.Progress == nil {
		r.Progress = func(int, int) {}
	}
}

// Setting is one setting of a measurement.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Figure is one measured quantity, with one number for each round.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

// newFigure summarises the rounds of a figure. There must be at least one.
func newFigure(name, unit string, rounds []float64) Figure {
	for i, v := range rounds {
		rounds[i] = rounded(v)
	}
	sorted := slices.Sorted(slices.Values(rounds))
	return Figure{Name: name, Unit: unit, Min: sorted[0], Median: rounded(moments.Quantile(0.5, sorted)),
		Max: sorted[len(sorted)-1], Rounds: rounds}
}

// rounded returns a number with six digits: no clock measures more of them.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Report is the result of a measurement.
type Report struct {
	Workload string    `json:"workload"`
	Settings []Setting `json:"settings"`
	Machine  Machine   `json:"machine"`
	Figures  []Figure  `json:"figures"`
	// Stages is the time of all workers in all rounds, by stage, if it was measured.
	Stages []StageTime `json:"stages,omitempty"`
}

// StageTime is the time of all workers in one stage.
type StageTime struct {
	Stage     string  `json:"stage"`
	Seconds   float64 `json:"seconds"`
	Share     float64 `json:"share"` // of the workers' time, 0 to 1
	PerSample float64 `json:"ms_per_sample"`
}

func (r *Report) set(name, format string, args ...any) {
	r.Settings = append(r.Settings, Setting{name, fmt.Sprintf(format, args...)})
}

// stageTimes returns the time spent in each stage between two moments, and its share per sample.
func stageTimes(from, to resources.Spent, samples int64) []StageTime {
	var sum time.Duration
	spent := to.Sub(from)
	for _, d := range spent {
		sum += d
	}
	out := make([]StageTime, 0, len(to))
	for i, stage := range resources.AllStages() {
		t := spent[i]
		out = append(out, StageTime{
			Stage: stage.String(), Seconds: rounded(t.Seconds()),
			Share:     rounded(t.Seconds() / max(sum.Seconds(), 1e-9)),
			PerSample: rounded(1e3 * t.Seconds() / float64(max(samples, 1))),
		})
	}
	return out
}

// waits has how long a consumer waited for each batch of a round.
type waits []time.Duration

// waitRounds has the median, the 99th percentile and the maximum of the waits of every round, in ms: waits that
// were measured, none between two.
type waitRounds struct{ p50, p99, max []float64 }

func (w *waitRounds) add(all waits) {
	ms := make([]float64, len(all))
	for i, d := range all {
		ms[i] = float64(d) / 1e6
	}
	slices.Sort(ms)
	quantile := func(fraction float64) float64 { return ms[int(math.Ceil(fraction*float64(len(ms))))-1] }
	w.p50, w.p99, w.max = append(w.p50, quantile(0.5)), append(w.p99, quantile(0.99)), append(w.max, ms[len(ms)-1])
}

func (w *waitRounds) figures() []Figure {
	return []Figure{newFigure("wait p50", "ms", w.p50), newFigure("wait p99", "ms", w.p99),
		newFigure("longest wait", "ms", w.max)}
}
