package tiledb

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
)

// errNoKey returns the error for an encrypted array that is read without a key.
func errNoKey(part string) error {
	return fault.New(fault.Unsupported, part, "encrypted with AES-256-GCM: set %s to the key of 32 bytes, or %s to "+
		"the name of a file with it", store.KeyVar, store.KeyFileVar)
}
