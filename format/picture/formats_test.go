package picture_test

import _ "github.com/chaski-eo/chaski/format/codec/jpeg"
