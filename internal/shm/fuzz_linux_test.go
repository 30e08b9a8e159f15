package shm

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostileFiles are the descriptors that a hostile peer may send: no memory at all, memory that it could shrink under
// its reader, and sealed memory of another size than it says.
func hostileFiles(t testing.TB) []int {
	t.Helper()
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	soft, err := unix.MemfdCreate("soft", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(soft, 4096); err != nil {
		t.Fatal(err)
	}
	sealed, err := New(4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []int{null, folder, soft} {
			CloseFile(f)
		}
		if err := sealed.Close(); err != nil {
			t.Error(err)
		}
	})
	return []int{null, folder, soft, sealed.file}
}

// FuzzReceive sends any packet with any files over the control socket. It is refused, or it is the message that parse
// reads, with a file if and only if it gives a segment. Of the files only sealed memory of the size that the packet
// says is mapped. No descriptor is left in any case.
func FuzzReceive(f *testing.F) {
	for k := Hello; k <= Discard; k++ {
		for _, files := range [][]byte{nil, {3}, {0}, {2}, {3, 3}, {0, 1, 2, 3, 3}} {
			f.Add(Message{Kind: k, A: 1, B: 4096}.bytes(), files)
		}
	}
	f.Add([]byte{}, []byte{3})
	f.Add(Message{Kind: Give, A: 1, B: 1 << 63}.bytes(), []byte{3})
	hostile := hostileFiles(f)
	f.Fuzz(func(t *testing.T, packet, picks []byte) {
		if len(packet) > 4*Size || len(packet) == 0 && len(picks) == 0 {
			return
		}
		name := newName()
		d, err := Listen(name)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		a, err := Dial(name)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		before := files(t)
		var send []int
		for _, p := range picks[:min(len(picks), 8)] {
			send = append(send, hostile[int(p)%len(hostile)])
		}
		if _, _, err := a.WriteMsgUnix(packet, unix.UnixRights(send...), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		m, file, err := b.Receive()
		if err == nil {
			checkReceived(t, packet, send, hostile[3], m, file)
		} else if file >= 0 {
			t.Errorf("%v, with file %d", err, file)
		}
		if now := files(t); now != before {
			t.Errorf("%d descriptors, before %d", now, before)
		}
	})
}

// checkReceived compares a message with the packet, and maps its file.
func checkReceived(t *testing.T, packet []byte, sent []int, sealed int, m Message, file int) {
	t.Helper()
	want, err := parse(packet)
	if err != nil || m != want {
		t.Fatalf("%x is received as %+v, parsed as %+v, %v", packet, m, want, err)
	}
	if (file >= 0) != (m.Kind == Give) || (file >= 0) != (len(sent) == 1) {
		t.Fatalf("%+v comes with file %d, of %d sent", m, file, len(sent))
	}
	if file < 0 {
		return
	}
	// As the client does: a size of 2^40 and more is refused before it is an int.
	s, err := Open(file, int(min(m.B, 1<<40)))
	if good := sent[0] == sealed && m.B == 4096; good != (err == nil) {
		t.Fatalf("%+v with file %d: %v", m, sent[0], err)
	}
	if err == nil {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// newName returns a name of a socket that no other test has.
func newName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return "chaski-test-" + hex.EncodeToString(b[:])
}
