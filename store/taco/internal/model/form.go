package model

// Form is the form of a container: its format, and whether it is a file or a folder.
type Form uint8

// Forms.
const (
	// Auto derives the form from the name of a container that is written.
	Auto Form = iota
	ZIP
	TacoFolder
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
	// Flat is a cozip of files with one table. It is read, and not written.
	Flat
	numForms
)

var formNames = [numForms]string{Auto: "unknown", ZIP: "TACO 2 (ZIP)", TacoFolder: "TACO 2 (FOLDER)",
	TortillaFile: "Tortilla 0.5", StreamingTaco: "TACO 0.2 (streaming)", PlainTaco: "TACO 0.2",
	Tacocat: "TACO 2 (TACOCAT folder)", TacocatFile: "TACO 2 (TACOCAT)", Tacollection: "TACO 2 (TACOLLECTION)",
	Cozip: "TACO 3 (ZIP)", CozipFolder: "TACO 3 (FOLDER)", CozipCatalog: "TACO 3 (TACOCAT)", Flat: "cozip (Flat)"}

// String returns a short name of the format and its kind, such as "TACO 2 (ZIP)".
func (f Form) String() string { return formNames[f] }

// Indexes reports whether a form is an index of ZIPs.
func (f Form) Indexes() bool {
	return f == Tacocat || f == TacocatFile || f == Tacollection || f == CozipCatalog
}

// Pads reports whether a form may have placeholders among its samples.
func (f Form) Pads() bool { return f == ZIP || f == TacoFolder || f == Tacocat || f == TacocatFile }

// Named reports whether a form is a TACO 3, whose tables have names.
func (f Form) Named() bool { return f == Cozip || f == CozipFolder }

// Older reports whether a form is of generation 1: a Tortilla or a TACO 0.2, whose columns have other names and types.
func (f Form) Older() bool { return f == TortillaFile || f == StreamingTaco || f == PlainTaco }

// OneFile reports whether a container of a form is one file.
func (f Form) OneFile() bool { return f == ZIP || f == Cozip || f.Older() }

// Unchecked reports whether a form lacks checksums of samples: verify cannot find a changed bit in them.
func (f Form) Unchecked() bool { return f == TacoFolder || f == CozipFolder || f.Older() }
