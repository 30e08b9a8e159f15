package build

import "github.com/chaski-eo/chaski/source"

// Form is the form of a TACO 2 container.
type Form uint8

// Forms.
const (
	// Auto is ZIP for names that end in .tacozip or .zip, otherwise Folder.
	Auto Form = iota
	ZIP
	Folder
)

// Options configure Create. The zero value selects the defaults.
type Options struct {
	// Form is the form of the container.
	Form Form
	// Opener opens the files of samples. The default opens local files.
	Opener source.Opener
	// Workers is how many files are read at a time, and how many tables are written. The default is the number
	// of processors, at least 4. The container does not depend on it.
	Workers int
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// Result counts what was written.
type Result struct {
	Samples int   // of level 0, without padding
	Files   int   // with bytes, padding included
	Folders int   // with a table of their own
	Bytes   int64 // of the files
}
