package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
)

// access are the flags that say who may call.
type access struct {
	gate     auth.GateOptions
	tls      auth.TLSOptions
	insecure bool
}

func (a *access) add(fl *pflag.FlagSet) {
	console.Var(fl, &a.tls.Certificate, "tls-cert", "")
	console.Var(fl, &a.tls.Key, "tls-key", "")
	console.Var(fl, &a.tls.ClientAuthorities, "client-ca", "")
	console.Var(fl, &a.gate.Tokens, "tokens", "")
	console.Var(fl, &a.gate.Keys, "jwks", "")
	console.Var(fl, &a.gate.Audience, "jwt-audience", "")
	console.Var(fl, &a.gate.Issuer, "jwt-issuer", "")
	console.Var(fl, &a.insecure, "insecure", false)
}

// check checks the flags that have nothing to do with an address.
func (a *access) check() error {
	for _, pair := range []struct{ flag, value, needs, other string }{
		{"tls-cert", a.tls.Certificate, "tls-key", a.tls.Key},
		{"tls-key", a.tls.Key, "tls-cert", a.tls.Certificate},
		{"client-ca", a.tls.ClientAuthorities, "tls-cert", a.tls.Certificate},
		{"jwks", a.gate.Keys, "jwt-audience", a.gate.Audience},
		{"jwt-audience", a.gate.Audience, "jwks", a.gate.Keys},
		{"jwt-issuer", a.gate.Issuer, "jwks", a.gate.Keys},
	} {
		if pair.value != "" && pair.other == "" {
			return console.Usagef("--%s needs --%s", pair.flag, pair.needs)
		}
	}
	return nil
}

// asks reports whether clients have to show anything.
func (a *access) asks() bool {
	return a.tls.ClientAuthorities != "" || a.gate.Tokens != "" || a.gate.Keys != ""
}

// makes reports whether a token is made for addresses: of --listen and then, if it is given, of --metrics:
// for listeners on a loopback address, which every user of this machine reaches.
func (a *access) makes(addresses []net.Addr) (bool, error) {
	local := false
	for i, addr := range addresses {
		flag := "--listen"
		if i > 0 {
			flag = "--metrics"
		}
		tcp, ok := addr.(*net.TCPAddr)
		if !ok || a.insecure {
			continue
		}
		switch loopback := tcp.IP.IsLoopback(); {
		case loopback:
			local = true
		case a.tls.Certificate == "":
			return false, console.Usagef("%s: %v is not a loopback address: it needs --tls-cert and --tls-key, and "+
				"--tokens, --jwks or --client-ca; --insecure listens without", flag, tcp)
		case !a.asks():
			return false, console.Usagef("%s: %v is not a loopback address: it needs --tokens, --jwks or --client-ca; "+
				"--insecure lets everybody in", flag, tcp)
		}
	}
	return local && !a.asks(), nil
}

// serverDoors are what gRPC and metrics are entered by.
type serverDoors struct {
	gate    *auth.Gate  // of TCP, and of all if the flags name tokens or authorities
	tls     *tls.Config // nil: plain text
	metrics *tls.Config
	token   string // that was made for the addresses, or ""
}

// open reads the files that the flags name, and makes a token if the addresses need one.
func (a *access) open(addresses []net.Addr, log *slog.Logger) (*serverDoors, error) {
	makes, err := a.makes(addresses)
	if err != nil {
		return nil, err
	}
	failed := func(err error) {
		log.Error("a changed file cannot be read: its old content stays in use", "error", err)
	}
	gateOptions, tlsOptions := a.gate, a.tls
	gateOptions.Certificates, gateOptions.Failed, tlsOptions.Failed = a.tls.ClientAuthorities != "", failed, failed
	if makes {
		gateOptions.Made = auth.NewToken()
	}
	opened := &serverDoors{token: gateOptions.Made}
	if opened.gate, err = auth.NewGate(gateOptions); err != nil {
		return nil, accessError(err)
	}
	if a.tls.Certificate != "" {
		tlsOptions.Protocols = []string{"h2"}
		if opened.tls, err = auth.ServerTLS(tlsOptions); err != nil {
			return nil, accessError(err)
		}
		tlsOptions.Protocols = []string{"http/1.1"}
		if opened.metrics, err = auth.ServerTLS(tlsOptions); err != nil {
			return nil, accessError(err)
		}
	}
	return opened, nil
}

// accessError makes a fault of an error about the files of access.
func accessError(err error) error {
	kind := cmp.Or(console.SystemKind(err), fault.Corrupt)
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		return fault.WithFile(fault.Wrap(kind, "file", system.Err), system.Path)
	}
	return fault.Wrap(kind, "access", err)
}

// grpc returns the credentials of the gRPC server, or nil for plain text.
func (d *serverDoors) grpc() credentials.TransportCredentials {
	if d.tls == nil {
		return nil
	}
	return credentials.NewTLS(d.tls)
}

// guard lets the same clients in as the gRPC server.
func (d *serverDoors) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := d.gate.CheckHTTP(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
