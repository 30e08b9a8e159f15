package auth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/chaski-eo/chaski/internal/reload"
)

// Gate lets clients in. Its zero value, and nil, let in everybody. It is safe for concurrent use.
type Gate struct {
	tokens       *reload.Files[*Tokens]
	keys         *reload.Files[*Keys]
	audience     string
	issuer       string
	made         *Tokens // of NewToken, for this process alone
	certificates bool    // clients have a certificate, which the handshake has verified
}

// GateOptions say who is let in. A client needs a token if there are any, and a certificate if there are authorities
// of clients.
type GateOptions struct {
	// Tokens is a file for ParseTokens.
	Tokens string
	// Keys is a file for ParseKeys. Audience must be among the audiences of a JSON Web Token, Issuer be its issuer, if
	// it is not empty.
	Keys, Audience, Issuer string
	// Made is a token that is let in beside the tokens of the files.
	Made string
	// Certificates says that connections have the certificate of a client (TLSOptions.ClientAuthorities). Its subject
	// names a client without a token.
	Certificates bool
	// Every is how often files are looked at. Default reload.Every.
	Every time.Duration
	// Failed is called with the error of a changed file that cannot be read any more. Its old content stays in use.
	Failed func(error)
}

// madeName is the client of GateOptions.Made.
const madeName = "local"

// NewGate reads the files.
func NewGate(o GateOptions) (*Gate, error) {
	gate := &Gate{audience: o.Audience, issuer: o.Issuer, certificates: o.Certificates}
	var err error
	if o.Tokens != "" {
		parse := func(b [][]byte) (*Tokens, error) { return ParseTokens(b[0]) }
		if gate.tokens, err = reload.Open(parse, o.Every, o.Failed, o.Tokens); err != nil {
			return nil, err
		}
	}
	if o.Keys != "" {
		if o.Audience == "" {
			return nil, errors.New("the audience of JSON Web Tokens is missing: without it, tokens for other " +
				"services of their issuer would be let in")
		}
		parse := func(b [][]byte) (*Keys, error) { return ParseKeys(b[0]) }
		if gate.keys, err = reload.Open(parse, o.Every, o.Failed, o.Keys); err != nil {
			return nil, err
		}
	}
	if o.Made != "" {
		gate.made = &Tokens{list: []tokenEntry{{client: Client{Name: madeName}, sum: sha256.Sum256([]byte(o.Made))}}}
	}
	return gate, nil
}

// What Check returns.
var (
	ErrNoToken     = errors.New("the call has no token: this server asks for one")
	ErrUnknown     = errors.New("the token is not known, or not valid any more")
	ErrCertificate = errors.New("the connection has no certificate of a client")
)

// Asks reports whether clients need a token.
func (g *Gate) Asks() bool { return g != nil && (g.tokens != nil || g.keys != nil || g.made != nil) }

// Pass is a client that was let in.
type Pass struct {
	Client
	gate    *Gate
	sum     [sha256.Size]byte
	listed  bool      // it is one of the files of tokens
	expires time.Time // zero: it does not
}

// Valid reports whether the client would still be let in: its token is in the file and has not expired. A stream that
// lasts for days asks this.
func (p *Pass) Valid() bool {
	switch {
	case p.listed:
		_, ok := p.gate.listed(p.sum)
		return ok
	case !p.expires.IsZero():
		return time.Now().Before(p.expires)
	}
	return true
}

// Check returns the client of a call. Its errors hold nothing of the token.
func (g *Gate) Check(ctx context.Context) (*Pass, error) {
	if g == nil {
		return &Pass{}, nil
	}
	var certificates []*x509.Certificate
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			certificates = verified(&t.State)
		}
	}
	return g.check(metadata.ValueFromIncomingContext(ctx, "authorization"), certificates)
}

// CheckHTTP returns the client of a request.
func (g *Gate) CheckHTTP(r *http.Request) (*Pass, error) {
	if g == nil {
		return &Pass{}, nil
	}
	return g.check(r.Header.Values("Authorization"), verified(r.TLS))
}

// verified returns the chain of a client's certificate, or nil.
func verified(s *tls.ConnectionState) []*x509.Certificate {
	if s == nil || len(s.VerifiedChains) == 0 {
		return nil
	}
	return s.VerifiedChains[0]
}

func (g *Gate) check(header []string, chain []*x509.Certificate) (*Pass, error) {
	if g.certificates && len(chain) == 0 {
		return nil, ErrCertificate
	}
	if !g.Asks() {
		pass := &Pass{}
		if len(chain) > 0 {
			pass.Name = certificateName(chain[0])
		}
		return pass, nil
	}
	if len(header) != 1 {
		return nil, ErrNoToken
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" {
		return nil, ErrNoToken
	}
	sum := sha256.Sum256([]byte(token))
	if c, ok := g.listed(sum); ok {
		return &Pass{Client: c, gate: g, sum: sum, listed: true}, nil
	}
	if g.keys == nil || strings.Count(token, ".") != 2 {
		return nil, ErrUnknown
	}
	client, until, err := g.keys.Get().client(token, g.audience, g.issuer)
	if err != nil {
		return nil, err
	}
	return &Pass{Client: client, gate: g, expires: until}, nil
}

// listed returns the client of a token by its hash.
func (g *Gate) listed(sum [sha256.Size]byte) (Client, bool) {
	if g.made != nil {
		if c, ok := g.made.find(sum); ok {
			return c, true
		}
	}
	if g.tokens != nil {
		return g.tokens.Get().find(sum)
	}
	return Client{}, false
}

// certificateName returns the client name in a certificate.
func certificateName(c *x509.Certificate) string {
	name := c.Subject.CommonName
	switch {
	case name != "":
	case len(c.URIs) > 0: // as SPIFFE names workloads
		name = c.URIs[0].String()
	case len(c.DNSNames) > 0:
		name = c.DNSNames[0]
	}
	if checkName(name) != nil {
		return "certificate"
	}
	return name
}
