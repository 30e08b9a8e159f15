package openers

import "github.com/chaski-eo/chaski/source"

// BelowNotKept is Below, but keeps no file open.
func BelowNotKept(o source.Opener, roots []string) source.Opener {
	b := Below(o, roots).(*below)
	b.files.Keep = -1
	return b
}
