package loader

import _ "github.com/chaski-eo/chaski/loader/formats"
