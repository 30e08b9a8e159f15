//go:build !unix

package shm

import "net"

// listenFile makes the file of a socket. Its directory says who may connect.
func listenFile(path string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
