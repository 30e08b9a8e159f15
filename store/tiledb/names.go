package tiledb

import (
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

// nameStamp is what the name of a fragment or of a schema says.
type nameStamp struct {
	from, to uint64 // milliseconds since 1970
	version  uint32 // of the format, 0 for formats 3 and 4 and for schemas
}

// parseName parses "__t1_t2_uuid", the name of a fragment of format 3 and 4, or of a schema, and "__t1_t2_uuid_v", the
// name of a fragment of format version v, 5 or later.
func parseName(name string) (s nameStamp, err error) {
	bad := func(what string) (nameStamp, error) {
		return nameStamp{}, fault.New(fault.Corrupt, "fragment name", "%s", what)
	}
	parts := strings.Split(strings.TrimPrefix(name, "__"), "_")
	if len(parts) == 4 {
		version, err := strconv.ParseUint(parts[3], 10, 32)
		if f, _ := formatOf(uint32(version)); err == nil && f.committed {
			s.version, parts = uint32(version), parts[:3]
		}
	}
	if !strings.HasPrefix(name, "__") || len(parts) != 3 || len(parts[2]) != 32 {
		return bad("it is not __TIME_TIME_UUID")
	}
	if strings.Trim(parts[2], "0123456789abcdefABCDEF") != "" {
		return bad("its last part is not a UUID in hexadecimal")
	}
	var err1, err2 error
	s.from, err1 = strconv.ParseUint(parts[0], 10, 64)
	s.to, err2 = strconv.ParseUint(parts[1], 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return bad("its times are not numbers of 64 bits")
	case s.from > s.to:
		return bad("its first time is after its second")
	}
	return s, nil
}
