package picture_test

import _ "github.com/chaski-eo/chaski/codec/jpeg"
