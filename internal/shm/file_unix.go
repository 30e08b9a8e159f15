//go:build unix

package shm

import (
	"net"
	"os"
	"sync"
	"syscall"
)

// umask is held while the umask of the process is changed. Of two changes at a time, the second would restore what the
// first had set.
var umask sync.Mutex

// listenFile makes the file of a socket with the mode 0600. The umask keeps others out before the file exists: after a
// chmod, a process that connected in between would keep its connection. The umask is for the whole process, so what
// other goroutines make meanwhile is for its user alone, too. It leaves the user all rights, because a directory
// needs the right to search it to be of use.
func listenFile(path string) (*net.UnixListener, error) {
	umask.Lock()
	before := syscall.Umask(0o077)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(before)
	umask.Unlock()
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}
