package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/chaski-eo/chaski/internal/zstd"
)

// buildVersion returns "VERSION (REVISION, GO, OS/ARCH, zstd NAME)".
func buildVersion() string {
	v, facts := version, []string{}
	if bi, ok := debug.ReadBuildInfo(); ok {
		v = cmp.Or(v, bi.Main.Version)
		if r := revision(bi); r != "" {
			facts = append(facts, r)
		}
	}
	v = cmp.Or(v, "(devel)")
	facts = append(facts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, "zstd "+zstd.Name)
	return fmt.Sprintf("%s (%s)", v, strings.Join(facts, ", "))
}

func revision(bi *debug.BuildInfo) string {
	var rev, dirty string
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}
