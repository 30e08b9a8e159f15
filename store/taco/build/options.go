package build

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
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
	// More returns further columns. Create and Export call it once, after the samples are checked and before anything
	// is written.
	More More
	// Inspect returns what makes further columns of the bytes of files, after More, whose columns levels have. They
	// replace columns of the same name. Each file is read once, for this and for the copy.
	Inspect func(levels []Level) Inspection
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// open fills in the opener, and returns what ends the use of it.
func (o *Options) open() (done func()) {
	if o.Opener != nil {
		return func() {}
	}
	files := &openers.Files{}
	o.Opener = files
	return func() { _ = files.Close() } // they were only read
}

// Result has the counts of a written container.
type Result struct {
	Samples int   // of level 0, without padding
	Files   int   // with bytes, padding included
	Bytes   int64 // of the files
}

// More returns further columns of samples: for each level a table with a row for each of its samples, or nil. They
// replace columns of the same name.
type More func(ctx context.Context, levels []Level) ([]*tables.Table, error)

// Inspection computes columns from the bytes of files: see Options.Inspect.
type Inspection struct {
	// File is called once for each file, without padding, by several goroutines. r reads the bytes of the row of
	// Level.Rows with that number; File must not close r or keep it. File is nil if no column needs the bytes.
	File func(ctx context.Context, level, row int, r source.Reader) error
	// Columns returns for each level a table with a row for each of its samples, or nil. It is called once, after
	// File was called for all files.
	Columns func(ctx context.Context) ([]*tables.Table, error)
}

// Form is the form of a container.
type Form = model.Form

// Forms that are written.
const (
	Auto         = model.Auto
	ZIP          = model.ZIP
	Folder       = model.TacoFolder
	Tacocat      = model.Tacocat
	TacocatFile  = model.TacocatFile
	Tacollection = model.Tacollection
	Cozip        = model.Cozip
	CozipFolder  = model.CozipFolder
	CozipCatalog = model.CozipCatalog
)

// Names of indexes. Readers look for them in a folder.
const (
	tacocatName      = ".tacocat"
	tacocatFileName  = "__TACOCAT__"
	tacollectionName = "TACOLLECTION.json"
)

// FormOf returns the form that a name says: an index for .tacocat, __TACOCAT__ and TACOLLECTION.json, ZIP for names
// that end in .tacozip or .zip, Cozip and CozipFolder for those that end in .taco3.zip and .taco3, otherwise Folder.
func FormOf(path string) Form {
	switch filepath.Base(path) {
	case tacocatName:
		return Tacocat
	case tacocatFileName:
		return TacocatFile
	case tacollectionName:
		return Tacollection
	}
	switch name := strings.ToLower(filepath.Base(path)); {
	case strings.HasSuffix(name, ".taco3.zip"):
		return Cozip
	case strings.HasSuffix(name, ".taco3"):
		return CozipFolder
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".tacozip", ".zip":
		return ZIP
	}
	return Folder
}

// FormNames are the names that ParseForm knows.
var FormNames = []string{"auto", "zip", "folder", "taco3", "tacocat", "tacocat-file", "tacollection"}

// namedForms are the forms of FormNames. Auto is the one that FormOf returns.
var namedForms = [...]Form{Auto, ZIP, Folder, Cozip, Tacocat, TacocatFile, Tacollection}

// ParseForm returns the form of a container at path by one of FormNames. Of TACO 3, the path says whether it is a ZIP,
// a folder or an index. A path that the form does not have is an error without a kind.
func ParseForm(name, path string) (Form, error) {
	ext := strings.ToLower(filepath.Ext(path))
	switch {
	case source.IsRemote(path):
		return 0, errors.New("a container is written to a local disk")
	case ext == ".tortilla" || ext == ".taco":
		return 0, errors.New("a Tortilla or a TACO 0.2 is read and not written")
	}
	form := cmp.Or(namedForms[slices.Index(FormNames, name)], FormOf(path))
	switch {
	case form != Cozip:
		return form, nil
	case filepath.Base(path) == tacocatName:
		return CozipCatalog, nil
	case ext == ".tacozip":
		return 0, errors.New("the name of a ZIP of TACO 3 ends in .zip")
	case ext != ".zip":
		return CozipFolder, nil
	}
	return form, nil
}

// newFolder says why a folder is not written.
const newFolder = "exists: a container that is a folder needs a new name"

// replaceable returns an error if path is a device, a pipe or a folder. A rename would replace a device, such as
// /dev/stdout, by a file. It would fail for a folder too, but only after everything was written.
func replaceable(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fault.WithFile(unsupported("file",
			"exists and is not a file: a container that is a file replaces files only"), path)
	}
	return nil
}
