package spec

// brief returns the start of a text: enough to recognise it, and short enough for a line.
func brief(text string) string {
	if r := []rune(text[:min(len(text), 4*81)]); len(r) > 80 { // a rune has at most 4 bytes
		return string(r[:80]) + "…"
	}
	return text
}
