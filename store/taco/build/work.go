package build

import (
	"errors"
	"io/fs"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// work is a container that is made under a name of its own, and may be continued.
type work struct {
	file    *os.File // of a ZIP
	zip     *archive
	from    int64           // what is there already: bytes of a ZIP, files of a folder
	kept    int64           // files that were there
	known   map[string]bool // of a folder, the files and folders that were there
	folders []string        // those of known that are folders
	fresh   durable.Fresh   // of a folder, what is not on the disk yet
	started bool            // a file was written that was not there
}

// damaged is the error about what an interrupted run left.
func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "interrupted run", fault.NoOffset, format, args...)
}

// archive returns the archive that goes on behind what is there.
func (k *work) archive(f archiveFile) *archive {
	k.zip = newArchive(&resumed{archiveFile: f, left: k.from})
	return k.zip
}

// resumed is a file whose first bytes are there. They are written again to the same effect, and so are left out.
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

// start looks, before the first file that is not there, whether all that was noted is.
func (k *work) start(kept bool) error {
	if k.started {
		if kept {
			return errors.New("a file is kept after one that is not")
		}
		return nil
	}
	if kept {
		k.kept++
		return nil
	}
	k.started = true
	at := k.kept
	if k.zip != nil {
		if at = k.zip.at(); k.from == 0 {
			return nil // only the entry TACO_HEADER, which is written again
		}
	}
	if at != k.from {
		return damaged("what was noted ends at %d, and what is there at %d", at, k.from)
	}
	return k.sweep()
}

// flush waits until all is on the disk.
func (k *work) flush() (int64, error) {
	if k.zip != nil {
		if err := k.zip.out.Flush(); err != nil {
			return 0, err
		}
		return k.zip.at(), durable.SyncFile(k.file)
	}
	return k.kept, k.fresh.Sync()
}

// makeFolder makes a folder, which may be there if a run is continued. Without one it has to be new.
func (k *work) makeFolder(path string) error {
	err := os.Mkdir(path, 0o777)
	if k != nil && errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// mkdir makes a folder of the container.
func (k *work) mkdir(data, path string) error {
	full := pathname.Join(data, path)
	if k != nil {
		k.known[full] = true
		k.folders = append(k.folders, full)
		if k.started {
			k.fresh.AddFolder(full)
		}
	}
	return k.makeFolder(full)
}

// keepFile checks that a file is there.
func (k *work) keepFile(data, path string, size int64) error {
	full := pathname.Join(data, path)
	st, err := os.Lstat(full)
	if err == nil && (!st.Mode().IsRegular() || st.Size() != size) {
		err = damaged("%s has %d bytes, of %d that were noted", path, st.Size(), size)
	}
	k.known[full] = true
	return err
}

// wrote notes a file of a folder.
func (k *work) wrote(path string) {
	if k != nil {
		k.kept++
		k.fresh.Add(path)
	}
}

// sweep removes the files that were written after the last flush: they are written again, and those of samples that a
// run leaves out now must not stay.
func (k *work) sweep() error {
	if k.zip != nil {
		return nil
	}
	for _, path := range k.folders {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name := pathname.Join(path, e.Name()); !k.known[name] {
				if err := os.RemoveAll(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
