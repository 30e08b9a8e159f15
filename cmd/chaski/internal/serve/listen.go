package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/source"
)

// onlyUser reports whether only the user of this process can connect to the address of --listen.
func onlyUser(address string) bool {
	return strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:")
}

// listen opens the address of --listen and returns it in the form that clients use.
func listen(ctx context.Context, address string) (net.Listener, string, error) {
	if name, abstract := strings.CutPrefix(address, "unix-abstract:"); abstract {
		return listenAbstract(address, name)
	}
	if path, file := strings.CutPrefix(address, "unix:"); file {
		return listenFile(ctx, path)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, "", console.Usagef("--listen is %q: it must be host:port, unix:PATH or unix-abstract:NAME", address)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", listenError(address, err)
	}
	return listener, listener.Addr().String(), nil
}

// listenFile opens a socket that is a file.
func listenFile(ctx context.Context, path string) (net.Listener, string, error) {
	if path == "" {
		return nil, "", console.Usagef("--listen is \"unix:\": the path is missing")
	}
	removeStale(ctx, path)
	listener, err := shm.ListenFile(path)
	if err != nil {
		return nil, "", listenError(path, err)
	}
	return listener, "unix:" + path, nil
}

// listenAbstract opens a socket in Linux's abstract namespace.
func listenAbstract(address, name string) (net.Listener, string, error) {
	if name == "" || len(name) > maxAbstract || strings.ContainsAny(name, "\x00@") {
		return nil, "", console.Usagef("--listen is %q: unix-abstract: needs a name of 1 to %d bytes without @",
			address, maxAbstract)
	}
	listener, err := shm.ListenUser(name)
	if err != nil {
		return nil, "", listenError(address, err)
	}
	return listener, address, nil
}

// maxAbstract is the longest name in the abstract namespace: a socket address has 108 bytes, and a zero
// byte comes before the name.
const maxAbstract = 107

// listenError makes a fault of an error to listen, with the address in the place of the file.
func listenError(address string, err error) error {
	kind := console.SystemKind(err)
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		kind = fault.NotFound
	}
	kind = cmp.Or(kind, fault.Unsupported)
	return fault.WithFile(fault.Wrap(kind, "listen", err), address)
}

// removeStale removes the socket file of a server that ended. It connects first, because a running server
// must not lose its socket.
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

// checkRoot checks that a --root is a directory, or a prefix of remote URIs that the server can read.
func checkRoot(root string) error {
	if !source.IsRemote(root) {
		if st, err := os.Stat(source.LocalPath(root)); err != nil || !st.IsDir() {
			return fault.WithFile(fault.New(fault.NotFound, "root", "no such directory"), root)
		}
		return nil
	}
	given := root
	root, err := source.Resolve(root)
	if err != nil {
		return err
	}
	if s := source.Scheme(root); !slices.Contains(open.RemoteSchemes, s) || !strings.HasPrefix(root, s+"://") {
		return console.Usagef("--root is %q: it must be a directory or a URI of %s", given,
			strings.Join(open.RemoteSchemes, "://, ")+"://")
	}
	// The server compares URIs with roots as strings. With patterns, escapes or "..", one URI could
	// match in two ways.
	if strings.ContainsAny(root, "*?[%\\") || strings.Contains(root, "/..") {
		return console.UsageUnlessFault(fmt.Errorf("--root is %q: a remote root must be a plain prefix without "+
			"\"..\", patterns and escapes", given))
	}
	return nil
}
