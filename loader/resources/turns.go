package resources

// How remote files are read: units of work spend their time waiting for answers, so more of them are under way
// than can be decoded at a time. Options.Fetchers goroutines do units; each reads its byte ranges when it comes
// to them, and takes one of Options.Workers turns while it decodes. As tickets are worked on in their order,
// and their rows likewise, this reads ahead in the order of the samples, as far as the memory of batches allows.

// Turns lets so many goroutines decode at a time; nil lets all.
type Turns chan struct{}

// Take waits for a turn and returns what ends it.
func (t Turns) Take() (done func()) {
	if t == nil {
		return func() {}
	}
	t <- struct{}{}
	return func() { <-t }
}

// Readers returns how many goroutines do the work of n that decode, and sets up their turns: more of them where files
// are remote.
func (o *Options) Readers(n int, remote bool) int {
	if !remote || o.Fetchers <= n {
		return n
	}
	o.Turns = make(Turns, n)
	return o.Fetchers
}
