package verify_test

import _ "github.com/chaski-eo/chaski/loader/formats"
