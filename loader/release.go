package loader

// OnRelease sets what Release does, for packages that make batches of their own memory: a client
// that received one, a test. It must be called before the batch is handed on.
func (b *Batch) OnRelease(f func()) { b.release = f }
