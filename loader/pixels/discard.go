package pixels

import (
	"github.com/chaski-eo/chaski/chunk"
)

// Nowhere is a sink that only wants to know whether an asset can be read.
type Nowhere struct{}

func (Nowhere) Put(*chunk.Index, int, []byte) {}

func (Nowhere) Begin(chunk.Box) Sink { return Nowhere{} }
