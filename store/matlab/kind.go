// Package matlab opens MAT-files of MATLAB as groups of arrays, as store/arrays has them. It reads level 5 (MATLAB 5 to
// 7.2, scipy.io.savemat, Octave), and MATLAB 7.3, which is HDF5.
//
// Variables are arrays by their names, members of structures by NAME.MEMBER, and elements of cells and of arrays of
// structures by their number, from 0 on, in the order of the file: NAME.0. Samples have the type in which they are
// stored, as scipy.io.loadmat gives them.
package matlab

import (
	"context"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Kind is the kind of the paths of MAT-files.
var Kind = store.Register(&arrays.Kind{Noun: "a MATLAB file", Files: magic.MAT, Looks: is, OpenNode: Open})

// is reports whether a path is a MAT-file of level 5, or one and a path in it, or a remote file with its name.
func is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	uri, _, _ := source.Split(p.Name)
	if magic.Named(uri) != magic.MAT {
		return false, nil
	}
	if !p.Remote() {
		local, _, _ := source.Split(p.Local())
		if st, err := openers.RootsOf(o).Stat(local); err != nil || !st.Mode().IsRegular() {
			return false, nil
		}
	}
	r, err := o.Open(ctx, uri)
	if err != nil {
		return false, source.Outage(err)
	}
	head, err := source.Read(ctx, r, 0, min(r.Size(), magic.Head))
	return r.Close() == nil && err == nil && magic.Of(head) == magic.MAT || p.Remote(), source.Outage(err)
}
