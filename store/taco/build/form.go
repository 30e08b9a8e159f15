package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Form is the form of a container.
type Form uint8

// Forms.
const (
	// Auto derives the form from the name: see FormOf.
	Auto Form = iota
	ZIP
	Folder
	// TortillaFile is a Tortilla 0.5: one file, whose folders are Tortillas in it. It has no description.
	TortillaFile
	// StreamingTaco is a TACO 0.2 whose tables of all levels, and of the tiles of its rasters, lie at its end. Its
	// files are TOGs.
	StreamingTaco
	// PlainTaco is a TACO 0.2 of any files: a Tortilla with a description.
	PlainTaco
	// Tacocat is the folder .tacocat: the tables of several ZIPs, which lie beside it.
	Tacocat
	// TacocatFile is the same as one file, __TACOCAT__, as the specification has it.
	TacocatFile
	// Tacollection is TACOLLECTION.json: the description of several ZIPs, without their tables.
	Tacollection
	// Cozip is a ZIP of TACO 3, CozipFolder a folder of TACO 3, and CozipCatalog the folder .tacocat of the tables of
	// several ZIPs of TACO 3, which lie beside it.
	Cozip
	CozipFolder
	CozipCatalog
)

// Indexes reports whether a form is an index of ZIPs, which Consolidate writes.
func (f Form) Indexes() bool {
	return f == Tacocat || f == TacocatFile || f == Tacollection || f == CozipCatalog
}

// Named reports whether a form is a TACO 3, whose tables have names.
func (f Form) Named() bool { return f == Cozip || f == CozipFolder }

// Described reports whether a form has a description, COLLECTION.json.
func (f Form) Described() bool { return f != TortillaFile }

// old reports whether a form is a TACO 0.2.
func (f Form) old() bool { return f == StreamingTaco || f == PlainTaco }

// Older reports whether a form is of generation 1: a Tortilla or a TACO 0.2, whose columns have other names and types.
func (f Form) Older() bool { return f == TortillaFile || f.old() }

// Names of indexes. Readers look for them in a folder.
const (
	tacocatName      = ".tacocat"
	tacocatFileName  = "__TACOCAT__"
	tacollectionName = "TACOLLECTION.json"
)

// FormOf returns the form that a name says: an index for .tacocat, __TACOCAT__ and TACOLLECTION.json, ZIP for names
// that end in .tacozip or .zip, TortillaFile for those that end in .tortilla, StreamingTaco for those that end in
// .taco, Cozip and CozipFolder for those that end in .taco3.zip and .taco3, otherwise Folder.
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
	case ".tortilla":
		return TortillaFile
	case ".taco":
		return StreamingTaco
	}
	return Folder
}

// OneFile reports whether a container of a form is one file.
func (f Form) OneFile() bool { return f == ZIP || f == Cozip || f.Older() }

// Writable returns an error if an existing file or folder at path prevents writing a container of this form there. A
// program can call it before a long run.
func Writable(path string, form Form) error {
	if form == Auto {
		form = FormOf(path)
	}
	switch _, err := os.Lstat(path); {
	case source.IsRemote(path):
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"containers are written to local files only"), path)
	case form.Indexes():
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"is an index of ZIPs, which holds no samples"), path)
	case form.OneFile():
		return replaceable(path)
	case err == nil:
		return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"exists: a container that is a folder needs a new name"), path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

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
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"exists and is not a file: a container that is a file replaces files only"), path)
	}
	return nil
}

// prefixOf returns the prefix of the URIs of all objects in a folder.
func prefixOf(path string) string { return strings.TrimRight(path, "/") + "/" }
