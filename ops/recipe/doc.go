// Package recipe makes containers of chips by recipes: a source, windows of it, fields, and what becomes of each chip.
//
//	r, err := recipe.Parse(yaml)
//	result, err := recipe.Make(ctx, r, "chips.tacozip", recipe.Options{})
//
// The loader reads the windows, so a recipe takes all that a run takes, and chips have the pixels that a run would see.
// Package convert encodes them, and package store/taco/build writes the container while they are made.
package recipe
