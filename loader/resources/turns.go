package resources

import "github.com/chaski-eo/chaski/internal/turns"

// Remote files are read by more goroutines than decode, because a unit of work spends most of its time
// waiting for answers. Options.Fetchers goroutines do the units. Each reads its byte ranges, and takes
// one of Options.Workers turns while it decodes. Tickets and their rows are worked on in order, so this
// reads ahead in the order of the samples, as far as the memory of batches allows.

// Turns bounds how many goroutines of all engines and reads that share it decode at a time. Clients (Turn.Client) get
// equal parts of it. nil bounds nothing.
type Turns = turns.Turns

// NewTurns returns turns for n goroutines at a time.
func NewTurns(n int) *Turns { return turns.Processors(n) }

// Readers returns how many goroutines to start so that n decode: n for local files, Options.Fetchers for
// remote ones, if that is more. It sets the turns that they take: Options.Turns, or else n for remote ones.
func (o *Options) Readers(n int, remote bool) int {
	o.waits = remote
	// Without more goroutines than n, each has a turn anyway.
	if !remote || o.Fetchers <= n {
		return n
	}
	if o.Turns == nil {
		o.Turns = NewTurns(n)
	}
	return o.Fetchers
}

// Waits reports whether goroutines wait for servers between two turns, as Readers has found.
func (o *Options) Waits() bool { return o.waits }

// MostFetchers returns how many goroutines read remote files if each needs little memory: more than Fetchers if that is
// the default, else 0.
func (o *Options) MostFetchers() int { return o.most }
