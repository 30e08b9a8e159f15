package serve

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/shm"
)

// listen opens the address and returns it as clients write it.
func listen(ctx context.Context, address string) (net.Listener, string, error) {
	if name, abstract := strings.CutPrefix(address, "unix-abstract:"); abstract {
		return listenAbstract(address, name)
	}
	path, unix := strings.CutPrefix(address, "unix:")
	network := "tcp"
	if unix {
		network, address = "unix", path
		removeStale(ctx, path)
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, "", console.Usagef("--listen %q is none of host:port, unix:PATH, unix-abstract:NAME", address)
	}
	if unix && path == "" {
		return nil, "", console.Usagef("--listen unix: has no path")
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, "", listenError(address, err)
	}
	if !unix {
		return l, l.Addr().String(), nil
	}
	if err := os.Chmod(path, 0o600); err != nil { // whatever the umask is
		l.Close()
		return nil, "", listenError(address, err)
	}
	return l, "unix:" + path, nil
}

func listenAbstract(address, name string) (net.Listener, string, error) {
	if name == "" || len(name) > maxAbstract || strings.ContainsAny(name, "\x00@") {
		return nil, "", console.Usagef("--listen unix-abstract: needs a name of at most %d bytes", maxAbstract)
	}
	l, err := shm.ListenUser(name)
	if err != nil {
		return nil, "", listenError(address, err)
	}
	return l, address, nil
}

// maxAbstract bounds names in the abstract namespace, which follow a zero byte in 108.
const maxAbstract = 107

func listenError(address string, err error) error {
	kind := console.SystemKind(err)
	var dns *net.DNSError
	if errors.As(err, &dns) {
		kind = fault.NotFound
	}
	if kind == 0 {
		kind = fault.Unsupported
	}
	return fault.WithFile(fault.Wrap(kind, "listen", fault.NoOffset, err), address)
}

// removeStale removes the socket of a server that is gone: nobody answers there.
func removeStale(ctx context.Context, path string) {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&os.ModeSocket == 0 {
		return
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return
	}
	os.Remove(path)
}
