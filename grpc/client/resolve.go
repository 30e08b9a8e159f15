package client

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serverAddress is where one server listens.
type serverAddress struct {
	target string // as gRPC takes it
	name   string // "host:port" that it was found by, which its certificate is of; empty if it was not looked up
}

// lookUpFor bounds the search for the addresses of a name, which no other timeout covers.
const lookUpFor = 10 * time.Second

// resolve returns the servers that a target stands for: of "dns:HOST:PORT" one an address of the name, since gRPC's own
// resolver would use only one of them at a time. They are sorted, so all ranks number them alike: groups of
// tickets go to servers by number.
func resolve(target string) ([]serverAddress, error) {
	if target == "" {
		return nil, fmt.Errorf("client: an address is empty")
	}
	name, dns := strings.CutPrefix(target, "dns:")
	if !dns {
		return []serverAddress{{target: target}}, nil
	}
	name = strings.TrimLeft(name, "/")
	host, port, err := net.SplitHostPort(name)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" {
		return nil, fmt.Errorf("client: address is %q: it must be dns:HOST:PORT", target)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpFor)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("chaski at %s: %w", target, err)
	}
	slices.Sort(ips)
	var out []serverAddress
	for _, ip := range slices.Compact(ips) {
		out = append(out, serverAddress{net.JoinHostPort(ip, port), name})
	}
	return out, nil
}
