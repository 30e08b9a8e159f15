package loader

// OnRelease sets what Release does, for packages that make batches of their own memory: a client
// that received one, a test. It must be called before the batch is handed on.
func (b *Batch) OnRelease(f func()) { b.release = func(bool) { f() } }

// SetMemory says what the tensors' memory is part of, and what Release (with keep) and Discard do
// with it. It must be called before the batch is handed on.
func (b *Batch) SetMemory(m Buffer, release func(keep bool)) { b.memory, b.release = m, release }
