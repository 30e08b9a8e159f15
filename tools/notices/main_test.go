package main

import (
	"bytes"
	"debug/buildinfo"
	"strings"
	"testing"
)

// TestEveryLinkedModule promises a licence for each module that the command says it was built from.
func TestEveryLinkedModule(t *testing.T) {
	t.Chdir("../..")
	built, err := buildinfo.ReadFile("bin/chaski")
	if err != nil {
		t.Skip("bin/chaski is not built: ", err)
	}
	var out bytes.Buffer
	if err := write(&out, "./cmd/chaski"); err != nil {
		t.Fatal(err)
	}
	for _, m := range built.Deps {
		if !strings.Contains(out.String(), "\n"+m.Path+" "+m.Version+": ") {
			t.Errorf("no licence of %s %s", m.Path, m.Version)
		}
	}
}
