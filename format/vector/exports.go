package vector

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

func init() {
	register(labelFormat{"Label Studio", beginsList, refuse, Pixels, true},
		labelFormat{"CVAT", beginsCVAT, refuse, Pixels, true})
}

// beginsList reports whether a file is a list of objects in JSON.
func beginsList(head []byte) bool {
	head, found := bytes.CutPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimSpace(head), []byte("{"))
}

// beginsCVAT reports whether a file is XML of many images.
func beginsCVAT(head []byte) bool {
	return beginsXML(head) && bytes.Contains(head, []byte("<annotations"))
}

// refuse is labelFormat.read of what programs for labelling export, and nothing else reads.
func refuse(_ context.Context, _ source.Reader, l *labels) error {
	return fault.At(fault.Unsupported, "shapes", 0, "the file is as %s exports it, which is not read: export COCO, "+
		"or VOC or YOLO", l.format)
}
