package textguard

import (
	"encoding/json"
	"errors"
	"io"
)

// EachElement calls visit, which reads a value, for each element of a list, from behind its bracket to its end. The end
// of the text before that is io.ErrUnexpectedEOF.
func EachElement(d *json.Decoder, visit func() error) (err error) {
	for err == nil && d.More() {
		err = visit()
	}
	if err == nil {
		_, err = d.Token()
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// EachMember calls visit, which reads a value, for each member of an object, from behind its brace to its end.
func EachMember(d *json.Decoder, visit func(name string) error) error {
	return EachElement(d, func() error {
		name, err := d.Token()
		if err != nil {
			return err
		}
		return visit(name.(string)) // the decoder takes no other names
	})
}
