package tiledb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/source"
)

// Create creates an array: a local directory with its schema and lock file. The directory must not exist. With a key of
// 32 bytes everything that is written to the array is encrypted with AES-256-GCM. The schema must pass Validate.
func Create(path string, s *Schema, key []byte) error {
	path = source.LocalPath(path)
	if err := s.Validate(); err != nil {
		return fault.WithFile(err, path)
	}
	sealer, err := newSealer(key)
	if err != nil {
		return err
	}
	tile, err := sealer.generic(nil, s.append(nil))
	if err != nil {
		return err
	}
	// The directory gets its name last. Others would otherwise see an array without a schema, and
	// an interrupted run would leave one.
	folder, err := durable.NewFolder(path)
	if err != nil {
		return err
	}
	defer folder.Remove() // after Place there is nothing to remove
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, "it exists already"), path)
	}
	for name, b := range map[string][]byte{schemaName: tile, lockName: nil} {
		if err := os.WriteFile(filepath.Join(folder.Path, name), b, 0o666); err != nil {
			return err
		}
	}
	return folder.Place(path)
}
