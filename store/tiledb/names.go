package tiledb

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Version is the format version that is read.
const Version = 3

// Names of files in an array's folder and in a fragment's.
const (
	schemaName   = "__array_schema.tdb"
	metadataName = "__fragment_metadata.tdb"
	coordsName   = "__coords"
	suffix       = ".tdb"
	varSuffix    = "_var.tdb"
)

// lockName is the empty file that TileDB locks while it consolidates.
const lockName = "__lock.tdb"

// Folders in which TileDB 2 keeps what it adds to an array of any format version.
const (
	laterFragments = "__fragments"
	laterSchemas   = "__schema"
)

// parseName reads "__t1_t2_uuid". Behind that later format versions write their number.
func parseName(name string) (from, to uint64, err error) {
	bad := func(what string) (uint64, uint64, error) {
		return 0, 0, fault.New(fault.Corrupt, "fragment name", fault.NoOffset, "%s", what)
	}
	parts := strings.Split(strings.TrimPrefix(name, "__"), "_")
	if len(parts) == 4 && len(parts[2]) == 32 {
		if v, err := strconv.ParseUint(parts[3], 10, 32); err == nil && v > Version {
			return 0, 0, fault.New(fault.Unsupported, "fragment name", fault.NoOffset, "format version %d", v)
		}
	}
	if !strings.HasPrefix(name, "__") || len(parts) != 3 || len(parts[2]) != 32 {
		return bad("it is not __TIME_TIME_UUID")
	}
	if strings.Trim(parts[2], "0123456789abcdefABCDEF") != "" {
		return bad("its last part is not a UUID in hexadecimal")
	}
	from, err1 := strconv.ParseUint(parts[0], 10, 64)
	to, err2 := strconv.ParseUint(parts[1], 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return bad("its times are not numbers of 64 bits")
	case from > to:
		return bad("its first time is after its second")
	}
	return from, to, nil
}

// atTheEnd is the time of a fragment that gets its name when it is complete.
const atTheEnd = 0

// newName returns the name of a fragment of some time, in milliseconds since 1970; "" for atTheEnd.
func newName(from, to uint64) string {
	if to == atTheEnd {
		return ""
	}
	return fmt.Sprintf("__%d_%d_%s", from, to, randomID())
}

// randomID returns 32 hexadecimal digits.
func randomID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it does not fail
	return hex.EncodeToString(id[:])
}
