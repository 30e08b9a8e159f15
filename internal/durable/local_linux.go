package durable

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// localTypes are file systems of one machine, on which a lock that Lock gets shows that no other process holds it. All
// can exchange two folders, so no kill leaves the only copy of a folder under a temporary name: see Replace.
var localTypes = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC}

// isLocal reports whether an open folder is on a file system whose locks all writers see.
var isLocal = func(folder *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(folder.Fd()), &st) == nil && slices.Contains(localTypes, int64(st.Type))
}
