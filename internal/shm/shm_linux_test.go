package shm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/internal/procs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unique returns the end of a name that no other process has.
func unique() string { return strconv.Itoa(os.Getpid()) + time.Now().Format("150405.000000") }

func open2(t *testing.T) (a, b *Conn, name string) {
	t.Helper()
	name = "chaski-test-" + strings.ReplaceAll(t.Name(), "/", "-") + unique()
	d, err := Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if a, err = Dial(name); err != nil {
		t.Fatal(err)
	}
	if b, err = d.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, c := range []*Conn{a, b} {
		if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b, name
}

// TestPassing: after a segment is passed, both sides see the same pages, and these outlive the
// first side.
func TestPassing(t *testing.T) {
	before := files(t)
	a, b, name := open2(t)
	for _, n := range []int{1, 4095, 4096, 1<<20 + 64, 5 << 20} {
		s, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Bytes()) != n {
			t.Fatalf("%d bytes, want %d", len(s.Bytes()), n)
		}
		if err := a.Send(Message{Kind: Give, A: 7, B: uint64(n)}, s.file); err != nil {
			t.Fatal(err)
		}
		m, file, err := b.Receive()
		if err != nil || m != (Message{Kind: Give, A: 7, B: uint64(n)}) {
			t.Fatal(m, err)
		}
		r, err := Open(file, int(m.B))
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Bytes() {
			s.Bytes()[i] = byte(i * 7)
		}
		want := bytes.Clone(s.Bytes())
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(r.Bytes(), want) {
			t.Error("the sides differ")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	a.Close()
	if _, _, err := b.Receive(); err == nil {
		t.Error("receives from a closed end")
	}
	b.Close()
	if after := files(t); after > before {
		t.Errorf("%d files are open, before %d", after, before)
	}
	names, err := os.ReadFile("/proc/net/unix")
	if err == nil && bytes.Contains(names, []byte(name)) {
		t.Error("the name is still there")
	}
}

func files(t *testing.T) int {
	t.Helper()
	time.AfterFunc(time.Hour, func() {}).Stop() // the first timer opens files of the runtime
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(e)
}

// TestSegmentsCannotBeCut: pages that a process maps stay, whatever another process does.
func TestSegmentsCannotBeCut(t *testing.T) {
	s, err := New(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int64{0, 1, 1<<16 - 1, 1<<16 + 1} {
		if err := unix.Ftruncate(s.file, n); !errors.Is(err, unix.EPERM) {
			t.Errorf("cut to %d: %v", n, err)
		}
	}
	if err := unix.Fallocate(s.file, unix.FALLOC_FL_KEEP_SIZE, 0, 1<<17); !errors.Is(err, unix.EPERM) {
		t.Errorf("grown: %v", err)
	}
}

// TestOpenChecks: segments that differ from their description are refused.
func TestOpenChecks(t *testing.T) {
	before := files(t)
	make := func(size int64, seal int) int {
		t.Helper()
		f, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(f, size); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(f), unix.F_ADD_SEALS, seal); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for what, open := range map[string]func() (*Segment, error){
		"longer than it is":  func() (*Segment, error) { return Open(make(4096, unix.F_SEAL_SHRINK), 8192) },
		"shorter than it is": func() (*Segment, error) { return Open(make(4096, unix.F_SEAL_SHRINK), 4095) },
		"without a seal":     func() (*Segment, error) { return Open(make(4096, unix.F_SEAL_GROW), 4096) },
		"empty":              func() (*Segment, error) { return Open(make(0, unix.F_SEAL_SHRINK), 0) },
		"negative":           func() (*Segment, error) { return Open(make(4096, unix.F_SEAL_SHRINK), -1) },
		"of no bytes":        func() (*Segment, error) { return New(0) },
		"of negative bytes":  func() (*Segment, error) { return New(-5) },
		"beyond all memory":  func() (*Segment, error) { return New(1 << 62) },
	} {
		if s, err := open(); err == nil {
			t.Errorf("a segment %s is taken", what)
			s.Close()
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f, 4096); err == nil {
		t.Error("a device is taken")
	}
	null.Close()
	if after := files(t); after > before {
		t.Errorf("%d files are open, before %d", after, before)
	}
}

// TestReceiveChecks: an invalid message is an error, and its files are closed.
func TestReceiveChecks(t *testing.T) {
	a, b, _ := open2(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	f := int(null.Fd())
	before := files(t)
	good := Message{Kind: Give, A: 1, B: 2}.bytes()
	for _, c := range []struct {
		b     []byte
		files []int
	}{
		{good, nil}, {good[:31], []int{f}}, {append(good, 0), []int{f}}, {make([]byte, 1000), []int{f}},
		{good, []int{f, f}}, {good, []int{f, f, f, f}}, {good, []int{f, f, f, f, f, f, f, f}},
		{Message{Kind: Return, A: 1}.bytes(), []int{f}}, {Message{Kind: 8}.bytes(), nil}, {Message{}.bytes(), nil},
	} {
		var oob []byte
		if len(c.files) > 0 {
			oob = unix.UnixRights(c.files...)
		}
		if _, _, err := a.WriteMsgUnix(c.b, oob, nil); err != nil {
			t.Fatal(err)
		}
		if m, _, err := b.Receive(); err == nil {
			t.Errorf("%d bytes with %d files are %v", len(c.b), len(c.files), m)
		}
		if after := files(t); after != before {
			t.Fatalf("%d bytes with %d files: %d files are open, before %d", len(c.b), len(c.files), after, before)
		}
	}
	if err := a.Send(Message{Kind: Return, A: 5, B: 6, C: 7}, -1); err != nil {
		t.Fatal(err)
	}
	if m, file, err := b.Receive(); err != nil || file != -1 || m != (Message{Kind: Return, A: 5, B: 6, C: 7}) {
		t.Error(m, file, err)
	}
}

// TestListenUser: connections of this user are accepted.
func TestListenUser(t *testing.T) {
	name := "chaski-test-user" + unique()
	l, err := ListenUser(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUser(name); err == nil {
		t.Error("a name is taken twice")
	}
	c, err := net.Dial("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	l.Close()
	if _, err := net.Dial("unix", "@"+name); err == nil {
		t.Error("still listening")
	}
}

// TestHeapMakesRoom: shared memory leaves that much less for the heap, as long as it is there. Memory that another
// process made is not this one's.
func TestHeapMakesRoom(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	procs.LimitHeap(800 << 20)
	expect := func(limit int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != limit {
			t.Errorf("a limit of %d bytes, want %d", got, limit)
		}
	}
	s, err := New(3 << 20)
	if err != nil {
		t.Fatal(err)
	}
	expect(797 << 20)
	file, err := s.Dup()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(file, 3<<20)
	if err != nil {
		t.Fatal(err)
	}
	expect(797 << 20)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	expect(797 << 20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	expect(800 << 20)
}

// TestListenFile promises that the file of a socket is for its user alone, whatever the umask, and that a process of
// another user that got hold of it is cut off. The other user is a thread of this process with another user ID, which
// only root can have.
func TestListenFile(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // the other user has to reach the socket
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "socket")
	l, err := ListenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, want 0600 (%v)", info.Mode().Perm(), err)
	}
	if after := syscall.Umask(0); after != 0 {
		t.Errorf("the umask is %#o, want 0 as before", after)
	}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	own, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	(<-accepted).Close()
	own.Close()
	if os.Geteuid() == 0 {
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		other, err := dialAs(65534, path)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := other.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("another user read %d bytes (%v), want the end", n, err)
		}
		other.Close()
	}
	l.Close()
	for c := range accepted {
		t.Error("another user was accepted")
		c.Close()
	}
}

// TestListenFileMeanwhile promises that several sockets at a time leave the umask as it was, and that directories made
// meanwhile can be used by their user.
func TestListenFileMeanwhile(t *testing.T) {
	before := syscall.Umask(0o022)
	defer syscall.Umask(before)
	dir := t.TempDir()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for k := range 50 {
				l, err := ListenFile(filepath.Join(dir, fmt.Sprint(i, "-", k)))
				if err != nil {
					t.Error(err)
					return
				}
				l.Close()
			}
		})
		group.Go(func() {
			for k := range 200 {
				path := filepath.Join(dir, fmt.Sprint("dir", i, "-", k))
				if err := os.Mkdir(path, 0o755); err != nil {
					t.Error(err)
					return
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o700 != 0o700 {
					t.Errorf("a directory has the mode %v (%v), want all rights of its user", info.Mode().Perm(), err)
					return
				}
			}
		})
	}
	group.Wait()
	if after := syscall.Umask(0o022); after != 0o022 {
		t.Errorf("the umask is %#o, want 022 as before", after)
	}
}

// dialAs connects to a socket as another user. The thread that does ends with its goroutine.
func dialAs(user int, path string) (*os.File, error) {
	type dialed struct {
		file *os.File
		err  error
	}
	done := make(chan dialed)
	go func() {
		runtime.LockOSThread()
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0)); e != 0 {
				err = e
			}
		}
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		done <- dialed{os.NewFile(uintptr(fd), path), err}
	}()
	d := <-done
	return d.file, d.err
}
