package rumi

import _ "github.com/chaski-eo/chaski/format/codec/geozl"
