package rumi

import _ "github.com/chaski-eo/chaski/codec/geozl"
