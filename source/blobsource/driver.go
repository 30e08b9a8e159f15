package blobsource

import (
	"net/http"
	"os"
	"strings"

	"github.com/chaski-eo/chaski/source/remote"
)

// Unsigned reports whether an environment variable with GDAL's name (AWS_NO_SIGN_REQUEST and the
// like) asks for requests without credentials.
func Unsigned(variable string) bool {
	switch strings.ToUpper(os.Getenv(variable)) {
	case "YES", "TRUE", "1":
		return true
	}
	return false
}

// Tune configures a driver's transport: it keeps as many idle connections as there are concurrent
// requests, and requests bytes as they are stored. It returns t.
func Tune(t *http.Transport) *http.Transport {
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 4*remote.DefaultConcurrency, remote.DefaultConcurrency
	t.DisableCompression = true
	return t
}
