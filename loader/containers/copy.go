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
	buf := make([]byte, min(copyBytes, file.Size()))
	for off := int64(0); off < file.Size(); off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), file.Size()-off)]
		if err := file.ReadAt(ctx, buf, off); err != nil {
			return fault.WithFile(err, e.URI)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}
