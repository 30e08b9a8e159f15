package serve

import (
	"net"
	"testing"

	"github.com/chaski-eo/chaski/grpc/auth"
)

// TestWhereIsListened promises that nothing but a Unix socket is listened on without asking clients for something, that
// TCP beyond this machine also needs a certificate, and that --insecure alone lifts that.
func TestWhereIsListened(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 7447} }
	unix := &net.UnixAddr{Name: "/tmp/s", Net: "unix"}
	const made, open, refused = "made", "open", "refused"
	cert := access{tls: auth.TLSOptions{Certificate: "c", Key: "k"}}
	with := func(a access, f func(a *access)) access { f(&a); return a }
	for _, c := range []struct {
		name      string
		flags     access
		addresses []net.Addr
		want      string
	}{
		{"a Unix socket", access{}, []net.Addr{unix}, open},
		{"loopback", access{}, []net.Addr{tcp("127.0.0.1")}, made},
		{"loopback by IPv6", access{}, []net.Addr{tcp("::1")}, made},
		{"loopback over TLS", cert, []net.Addr{tcp("127.0.0.1")}, made},
		{"metrics beside a Unix socket", access{}, []net.Addr{unix, tcp("127.0.0.1")}, made},
		{"loopback with tokens", access{gate: auth.GateOptions{Tokens: "t"}}, []net.Addr{tcp("127.0.0.1")}, open},
		{"loopback, insecure", access{insecure: true}, []net.Addr{tcp("127.0.0.1")}, open},
		{"the network", access{}, []net.Addr{tcp("192.0.2.1")}, refused},
		{"all addresses", access{}, []net.Addr{tcp("0.0.0.0")}, refused},
		{"all addresses of IPv6", access{}, []net.Addr{tcp("::")}, refused},
		{"a certificate alone", cert, []net.Addr{tcp("192.0.2.1")}, refused},
		{"tokens alone", access{gate: auth.GateOptions{Tokens: "t"}}, []net.Addr{tcp("192.0.2.1")}, refused},
		{"JWT alone", access{gate: auth.GateOptions{Keys: "t"}}, []net.Addr{tcp("192.0.2.1")}, refused},
		{"TLS and tokens", with(cert, func(a *access) { a.gate.Tokens = "t" }), []net.Addr{tcp("192.0.2.1")}, open},
		{"TLS and JWT", with(cert, func(a *access) { a.gate.Keys = "t" }), []net.Addr{tcp("192.0.2.1")}, open},
		{"mTLS", with(cert, func(a *access) { a.tls.ClientAuthorities = "t" }), []net.Addr{tcp("192.0.2.1")}, open},
		{"metrics on the network", access{}, []net.Addr{unix, tcp("192.0.2.1")}, refused},
		{"the network, insecure", access{insecure: true}, []net.Addr{tcp("192.0.2.1"), tcp("0.0.0.0")}, open},
	} {
		got := open
		switch makes, err := c.flags.makes(c.addresses); {
		case err != nil:
			got = refused
		case makes:
			got = made
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}
