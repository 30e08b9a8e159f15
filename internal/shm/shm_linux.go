package shm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Supported says whether this system has shared memory.
const Supported = true

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// hugePage is from where on the system is asked for large pages.
const hugePage = 2 << 20

// Segment is mapped shared memory. It is for one goroutine.
type Segment struct {
	data []byte
	file int
}

// New makes a segment of n bytes, which are 0. The pages are there when it returns: memory that runs
// out is an error here, not a signal later.
func New(n int) (*Segment, error) {
	if n < 1 {
		return nil, fmt.Errorf("shm: a segment of %d bytes", n)
	}
	file, err := unix.MemfdCreate("chaski", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	s, err := build(file, n)
	if err != nil {
		return nil, errors.Join(err, unix.Close(file))
	}
	return s, nil
}

func build(file, n int) (*Segment, error) {
	if err := unix.Ftruncate(file, int64(n)); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	s, err := mapped(file, n)
	if err != nil {
		return nil, err
	}
	err = populate(file, s.data)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals)
		err = os.NewSyscallError("fcntl", err)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(s.data))
	}
	return s, nil
}

// populate makes the pages. Large ones come only from the mapping; Linux before 5.14 does not know
// that way.
func populate(file int, data []byte) error {
	err := retried(func() error { return unix.Madvise(data, unix.MADV_POPULATE_WRITE) })
	if err == nil || !errors.Is(err, unix.EINVAL) {
		return os.NewSyscallError("madvise", err)
	}
	return os.NewSyscallError("fallocate", retried(func() error { return unix.Fallocate(file, 0, 0, int64(len(data))) }))
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
		_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // only advice
	}
	return &Segment{data, file}, nil
}

// Open maps a segment that was received; it takes the file. A file whose size is not n, or that its
// maker could shrink, is refused.
func Open(file, n int) (*Segment, error) {
	s, err := open(file, n)
	if err != nil {
		return nil, errors.Join(err, unix.Close(file))
	}
	return s, nil
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
		return nil, fmt.Errorf("shm: a segment of %d bytes is said to have %d", st.Size, n)
	}
	return mapped(file, n)
}

// Bytes returns the memory.
func (s *Segment) Bytes() []byte { return s.data }

// Dup returns another descriptor of the segment.
func (s *Segment) Dup() (int, error) { return unix.FcntlInt(uintptr(s.file), unix.F_DUPFD_CLOEXEC, 0) }

// Close unmaps the memory, which must not be used afterwards.
func (s *Segment) Close() error {
	return errors.Join(os.NewSyscallError("munmap", unix.Munmap(s.data)), os.NewSyscallError("close", unix.Close(s.file)))
}

// CloseFile closes a received file that nobody wants.
func CloseFile(file int) { _ = unix.Close(file) }

// Door accepts processes of this user.
type Door struct{ l *net.UnixListener }

// Listen opens a side door. Its name is in the abstract namespace.
func Listen(name string) (*Door, error) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "@" + name, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	return &Door{l}, nil
}

// Accept waits for the next process of this user; others are shown out.
func (d *Door) Accept() (*Conn, error) {
	for {
		c, err := d.l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if SameUser(c) == nil {
			return &Conn{c}, nil
		}
		c.Close()
	}
}

// Close ends Accept.
func (d *Door) Close() error { return d.l.Close() }

// Dial goes to a side door of this user.
func Dial(name string) (*Conn, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@" + name, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	if err := SameUser(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Conn{c}, nil
}

// ListenUser listens on a stream socket in the abstract namespace, for processes of this user only.
func ListenUser(name string) (net.Listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return userListener{l}, nil
}

type userListener struct{ *net.UnixListener }

// Accept implements net.Listener.
func (l userListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if SameUser(c) == nil {
			return c, nil
		}
		c.Close()
	}
}

// SameUser says whether the other end of a Unix socket belongs to this process's user.
func SameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil {
		return e
	}
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("shm: the other side is user %d", peer.Uid)
	}
	return nil
}

// Conn is one end of a side door. One goroutine may send while another receives.
type Conn struct{ c *net.UnixConn }

// Close closes it; Receive of both ends ends.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds what is being sent and received.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// Send sends a message, with a file if that is not negative. The file stays the caller's.
func (c *Conn) Send(m Message, file int) error {
	var oob []byte
	if file >= 0 {
		oob = unix.UnixRights(file)
	}
	_, _, err := c.c.WriteMsgUnix(m.bytes(), oob, nil)
	return err
}

// Receive returns the next message, and its file if it has one, else -1. The error is io.EOF when
// the other end is gone.
func (c *Conn) Receive() (Message, int, error) {
	var b [Size + 1]byte
	oob := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, flags, _, err := c.c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return Message{}, -1, err
	}
	files := rights(oob[:oobn])
	if n == 0 && len(files) == 0 {
		return Message{}, -1, io.EOF
	}
	m, err := parse(b[:n])
	if err == nil && (len(files) > 1 || flags&unix.MSG_CTRUNC != 0) {
		err = fmt.Errorf("shm: %d files in a message", len(files))
	}
	if err == nil && (m.Kind == Give) != (len(files) == 1) {
		err = fmt.Errorf("shm: message of kind %d with %d files", m.Kind, len(files))
	}
	if err != nil {
		for _, f := range files {
			CloseFile(f)
		}
		return Message{}, -1, err
	}
	if len(files) == 1 {
		return m, files[0], nil
	}
	return m, -1, nil
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
