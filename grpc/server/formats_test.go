package server

import _ "github.com/chaski-eo/chaski/loader/formats"
