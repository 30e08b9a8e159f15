package main

import _ "github.com/chaski-eo/chaski/loader/formats"
