package bench

import (
	"slices"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
)

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

// waitRounds has the median, the 99th percentile and the maximum of the waits of every round, in ms.
type waitRounds struct{ p50, p99, max []float64 }

func (w *waitRounds) add(all waits) {
	slices.Sort(all)
	quantile := func(q int) float64 { return float64(all[(len(all)-1)*q/100]) / 1e6 }
	w.p50, w.p99, w.max = append(w.p50, quantile(50)), append(w.p99, quantile(99)), append(w.max, quantile(100))
}

func (w *waitRounds) figures() []Figure {
	return []Figure{newFigure("wait p50", "ms", w.p50), newFigure("wait p99", "ms", w.p99),
		newFigure("longest wait", "ms", w.max)}
}
