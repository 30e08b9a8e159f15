package raster

import (
	"bytes"
	"encoding/hex"
	"io"
	"os"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
)

// maxHexFile is the largest file of hexadecimal digits that is read, in bytes. A blob takes two digits a
// byte, so that this allows 512 MiB: far more than the largest chunk index.
const maxHexFile = 1 << 30

// readHex reads a file of hexadecimal digits and ignores white space in it.
func readHex(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fault.WithFile(fault.Wrap(console.SystemKind(err), "header file", fault.NoOffset, err), name)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxHexFile+1))
	switch {
	case err != nil:
		return nil, fault.WithFile(fault.Wrap(fault.Unsupported, "header file", fault.NoOffset, err), name)
	case len(text) > maxHexFile:
		return nil, fault.WithFile(fault.New(fault.Limit, "header file", fault.NoOffset,
			"over %d bytes", maxHexFile), name)
	}
	blob, err := hex.DecodeString(string(bytes.Join(bytes.Fields(text), nil)))
	if err != nil {
		return nil, fault.WithFile(fault.Wrap(fault.Corrupt, "header file", fault.NoOffset, err), name)
	}
	return blob, nil
}
