package tiledb

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/chaski-eo/chaski/fault"
)

// Environment variables that have the key of encrypted arrays, 32 bytes, or the name of a file that holds it.
const (
	KeyVar     = "CHASKI_TILEDB_KEY"
	KeyFileVar = "CHASKI_TILEDB_KEY_FILE"
)

// KeyFromEnv returns the key of encrypted arrays that the environment has, nil where it has none. A key file may
// end its key like a line of text.
func KeyFromEnv() ([]byte, error) {
	if k := os.Getenv(KeyVar); k != "" {
		return []byte(k), nil
	}
	name := os.Getenv(KeyFileVar)
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, noKeyFile(err, name)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, noKeyFile(err, name)
	}
	for len(b) > 32 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b, nil
}

// maxKeyFile bounds what is read of a file with a key.
const maxKeyFile = 1 << 10

// noKeyFile says that a key file cannot be read.
func noKeyFile(err error, name string) error {
	kind := fault.Unsupported
	if errors.Is(err, fs.ErrNotExist) {
		kind = fault.NotFound
	}
	return fault.WithFile(fault.Wrap(kind, "key file", fault.NoOffset, err), name)
}

// errNoKey is what reading an encrypted array without a key gives.
func errNoKey(part string) error {
	return fault.New(fault.Unsupported, part, fault.NoOffset, "encrypted with AES-256-GCM: a key of 32 bytes is needed, in %s or in a file that %s names", KeyVar, KeyFileVar)
}
