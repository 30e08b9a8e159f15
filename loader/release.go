package loader

// OnRelease sets what Release does, for packages that make batches in their own memory, such as the
// client. Call it before the batch is handed out.
func (b *Batch) OnRelease(f func()) { b.release = func(bool) { f() } }

// SetMemory sets the buffer that holds the tensors, and what Release (with keep) and Discard do
// with it. Call it before the batch is handed out.
func (b *Batch) SetMemory(m Buffer, release func(keep bool)) { b.memory, b.release = m, release }
