package build

import (
	"os"

	"github.com/chaski-eo/chaski/fault"
)

// growing is an unfinished ZIP under a temporary name, which a later run may continue.
type growing struct {
	file *os.File
	zip  *archive
	from int64 // how many of its bytes an earlier run has written
}

// damaged returns an error about the leftovers of an interrupted run.
func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "interrupted run", fault.NoOffset, format, args...)
}

// resumed is a file whose first bytes an earlier run wrote. This run makes the same bytes again, so Write drops them.
type resumed struct {
	archiveFile
	left int64
}

// Write implements io.Writer.
func (r *resumed) Write(p []byte) (int, error) {
	n := int(min(r.left, int64(len(p))))
	r.left -= int64(n)
	if n == len(p) {
		return n, nil
	}
	m, err := r.archiveFile.Write(p[n:])
	return n + m, err
}
