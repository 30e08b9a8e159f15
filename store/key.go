package store

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/chaski-eo/chaski/fault"
)

// Environment variables with the key of encrypted arrays, 32 bytes, or with the name of a file that holds it.
const (
	KeyVar     = "CHASKI_TILEDB_KEY"
	KeyFileVar = "CHASKI_TILEDB_KEY_FILE"
)

// KeyFromEnv returns the key in the environment, or nil without one. A key file may end with a newline.
func KeyFromEnv() ([]byte, error) {
	if k := os.Getenv(KeyVar); k != "" {
		return []byte(k), nil
	}
	name := os.Getenv(KeyFileVar)
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, noKeyFile(err, name)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, noKeyFile(err, name)
	}
	for len(data) > 32 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	return data, nil
}

// maxKeyFile limits the bytes that are read of a key file, so a wrong path to a large file costs nothing.
const maxKeyFile = 1 << 10

// noKeyFile returns the error for a key file that cannot be read.
func noKeyFile(err error, name string) error {
	kind := fault.Unsupported
	if errors.Is(err, fs.ErrNotExist) {
		kind = fault.NotFound
	}
	return fault.WithFile(fault.Wrap(kind, "key file", err), name)
}
