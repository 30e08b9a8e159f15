package taco

// Kind is what the kind of the paths of containers does without the loader, which adds to it and registers it.
type Kind struct{}

// String implements store.Kind.
func (Kind) String() string { return "a container" }

// Usage implements store.Several.
func (Kind) Usage(path string) string { return "its rasters are called " + path + "::SAMPLE/PATH" }
