package remote

import (
	"time"

	"github.com/chaski-eo/chaski/source"
)

const (
	// StartGap is the gap of readers before the first answers, as of a store in the same region, and of an engine's
	// first readers: 30 ms × 100 MB/s ÷ 32 = 94 kB.
	StartGap    = 96 << 10
	startFlying = 32 // requests in flight, until some were counted

	// fill is how many times what the link holds (trip × rate) is requested: once is on the way, once waits in the
	// store, and a half covers answers that take longer than the shortest.
	fill = 2.5
	// minFlight and maxFlight bound that; it begins with minFlight, so the first requests do not wait for each
	// other on a slow link. 2 MiB in 30 ms are 70 MB/s: on a faster link each interval allows 2.5 times as much.
	minFlight = 2 << 20
	maxFlight = 64 << 20

	// period is how long an estimate counts: links and stores change.
	period = 10 * time.Second
	// interval is over how long a rate is measured: several round trips.
	interval = 250 * time.Millisecond
	// restIntervals are between two tries of a larger boost.
	restIntervals = 20
	maxBoost      = 16
)

// link estimates the way to a host from its answers. Answers wait for each other on a busy link, and an idle link
// brings less than it could, so the shortest time and the highest rate count.
type link struct {
	since time.Time        // when the current period began
	trips [2]time.Duration // the shortest time to an answer, in the current period and in the one before; 0: none
	rates [2]float64       // the highest rate, in bytes a second; 0: none

	intervalStart time.Time // of the interval in which bytes are counted; zero until the first bytes after an idle time
	arrived       int64     // bytes in it
	hadWait       bool      // a request waited in it because of the bytes in flight

	flying float64 // requests in flight, smoothed

	mean, deviation time.Duration // of the times to an answer, smoothed

	// boost multiplies the bytes in flight. Where most answers take far longer than the shortest, more bytes bring a
	// higher rate: a larger boost is tried now and then, and kept for a period if the rate grows by a tenth.
	boost  float64
	before float64 // the rate before the try
	tries  bool
	rest   int // intervals until the next try
}

// roll begins a new period when the current one is over. Without answers the old estimates stay.
func (l *link) roll(now time.Time) {
	if now.Sub(l.since) < period {
		return
	}
	l.since, l.boost = now, max(l.boost/1.5, 1)
	if l.trips[0] > 0 {
		l.trips[1], l.trips[0] = l.trips[0], 0
	}
	if l.rates[0] > 0 {
		l.rates[1], l.rates[0] = l.rates[0], 0
	}
}

// answered notes how long an answer took to begin.
func (l *link) answered(now time.Time, trip time.Duration) {
	l.roll(now)
	if l.trips[0] == 0 || trip < l.trips[0] {
		l.trips[0] = trip
	}
	l.deviation += ((trip - l.mean).Abs() - l.deviation) / 32
	l.mean += (trip - l.mean) / 32
}

// begin notes that a request begins beside others.
func (l *link) begin(now time.Time, others int) {
	if others == 0 { // the link was idle
		l.intervalStart, l.arrived, l.hadWait = time.Time{}, 0, false
	}
	if l.flying == 0 {
		l.flying = startFlying
	}
	l.flying += (float64(others+1) - l.flying) / 16
}

// brought notes bytes of a body.
func (l *link) brought(now time.Time, n int64) {
	if l.intervalStart.IsZero() {
		l.intervalStart = now // the round trip before is no sign of a low rate, after which a boost seems to work
		return
	}
	l.arrived += n
	spent := now.Sub(l.intervalStart)
	if spent < interval {
		return
	}
	l.roll(now)
	rate := float64(l.arrived) / spent.Seconds()
	l.rates[0] = max(l.rates[0], rate)
	if l.hadWait {
		l.tried(rate)
	}
	l.intervalStart, l.arrived, l.hadWait = now, 0, false
}

// tried decides about the boost after an interval with a rate.
func (l *link) tried(rate float64) {
	switch {
	case l.tries && rate < 1.1*l.before:
		l.boost /= 1.5
		l.tries, l.rest = false, restIntervals
	case l.rest > 0:
		l.rest--
	case l.boost < maxBoost:
		l.boost = max(l.boost, 1) * 1.5
		l.tries, l.before = true, rate
	}
}

// holds returns how many bytes are on the way at a time if the link is full.
func (l *link) holds() float64 {
	trip, rate := l.trips[0], max(l.rates[0], l.rates[1])
	if trip == 0 || l.trips[1] > 0 && l.trips[1] < trip {
		trip = l.trips[1]
	}
	return trip.Seconds() * rate
}

// limit returns how many bytes may be in flight.
func (l *link) limit() int64 {
	return int64(min(max(fill*l.holds(), minFlight)*max(l.boost, 1), maxFlight))
}

// full returns how many bytes in flight keep the link busy until the answer to a new request begins.
func (l *link) full() int64 { return int64(float64(l.limit()) / fill) }

// gap returns the gap that costs as much as another request: while an answer is on the way, the requests in flight
// share what the link brings in that time.
func (l *link) gap() int64 {
	if l.holds() == 0 { // no answers yet
		return StartGap
	}
	return int64(min(max(l.holds()/l.flying, source.MinGap), source.MaxGap))
}
