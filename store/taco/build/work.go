package build

import (
	"errors"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// work is an unfinished container under a temporary name, which a later run may continue.
type work struct {
	file    *os.File // of a ZIP
	zip     *archive
	from    int64           // what an earlier run has written: bytes of a ZIP, files of a folder
	kept    int64           // files of the earlier run that this run kept
	known   map[string]bool // of a folder: the files and folders that belong to the container
	folders []string        // those of known that are folders
	fresh   durable.Fresh   // of a folder: files and folders that are not synced yet
	started bool            // this run has written its first file
}

// damaged returns an error about the leftovers of an interrupted run.
func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "interrupted run", fault.NoOffset, format, args...)
}

// archive returns an archive that continues after the bytes of the earlier run.
func (k *work) archive(f archiveFile) *archive {
	k.zip = newArchive(&resumed{archiveFile: f, left: k.from})
	return k.zip
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

// start checks, before the first new file, that the files of the earlier run are those that its journal lists. kept
// says that the next file is one of the earlier run.
func (k *work) start(kept bool) error {
	if k == nil { // of a run that cannot be continued
		return nil
	}
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
	pos := k.kept
	if k.zip != nil {
		if pos = k.zip.at(); k.from == 0 {
			return nil // the ZIP holds only the entry TACO_HEADER, which is written again
		}
	}
	if pos != k.from {
		return damaged("its files end at %d, but its journal says %d", pos, k.from)
	}
	return k.sweep()
}

// flush syncs all files, and returns the from of a run that continues here.
func (k *work) flush() (int64, error) {
	if k.zip != nil {
		if err := k.zip.out.Flush(); err != nil {
			return 0, err
		}
		return k.zip.at(), durable.SyncFile(k.file)
	}
	return k.kept, k.fresh.Sync()
}

// keepFolder notes a folder of the container.
func (k *work) keepFolder(path string) {
	k.known[path] = true
	k.folders = append(k.folders, path)
	if k.started {
		k.fresh.AddFolder(path)
	}
}

// keepFile checks that a file of the earlier run exists and has size bytes.
func (k *work) keepFile(path, name string, size int64) error {
	st, err := os.Lstat(path)
	if err == nil && (!st.Mode().IsRegular() || st.Size() != size) {
		err = damaged("%s has %d bytes, but its journal says %d", name, st.Size(), size)
	}
	k.known[path] = true
	return err
}

// wrote counts a new file of a folder.
func (k *work) wrote(path string) {
	if k != nil {
		k.kept++
		k.fresh.Add(path)
	}
}

// sweep removes files that the earlier run wrote after its last flush. This run writes them again, unless it leaves
// their samples out.
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
