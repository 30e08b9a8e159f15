package tiledb

import "github.com/chaski-eo/chaski/fault"

// refuseConditions refuses an array with deletes or updates that were not applied to its cells.
func (a *Array) refuseConditions(files []string) error {
	for _, name := range files {
		return fault.WithFile(fault.New(fault.Unsupported, "commits",
			"a condition that deletes or changes cells: copy the array with TileDB, which applies it"),
			a.uri+"/"+commitsDir+"/"+name)
	}
	for _, fragment := range a.Fragments {
		if fragment.foot.deletes {
			return fault.WithFile(fault.New(fault.Unsupported, footerPart,
				"its cells have times of deletion: copy the array with TileDB, which applies them"),
				fragment.uri+"/"+metadataName)
		}
	}
	return nil
}
