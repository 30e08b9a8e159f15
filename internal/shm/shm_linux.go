package shm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/internal/procs"
)

// Supported says whether this system has shared memory.
const Supported = true

const (
	// seals prevent all later changes of a segment's size: a reader of pages that another process took
	// away would die of SIGBUS.
	seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	// hugePage is the size of a huge page on amd64 and arm64. Segments of at least this size request huge pages.
	hugePage = 2 << 20
)

// Segment is mapped shared memory. It is for one goroutine.
type Segment struct {
	data []byte
	file int
	own  bool // the memory is this process's, and not of the one that handed the segment over
}

// New returns a segment of n zero bytes. It allocates the pages at once, so running out of memory is
// an error here and not a signal later.
func New(n int) (*Segment, error) {
	if n < 1 {
		return nil, fmt.Errorf("shm: a segment of %d bytes", n)
	}
	file, err := unix.MemfdCreate("chaski", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	// The heap is told before the pages are used, so it makes room for them.
	procs.Outside(int64(n))
	segment, err := build(file, n)
	if err != nil {
		procs.Outside(-int64(n))
		return nil, errors.Join(err, unix.Close(file))
	}
	segment.own = true
	return segment, nil
}

func build(file, n int) (*Segment, error) {
	if err := unix.Ftruncate(file, int64(n)); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	segment, err := mapped(file, n)
	if err != nil {
		return nil, err
	}
	err = populate(file, segment.data)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals)
		err = os.NewSyscallError("fcntl", err)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(segment.data))
	}
	return segment, nil
}

// populate allocates the pages.
func populate(file int, data []byte) error {
	// Through the mapping, because fallocate makes no huge pages. Linux before 5.14 needs fallocate.
	err := retried(func() error { return unix.Madvise(data, unix.MADV_POPULATE_WRITE) })
	if err == nil || !errors.Is(err, unix.EINVAL) {
		return os.NewSyscallError("madvise", err)
	}
	return os.NewSyscallError("fallocate", retried(func() error {
		return unix.Fallocate(file, 0, 0, int64(len(data)))
	}))
}

// retried calls f until no signal interrupts it.
func retried(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func mapped(file, n int) (*Segment, error) {
	data, err := unix.Mmap(file, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if n >= hugePage {
		// An error does no harm, since it is only advice.
		_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	}
	return &Segment{data: data, file: file}, nil
}

// Open maps a received segment and takes ownership of the file. It refuses a file whose size is not n, and
// one that its creator could still shrink.
func Open(file, n int) (*Segment, error) {
	segment, err := open(file, n)
	if err != nil {
		return nil, errors.Join(err, unix.Close(file))
	}
	return segment, nil
}

func open(file, n int) (*Segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	have, err := unix.FcntlInt(uintptr(file), unix.F_GET_SEALS, 0)
	if err != nil || have&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("shm: the segment is not sealed: %v", err)
	}
	if n < 1 || st.Size != int64(n) {
		return nil, fmt.Errorf("shm: the segment has %d bytes, the message says %d", st.Size, n)
	}
	return mapped(file, n)
}

// Bytes returns the memory of the segment.
func (s *Segment) Bytes() []byte { return s.data }

// Dup returns another descriptor of the segment.
func (s *Segment) Dup() (int, error) { return unix.FcntlInt(uintptr(s.file), unix.F_DUPFD_CLOEXEC, 0) }

// Close unmaps the memory, which must not be used afterwards.
func (s *Segment) Close() error {
	err := errors.Join(
		os.NewSyscallError("munmap", unix.Munmap(s.data)),
		os.NewSyscallError("close", unix.Close(s.file)))
	if s.own {
		procs.Outside(-int64(len(s.data)))
	}
	return err
}

// CloseFile closes a received file that is not needed. It ignores -1.
func CloseFile(file int) { _ = unix.Close(file) }

// Listener is the server's end of a control socket. It accepts processes of this user only. Close ends Accept.
type Listener struct{ *net.UnixListener }

// Listen opens a control socket with a name in the abstract namespace.
func Listen(name string) (*Listener, error) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "@" + name, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	return &Listener{listener}, nil
}

// Accept waits for the next process of this user. It closes connections of other users.
func (d *Listener) Accept() (*Conn, error) {
	for {
		conn, err := d.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if SameUser(conn) == nil {
			return &Conn{conn}, nil
		}
		conn.Close()
	}
}

// Dial connects to a control socket of this user.
func Dial(name string) (*Conn, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@" + name, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	if err := SameUser(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Conn{conn}, nil
}

// ListenUser listens on a stream socket in the abstract namespace, for processes of this user only.
func ListenUser(name string) (net.Listener, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return userListener{listener}, nil
}

// ListenFile listens on a stream socket that is a file, for processes of this user only.
func ListenFile(path string) (net.Listener, error) {
	listener, err := listenFile(path)
	if err != nil {
		return nil, err
	}
	return userListener{listener}, nil
}

type userListener struct{ *net.UnixListener }

// Accept implements net.Listener.
func (l userListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if SameUser(conn) == nil {
			return conn, nil
		}
		conn.Close()
	}
}

// SameUser returns an error unless the peer of a Unix socket runs as the user of this process.
func SameUser(c *net.UnixConn) error {
	user, _, err := Peer(c)
	if err != nil {
		return err
	}
	if user != os.Geteuid() {
		return fmt.Errorf("shm: the peer runs as user %d, this process as user %d", user, os.Geteuid())
	}
	return nil
}

// Peer returns the user and the process that connected to a Unix socket. The process is 0 if it belongs to another PID
// namespace.
func Peer(c *net.UnixConn) (user, process int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var peer *unix.Ucred
	if failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); failed != nil {
		return 0, 0, failed
	}
	if err != nil {
		return 0, 0, os.NewSyscallError("getsockopt", err)
	}
	return int(peer.Uid), int(peer.Pid), nil
}

// Conn is one end of a control socket. One goroutine may send while another receives. Close ends Receive at both ends.
type Conn struct{ *net.UnixConn }

// Send sends a message, and a file if file is not negative. The file still belongs to the caller.
func (c *Conn) Send(m Message, file int) error {
	var oob []byte
	if file >= 0 {
		oob = unix.UnixRights(file)
	}
	_, _, err := c.WriteMsgUnix(m.bytes(), oob, nil)
	return err
}

// Receive returns the next message and its file, or -1 if it has none. The error is io.EOF if the peer is
// gone.
func (c *Conn) Receive() (Message, int, error) {
	var b [Size + 1]byte
	// Room for four files, since a hostile peer may send more than one; all must be closed.
	oob := make([]byte, unix.CmsgSpace(4*4))
	count, oobn, flags, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return Message{}, -1, err
	}
	files := rights(oob[:oobn])
	if count == 0 && len(files) == 0 {
		return Message{}, -1, io.EOF
	}
	message, err := parse(b[:count])
	if err == nil && (len(files) > 1 || flags&unix.MSG_CTRUNC != 0) {
		err = fmt.Errorf("shm: %d files in a message: at most one is allowed", len(files))
	}
	if err == nil && (message.Kind == Give) != (len(files) == 1) {
		err = fmt.Errorf("shm: message of kind %d with %d files", message.Kind, len(files))
	}
	if err != nil {
		for _, f := range files {
			CloseFile(f)
		}
		return Message{}, -1, err
	}
	if len(files) == 1 {
		return message, files[0], nil
	}
	return message, -1, nil
}

// rights returns the files that came with a packet.
func rights(oob []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if f, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, f...)
		}
	}
	return files
}
