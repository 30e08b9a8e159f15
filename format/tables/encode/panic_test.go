package encode_test

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
)

// TestAPanicOverASchemaIsAnError: the Parquet library panics over integers of 7 bits when it makes a schema.
func TestAPanicOverASchemaIsAnError(t *testing.T) {
	_, err := encode.NewWriter([]tables.Column{{Name: "c", Type: tables.Type{Kind: tables.Int64, Bits: 7}}}, nil)
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%v", err)
	}
}
