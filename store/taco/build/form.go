package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Form is the form of a container.
type Form = model.Form

// Forms that are written.
const (
	Auto          = model.Auto
	ZIP           = model.ZIP
	Folder        = model.TacoFolder
	TortillaFile  = model.TortillaFile
	StreamingTaco = model.StreamingTaco
	PlainTaco     = model.PlainTaco
	Tacocat       = model.Tacocat
	TacocatFile   = model.TacocatFile
	Tacollection  = model.Tacollection
	Cozip         = model.Cozip
	CozipFolder   = model.CozipFolder
	CozipCatalog  = model.CozipCatalog
)

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

// prefixOf returns the prefix of the URIs of all objects in a folder.
func prefixOf(path string) string { return strings.TrimRight(path, "/") + "/" }
