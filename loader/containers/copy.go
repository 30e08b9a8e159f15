package containers

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// copyBytes is how much of a sample is read at once: a request to a server for each of 4 MiB costs little beside
// their transfer, and a copy needs no more memory.
const copyBytes = 4 << 20

// Copy writes the bytes of a sample.
func Copy(ctx context.Context, w io.Writer, files source.Opener, e taco.Entry) error {
	file, err := taco.Section(ctx, files, e)
	if err != nil {
		return fault.WithFile(err, e.URI)
	}
	defer file.Close()
	buffer := make([]byte, max(min(copyBytes, file.Size()), 1))
	// Other methods of the writer may have buffers of their own.
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, source.Sequential(ctx, file, 0), buffer)
	return fault.WithFile(err, e.URI)
}
