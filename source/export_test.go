package source

// BelowNotKept is Below, but keeps no file open.
func BelowNotKept(o Opener, roots []string) Opener {
	b := Below(o, roots).(*below)
	b.files.Keep = -1
	return b
}
