package scenes_test

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/scenes"
)

// TestWithoutGround promises that a program without package ground is told what to import.
func TestWithoutGround(t *testing.T) {
	_, err := scenes.New(nil, scenes.Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/loader/ground,") {
		t.Error(err)
	}
}
