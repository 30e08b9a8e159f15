package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/chaski-eo/chaski/internal/reload"
)

// Names of the environment variables that FromEnvironment reads.
const (
	TokenVariable     = "CHASKI_TOKEN"
	TokenFileVariable = "CHASKI_TOKEN_FILE"
)

// Bearer is the token that a client sends with its calls: credentials.PerRPCCredentials. It prints as "client.Bearer",
// without the token.
type Bearer struct{ get func() (string, error) }

// Token returns a bearer of a token.
func Token(token string) (*Bearer, error) {
	token = strings.TrimSpace(token)
	if err := checkToken(token); err != nil {
		return nil, err
	}
	return &Bearer{func() (string, error) { return token, nil }}, nil
}

// TokenFile returns a bearer of the token in a file, which is read again when it changes.
func TokenFile(path string) (*Bearer, error) {
	// If the file cannot be read any more, the last token stays: the server decides whether it is still valid.
	files, err := reload.Open(func(b [][]byte) (string, error) {
		token := strings.TrimSpace(string(b[0]))
		return token, checkToken(token)
	}, 0, nil, path)
	if err != nil {
		return nil, err
	}
	return &Bearer{func() (string, error) { return files.Get(), nil }}, nil
}

// FromEnvironment returns the bearer of TokenVariable, else of TokenFileVariable, else nil.
func FromEnvironment() (*Bearer, error) {
	if t := os.Getenv(TokenVariable); t != "" {
		bearer, err := Token(t)
		if err != nil {
			err = fmt.Errorf("%s: %w", TokenVariable, err)
		}
		return bearer, err
	}
	if p := os.Getenv(TokenFileVariable); p != "" {
		bearer, err := TokenFile(p)
		if err != nil {
			err = fmt.Errorf("%s: %w", TokenFileVariable, err)
		}
		return bearer, err
	}
	return nil, nil
}

// checkToken returns an error for a token that a header cannot carry. Its errors do not contain the token.
func checkToken(token string) error {
	if token == "" {
		return errors.New("the token is empty")
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return errors.New("the token has characters other than printable ASCII")
		}
	}
	return nil
}

// String implements fmt.Stringer.
func (*Bearer) String() string { return "client.Bearer" }

// GoString implements fmt.GoStringer.
func (b *Bearer) GoString() string { return b.String() }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b *Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := b.get()
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Only the options of a connection decide where a
// token may go: see maySend.
func (*Bearer) RequireTransportSecurity() bool { return false }

// maySend returns an error if plain text to a target, as gRPC writes it, leaves this machine.
func maySend(target string) error {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return nil
	}
	host := target
	if h, _, err := net.SplitHostPort(target); err == nil {
		host = h
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && ip.IsLoopback() || host == "localhost" {
		return nil
	}
	return fmt.Errorf("a token would go to %s in plain text, where others can read it: use TLS", target)
}
