package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"github.com/chaski-eo/chaski/internal/reload"
)

// TLSOptions name the files of a server's certificates, in PEM.
type TLSOptions struct {
	// Certificate has the chain of the server, Key its private key.
	Certificate, Key string
	// ClientAuthorities, if it is not empty, has the certificates that must sign the certificates of clients. Clients
	// without one are refused.
	ClientAuthorities string
	// Protocols are the names for ALPN, such as "h2" for gRPC.
	Protocols []string
	// Every and Failed are as of GateOptions.
	Every  time.Duration
	Failed func(error)
}

// ServerTLS returns the configuration of a server whose certificates are read again when their files change: of every
// connection that is made after it. gRPC's package pemfile does the same, but on a pair that does not match, as it is
// between two writes, it logs the private key, and it wants both files in one directory.
func ServerTLS(o TLSOptions) (*tls.Config, error) {
	paths := []string{o.Certificate, o.Key}
	if o.ClientAuthorities != "" {
		paths = append(paths, o.ClientAuthorities)
	}
	files, err := reload.Open(func(b [][]byte) (*tls.Config, error) { return serverConfig(b, o.Protocols) },
		o.Every, o.Failed, paths...)
	if err != nil {
		return nil, err
	}
	c := files.Get().Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.Get(), nil }
	return c, nil
}

// serverConfig returns the configuration for the bytes of files: certificate, key, authorities of clients.
func serverConfig(files [][]byte, protocols []string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, err // the errors of crypto/tls are clear and contain no bytes of a key
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: protocols,
		// A resumed session would skip the check of a client's certificate by new authorities. Connections last for
		// hours, so resuming would save nothing.
		SessionTicketsDisabled: true,
	}
	if len(files) > 2 {
		if config.ClientCAs = pool(files[2]); config.ClientCAs == nil {
			return nil, errors.New("the authorities of clients have no certificate in PEM")
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

func pool(b []byte) *x509.CertPool {
	certPool := x509.NewCertPool()
	if !certPool.AppendCertsFromPEM(b) {
		return nil
	}
	return certPool
}

// ClientTLS returns the configuration of a client for PEM: the authorities of the server (empty: the system's),
// and the certificate and key of the client, if it has any.
func ClientTLS(authorities, certificate, key []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authorities) > 0 {
		if config.RootCAs = pool(authorities); config.RootCAs == nil {
			return nil, errors.New("the root certificates are not PEM")
		}
	}
	if len(certificate) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
