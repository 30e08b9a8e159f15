package cli

// Certificates of the authorities that Mozilla trusts, for hosts that have none, such as an image from scratch. The
// certificates of the system come first. Other programs that use chaski's packages choose for themselves.
import _ "golang.org/x/crypto/x509roots/fallback"
