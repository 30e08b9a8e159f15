package container

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// forms are the forms by the values of --form.
var forms = map[string]build.Form{"auto": build.Auto, "zip": build.ZIP, "folder": build.Folder, "taco3": build.Cozip,
	"tacocat": build.Tacocat, "tacocat-file": build.TacocatFile, "tacollection": build.Tacollection}

// formNames are the values of --form, in the order of the help.
var formNames = []string{"auto", "zip", "folder", "taco3", "tacocat", "tacocat-file", "tacollection"}

// formAt returns the form of a container at out. Of TACO 3, the name of OUT says whether it is a ZIP, a folder or an
// index.
func formAt(name, out string) (build.Form, error) {
	ext := strings.ToLower(filepath.Ext(out))
	switch {
	case source.IsRemote(out):
		return 0, console.Usagef("OUT is %s: a container is written to a local disk", out)
	case ext == ".tortilla" || ext == ".taco":
		return 0, console.Usagef("-o is %q: a Tortilla or a TACO 0.2 is read and not written", out)
	}
	form := cmp.Or(forms[name], build.FormOf(out))
	if form != build.Cozip {
		return form, nil
	}
	switch {
	case filepath.Base(out) == ".tacocat":
		return build.CozipCatalog, nil
	case ext == ".tacozip":
		return 0, console.Usagef("-o is %q: the name of a ZIP of TACO 3 ends in .zip", out)
	case ext != ".zip":
		return build.CozipFolder, nil
	}
	return form, nil
}
