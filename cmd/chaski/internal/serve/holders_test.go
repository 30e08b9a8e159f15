package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// within is how long a test waits for what happens at once.
const within = time.Minute

// hold connects to holders and returns what comes after their first line, which it checks.
func hold(t *testing.T, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(within))
	said := bufio.NewReader(conn)
	if line, err := said.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("a holder is told %q, %v", line, err)
	}
	return conn, said
}

func openTestHolders(t *testing.T, unheld *bytes.Buffer) (h *holderSet, path string, stopped context.Context) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	stopped, stop := context.WithCancel(t.Context())
	f := serveFlags{heldAt: "unix:" + path}
	h, err := f.openHolders(t.Context(), unheld, stop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	go h.serve([]byte("ready\n"))
	return h, path, stopped
}

// TestHolders: a server goes on while anybody holds it, and for a while after that, whoever came first. The oldest
// holder that listens hears the log.
func TestHolders(t *testing.T) {
	var unheld bytes.Buffer
	holders, path, stopped := openTestHolders(t, &unheld)
	log := func(text string) {
		t.Helper()
		if _, err := holders.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	log("before")
	first, heard := hold(t, path)
	second, heardLater := hold(t, path)
	log("one")
	if line, err := heard.ReadString('\n'); err != nil || line != "one\n" {
		t.Errorf("the oldest holder hears %.20q, %v", line, err)
	}
	const long = 64 << 10 // bytes, of which the buffers of a socket have room for a few
	came := make(chan string, 1)
	go func() {
		line, _ := heardLater.ReadString('\n')
		came <- line
	}()
	for len(came) == 0 { // the first reads no more
		log(strings.Repeat("x", long))
	}
	if line := <-came; len(line) != long+1 {
		t.Errorf("the second holder hears %d bytes", len(line))
	}
	first.Close()
	second.Close()
	third, _ := hold(t, path) // at once
	time.Sleep(lastHolder + time.Second)
	if stopped.Err() != nil {
		t.Fatal("a server that is held has stopped")
	}
	third.Close()
	select {
	case <-stopped.Done():
	case <-time.After(within):
		t.Fatal("a server that nobody holds goes on")
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("a server that stops lets holders in")
	}
	if text := unheld.String(); !strings.HasPrefix(text, "before\n") || strings.Contains(text, "one") {
		t.Errorf("without holders the log has %.20q", text)
	}
}

// TestHoldersHearOfTheEnd: when a server stops for another reason, its holders know at once.
func TestHoldersHearOfTheEnd(t *testing.T) {
	holders, path, _ := openTestHolders(t, new(bytes.Buffer))
	_, heard := hold(t, path)
	holders.close()
	if b, err := heard.ReadByte(); err == nil {
		t.Errorf("a holder hears %q from a server that stops", b)
	}
}

// TestHoldersHaveItsSettings: only processes with the settings of a server hold it, each of which answers a question of
// its own.
func TestHoldersHaveItsSettings(t *testing.T) {
	t.Setenv(heldFor, "a digest")
	_, path, _ := openTestHolders(t, new(bytes.Buffer))
	if os.Getenv(heldFor) != "" {
		t.Error("the digest is left for the commands of the server")
	}
	asked := map[string]bool{}
	for _, test := range []struct{ settings, want string }{
		{"a digest", "ready\n"}, {"another digest", "other\n"}, {"", "other\n"}, {"a digest", "ready\n"},
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(within))
		said := bufio.NewReader(conn)
		number, err := said.ReadString('\n')
		nonce, bad := hex.DecodeString(strings.TrimSpace(number))
		if err := errors.Join(err, bad); err != nil || asked[number] || len(nonce) != 16 {
			t.Fatalf("a holder is asked %q, %v", number, err)
		}
		asked[number] = true
		mac := hmac.New(sha256.New, []byte(test.settings))
		mac.Write(nonce)
		if _, err := io.WriteString(conn, hex.EncodeToString(mac.Sum(nil))); err != nil {
			t.Fatal(err)
		}
		if line, err := said.ReadString('\n'); line != test.want {
			t.Errorf("with settings %q a holder is told %q, %v", test.settings, line, err)
		}
	}
}

// TestOneServerIsHeld: of two servers at one address the second ends, and says so with exit status 0.
func TestOneServerIsHeld(t *testing.T) {
	_, path, _ := openTestHolders(t, new(bytes.Buffer))
	var out bytes.Buffer
	var f serveFlags
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.add(flags)
	if err := flags.Parse([]string{"--held-at=unix:" + path, "--listen=127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context(), console.Env{Out: &out, Err: &out}); err != nil || out.Len() > 0 {
		t.Errorf("the second server says %q, %v", &out, err)
	}
}
