package open

import (
	"maps"
	"slices"
	"testing"
)

// TestRemoteSchemes: the list of schemes is what commands open.
func TestRemoteSchemes(t *testing.T) {
	opener := NewOpener(false, nil, false)
	defer opener.Close()
	want, got := slices.Sorted(slices.Values(RemoteSchemes)), slices.Sorted(maps.Keys(opener.Schemes))
	if !slices.Equal(got, want) {
		t.Errorf("commands open %v, RemoteSchemes has %v", got, want)
	}
}
