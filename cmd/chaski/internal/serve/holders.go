package serve

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// firstHolder is how long a server waits for its first holder: for the program that started it to see its line.
	firstHolder = 20 * time.Second
	// lastHolder is how long a server goes on without a holder: from one loader of a program to the next.
	lastHolder = 2 * time.Second
	// logFor bounds the wait for a holder to take a line of the log. One that is stopped takes none.
	logFor = 100 * time.Millisecond
	// heldFor is the variable with a secret digest of the settings that holders must have, too; unset: any may come.
	heldFor = "CHASKI_HELD_FOR"
)

// holderSet is the processes that hold a server, each by an open connection to --held-at. Each is told where the
// server listens, the oldest one hears its log, and after the last one has gone the server stops. Whichever of them
// started the server may go before the others.
type holderSet struct {
	listener net.Listener // only this user can connect
	unheld   io.Writer    // of the log while there is no holder
	stop     context.CancelFunc
	settings string // as of heldFor

	mu     sync.Mutex
	byAge  []*holderConn // the oldest first
	ends   *time.Timer
	closed bool
}

type holderConn struct {
	net.Conn
	deaf bool // it did not take a line of the log
}

// openHolders returns nil without --held-at.
func (f *serveFlags) openHolders(ctx context.Context, unheld io.Writer, stop context.CancelFunc) (*holderSet, error) {
	if f.heldAt == "" {
		return nil, nil
	}
	// Otherwise the next line of the log would end the server after the program that started it.
	signal.Ignore(syscall.SIGPIPE)
	settings := os.Getenv(heldFor)
	_ = os.Unsetenv(heldFor) // commands that sign need not know
	listener, _, err := listen(ctx, f.heldAt)
	return &holderSet{listener: listener, unheld: unheld, stop: stop, settings: settings}, err
}

// serve lets holders in until close; ready is the line that tells them where the server listens.
func (h *holderSet) serve(ready []byte) {
	h.mu.Lock()
	h.ends = time.AfterFunc(firstHolder, h.endUnheld)
	h.mu.Unlock()
	for {
		conn, err := h.listener.Accept()
		switch {
		case err == nil:
			go h.hold(&holderConn{Conn: conn}, ready)
		case errors.Is(err, net.ErrClosed):
			return
		default: // most likely, no descriptor is left
			time.Sleep(logFor)
		}
	}
}

// hold returns when a holder has gone.
func (h *holderSet) hold(c *holderConn, ready []byte) {
	defer c.Close()
	if h.fits(c) && h.enter(c, ready) {
		_, _ = io.Copy(io.Discard, c) // whatever ends the connection, the holder has gone
		h.leave(c)
	}
}

// fits reports whether a process has the settings of this server, such as its passwords: it shows a digest of them and
// of a number that it is sent, from which nobody learns them. One with others is told "other".
func (h *holderSet) fits(c net.Conn) bool {
	if h.settings == "" {
		return true
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // it does not fail: crypto/rand
	mac := hmac.New(sha256.New, []byte(h.settings))
	mac.Write(nonce[:])
	want, answer := hex.AppendEncode(nil, mac.Sum(nil)), make([]byte, hex.EncodedLen(sha256.Size))
	_ = c.SetDeadline(time.Now().Add(firstHolder)) // the read fails, too
	if _, err := c.Write(append(hex.AppendEncode(nil, nonce[:]), '\n')); err != nil {
		return false
	}
	if _, err := io.ReadFull(c, answer); err != nil {
		return false
	}
	if !hmac.Equal(answer, want) {
		_, _ = c.Write([]byte("other\n")) // without it the process takes the server for one that ends
		return false
	}
	return c.SetDeadline(time.Time{}) == nil
}

// enter reports whether the server goes on. Under the lock, so no line of the log comes before ready.
func (h *holderSet) enter(c *holderConn, ready []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if _, err := c.Write(ready); err != nil {
		return false
	}
	h.ends.Stop()
	h.byAge = append(h.byAge, c)
	return true
}

func (h *holderSet) leave(c *holderConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byAge = slices.DeleteFunc(h.byAge, func(other *holderConn) bool { return other == c })
	if len(h.byAge) == 0 {
		h.ends.Reset(lastHolder)
	}
}

// endUnheld stops the server, unless a holder has come meanwhile.
func (h *holderSet) endUnheld() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byAge) > 0 {
		return
	}
	h.closed = true
	// The listener closes now: a process that comes from here on starts a server of its own.
	h.listener.Close()
	h.stop()
}

// close tells the holders at once that the server ends: they need not wait until its streams have.
func (h *holderSet) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.listener.Close()
	for _, c := range h.byAge {
		c.Close()
	}
}

// Write writes a line of the log.
func (h *holderSet) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, holder := range h.byAge {
		if holder.deaf {
			continue
		}
		_ = holder.SetWriteDeadline(time.Now().Add(logFor))
		if _, err := holder.Conn.Write(line); err == nil {
			return len(line), nil
		}
		// A holder that may have taken a part of the line must not get another one.
		holder.deaf = true
	}
	return h.unheld.Write(line)
}
