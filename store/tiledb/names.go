package tiledb

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Names of files in the directories of an array and of a fragment.
const (
	schemaName   = "__array_schema.tdb"
	metadataName = "__fragment_metadata.tdb"
	coordsName   = "__coords"
)

// lockName is the empty file that TileDB locks while it consolidates.
const lockName = "__lock.tdb"

// Directories and suffixes of files that later format versions have.
const (
	schemasDir    = "__schema"
	fragmentsDir  = "__fragments"
	commitsDir    = "__commits"
	okSuffix      = ".ok"
	writeSuffix   = ".wrt"
	vacuumSuffix  = ".vac"
	commitsSuffix = ".con"
	ignoreSuffix  = ".ign"
	deleteSuffix  = ".del"
	updateSuffix  = ".upd"
)

// laterName parses "__t1_t2_uuid_v", the name of a fragment of format version v, 5 or later. ok is
// false if the name is not of this form.
func laterName(name string) (from, to uint64, version uint32, ok bool) {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return 0, 0, 0, false
	}
	v, err := strconv.ParseUint(name[i+1:], 10, 32)
	from, to, err2 := parseName(name[:i])
	if f, _ := formatOf(uint32(v)); err != nil || err2 != nil || !f.committed {
		return 0, 0, 0, false
	}
	return from, to, uint32(v), true
}

// parseName parses "__t1_t2_uuid", the name of a fragment of format 3 and 4, or of a schema.
func parseName(name string) (from, to uint64, err error) {
	bad := func(what string) (uint64, uint64, error) {
		return 0, 0, fault.New(fault.Corrupt, "fragment name", fault.NoOffset, "%s", what)
	}
	parts := strings.Split(strings.TrimPrefix(name, "__"), "_")
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

// newName returns a new name for a fragment of a range of time, in milliseconds since 1970.
func newName(from, to uint64) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never returns an error
	return fmt.Sprintf("__%d_%d_%x", from, to, id)
}
