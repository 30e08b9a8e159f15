package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serverAddress is where one server listens.
type serverAddress struct {
	argument int    // number of its target among those of the client
	target   string // as gRPC takes it
	name     string // "host:port" that it was found by, which its certificate is of; empty if it was not looked up
}

const (
	// lookUpFor bounds the search for the addresses of a name, which no other timeout covers.
	lookUpFor = 10 * time.Second
	// lookLeast is the least time between two searches. Servers that fail cause one, at any rate.
	lookLeast = time.Second
)

// Replaced by tests.
var (
	lookUpHost = net.DefaultResolver.LookupHost
	// lookEvery is how often names are looked up while nothing fails: as long as servers of names keep answers in
	// Kubernetes (30 s).
	lookEvery = 30 * time.Second
)

// resolve returns the servers that a target stands for: of "dns:HOST:PORT" one an address of the name, since gRPC's own
// resolver would use only one of them at a time. They are sorted, so all ranks number them alike: groups of
// tickets go to servers by number.
func resolve(ctx context.Context, target string) ([]serverAddress, error) {
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
	ctx, cancel := context.WithTimeout(ctx, lookUpFor)
	defer cancel()
	ips, err := lookUpHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("chaski at %s: %w", target, err)
	}
	var out []serverAddress
	for _, ip := range ips {
		out = append(out, serverAddress{target: net.JoinHostPort(ip, port), name: name})
	}
	slices.SortFunc(out, func(a, b serverAddress) int { return cmp.Compare(a.target, b.target) })
	return out, nil
}

// named reports whether some of the targets are names that may get other addresses.
func (c *Client) named() bool {
	return slices.ContainsFunc(c.targets, func(target string) bool {
		return strings.HasPrefix(strings.TrimSpace(target), "dns:")
	})
}

// lookUp finds the servers that the targets stand for now. Servers of a name that cannot be looked up stay.
// The first error is returned after all else.
func (c *Client) lookUp(ctx context.Context) error {
	found, errs := make([][]serverAddress, len(c.targets)), make([]error, len(c.targets))
	for i, target := range c.targets {
		found[i], errs[i] = resolve(ctx, strings.TrimSpace(target))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	var now []*peer
	find := func(in []*peer, target string) int {
		return slices.IndexFunc(in, func(p *peer) bool { return p.target == target })
	}
	for i, addresses := range found {
		for _, p := range c.peers {
			if errs[i] != nil && p.argument == i && find(now, p.target) < 0 {
				now = append(now, p)
			}
		}
		for _, address := range addresses {
			if find(now, address.target) >= 0 {
				continue // otherwise a server that is there twice would count as two
			}
			known := slices.Collect(maps.Keys(c.users)) // one that was gone may be back
			if k := find(known, address.target); k >= 0 {
				now = append(now, known[k])
				continue
			}
			address.argument = i
			p, err := dialPeer(address, c.options)
			if err != nil {
				return err
			}
			c.users[p] = 0
			now = append(now, p)
		}
	}
	gone := c.peers
	c.peers = now
	for _, p := range gone {
		c.closeUnused(p)
	}
	return cmp.Or(errs...)
}

// enter returns the servers that there are, and which of them are not known yet. These are used until leave.
func (c *Client) enter(known []*peer) (all, joined []*peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		if !slices.Contains(known, p) {
			c.users[p]++
			joined = append(joined, p)
		}
	}
	return c.peers, joined
}

// leave ends the use of a connection.
func (c *Client) leave(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users[p]--
	c.closeUnused(p)
}

// closeUnused closes the connection to a server that is gone and that nobody uses. It needs the lock.
func (c *Client) closeUnused(p *peer) {
	if c.users[p] > 0 || c.closed || slices.Contains(c.peers, p) {
		return
	}
	delete(c.users, p)
	if err := p.close(); err != nil {
		c.options.Logger.Info("closing the connection to a server that is gone", "server", p.target, "error", err)
	}
}
