//go:build !linux

package shm

import "net"

// Supported says whether this system has shared memory.
const Supported = false

// Segment does not exist here.
type Segment struct{}

// New fails.
func New(int) (*Segment, error) { return nil, ErrUnsupported }

// Open fails.
func Open(int, int) (*Segment, error) { return nil, ErrUnsupported }

// Bytes returns nil.
func (*Segment) Bytes() []byte { return nil }

// Dup fails.
func (*Segment) Dup() (int, error) { return -1, ErrUnsupported }

// Close does nothing.
func (*Segment) Close() error { return nil }

// CloseFile does nothing.
func CloseFile(int) {}

// Listener does not exist here.
type Listener struct{ *net.UnixListener }

// Listen fails.
func Listen(string) (*Listener, error) { return nil, ErrUnsupported }

// Accept fails.
func (*Listener) Accept() (*Conn, error) { return nil, ErrUnsupported }

// Dial fails.
func Dial(string) (*Conn, error) { return nil, ErrUnsupported }

// ListenUser fails.
func ListenUser(string) (net.Listener, error) { return nil, ErrUnsupported }

// ListenFile listens on a stream socket that is a file, to which other users may not write.
func ListenFile(path string) (net.Listener, error) { return listenFile(path) }

// SameUser fails.
func SameUser(*net.UnixConn) error { return ErrUnsupported }

// Peer fails.
func Peer(*net.UnixConn) (user, process int, err error) { return 0, 0, ErrUnsupported }

// Conn does not exist here.
type Conn struct{ *net.UnixConn }

// Send fails.
func (*Conn) Send(Message, int) error { return ErrUnsupported }

// Receive fails.
func (*Conn) Receive() (Message, int, error) { return Message{}, -1, ErrUnsupported }
