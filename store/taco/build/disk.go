package build

import (
	"errors"
	"io"
	"os"
)

// archiveFile is a file that an archive is written to: from its beginning on, and at some places again.
type archiveFile interface {
	io.Writer
	io.WriterAt
}

// Tests replace this to fail.
var disk = func(f *os.File) archiveFile { return f }

// writeNew writes a file that does not exist yet.
func writeNew(name string, write func(f io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(disk(file)), file.Close())
}

// written returns what writes pieces to a file, one after the other.
func written(pieces ...[]byte) func(f io.Writer) error {
	return func(f io.Writer) error {
		for _, p := range pieces {
			if _, err := f.Write(p); err != nil {
				return err
			}
		}
		return nil
	}
}
