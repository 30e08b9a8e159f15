package rows

import (
	"testing"
	"time"
)

// TestTimeOf: dates, timestamps with and without a zone, and names of products are times. 1/5/2024 is none: it may be
// the first of May or the fifth of January.
func TestTimeOf(t *testing.T) {
	for text, want := range map[string]string{
		"2024-01-05": "2024-01-05T00:00:00Z", "2024-1-5": "2024-01-05T00:00:00Z", "20240105": "2024-01-05T00:00:00Z",
		"05.01.2024": "2024-01-05T00:00:00Z", "2024-01-05T23:00:00-10:00": "2024-01-06T09:00:00Z",
		"2024-01-05 10:30": "2024-01-05T10:30:00Z", "20240105T103421Z": "2024-01-05T10:34:21Z",
		"2024_01_05": "2024-01-05T00:00:00Z", "2024-01": "2024-01-01T00:00:00Z", "2024_01": "2024-01-01T00:00:00Z",
		"2024-01-05/2024-02-01": "2024-01-05T00:00:00Z",
		"S2A_MSIL2A_20240105T103421_N0510_R008_T32TQM_20240105T141530.SAFE": "2024-01-05T10:34:21Z",
		"LC08_L2SP_193028_20240105_20240113_02_T1":                          "2024-01-05T00:00:00Z",
		"1/5/2024": "", "spring": "", "2024": "", "tile_12345678": "", "20241345": "", "a_20240199_b": "", "": "",
	} {
		at, err := timeOf(text)
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", text, err)
		} else if got := time.UnixMicro(at).UTC().Format(time.RFC3339); want != "" && got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
