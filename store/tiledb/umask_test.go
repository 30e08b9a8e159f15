//go:build unix

package tiledb

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFoldersKeepTheUmask: the folders of an array and of its fragments can be read and written by
// whom the umask lets, as its files can, and as folders that are made otherwise.
func TestFoldersKeepTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for _, umask := range []int{0o022, 0o077, 0o002} {
		syscall.Umask(umask)
		dir := t.TempDir()
		a := several(t, filepath.Join(dir, "a"), [3]uint64{10, 20, 30})
		folders := 0
		err := filepath.WalkDir(a.uri, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			want := fs.FileMode(0o666)
			if e.IsDir() {
				want = 0o777
				folders++
			}
			info, err := os.Stat(path)
			if err == nil && info.Mode().Perm() != want&^fs.FileMode(umask) {
				t.Errorf("umask %03o: %s is %v", umask, path, info.Mode())
			}
			return err
		})
		if err != nil || folders != 4 {
			t.Errorf("%d folders: %v", folders, err)
		}
	}
}
