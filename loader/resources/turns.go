package resources

// Remote files are read by more goroutines than decode, because a unit of work spends most of its time
// waiting for answers. Options.Fetchers goroutines do the units. Each reads its byte ranges, and takes
// one of Options.Workers turns while it decodes. Tickets and their rows are worked on in order, so this
// reads ahead in the order of the samples, as far as the memory of batches allows.

// Turns bounds how many goroutines decode at a time: its capacity is their number. nil bounds nothing.
type Turns chan struct{}

// Take waits for a turn. The caller must call done, which ends it.
func (t Turns) Take() (done func()) {
	if t == nil {
		return func() {}
	}
	t <- struct{}{}
	return func() { <-t }
}

// Readers returns how many goroutines to start so that n decode: n for local files, Options.Fetchers for
// remote ones, if that is more. Then it also sets Turns, with n turns.
func (o *Options) Readers(n int, remote bool) int {
	// Without more goroutines than n, each has a turn anyway, so turns stays nil.
	if !remote || o.Fetchers <= n {
		return n
	}
	o.turns = make(Turns, n)
	return o.Fetchers
}
