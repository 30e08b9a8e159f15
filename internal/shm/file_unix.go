//go:build unix

package shm

import (
	"net"
	"syscall"
)

// listenFile makes the file of a socket with the mode 0600. The umask sets it before the file exists: after a chmod, a
// process that connected in between would keep its connection. The umask is for the whole process, so files that other
// goroutines make meanwhile are for its user alone, too.
func listenFile(path string) (*net.UnixListener, error) {
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
